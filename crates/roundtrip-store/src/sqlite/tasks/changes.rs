//! Changes of tasks in SQLite. Each is a part of the writer's transaction.

use std::collections::HashSet;

use roundtrip::seal::Digest;
use roundtrip::task::{
    AdoptedTask, Chunk, Due, Millis, NewTask, TakenTask, TaskChange, TaskId, TaskKey, Waiting,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::statements::{
    ADD, ADOPT, CREATE, DUE, FORGET_JOURNAL, GIVE_BACK, IS_HELD, KNOWN, LIVE, NEXT, REMOVE, REMOVE_ORPHANS,
    RESEAL_PIECE, RESEAL_RESULT, RESEAL_VIEW, RESEAL_WORK, SIZE, TAKE, WRITE,
};
use super::{owner, unreadable};
use crate::sqlite::Sql;
use crate::sqlite::writer::Change;
use crate::tasks::{
    CALL, Field, JOURNAL, ORPHAN_GRACE, Origin, PARTS, Reseal, Wish, digest_of, id_of, millis_of, readable,
    signed, unsigned,
};

/// Returns the number of the next change.
fn next_change(connection: &Connection) -> Sql<i64> {
    connection.prepare_cached(NEXT)?.query_row((), |row| row.get(0))
}

/// Returns a time after now, as it is stored.
fn after(now: Millis, millis: i64) -> i64 {
    signed(now.0).saturating_add(millis)
}

/// Adds pieces. One that is there already is left as it is.
fn add<'a>(
    connection: &Connection,
    id: &TaskId,
    pieces: impl IntoIterator<Item = (i16, u32, &'a [u8])>,
) -> Sql<()> {
    let mut add = connection.prepare_cached(ADD)?;
    for (stream, number, bytes) in pieces {
        add.execute(params![id.as_str(), stream, number, bytes])?;
    }
    Ok(())
}

/// Returns pieces with their stream.
fn of_stream(stream: i16, pieces: &[Chunk]) -> impl Iterator<Item = (i16, u32, &[u8])> {
    pieces.iter().map(move |piece| (stream, piece.number, &piece.bytes[..]))
}

pub(super) struct CreateTask {
    pub(super) task: NewTask,
    pub(super) most: i64,
    pub(super) now: Millis,
    pub(super) origin: Origin,
}

impl Change for CreateTask {
    type Output = bool;

    fn run(&self, connection: &Connection) -> Sql<bool> {
        let NewTask { key, account, kind, .. } = &self.task;
        if connection.prepare_cached(KNOWN)?.exists([key.id.as_str()])? {
            return Ok(true);
        }
        let mut live = connection.prepare_cached(LIVE)?;
        let live =
            live.query_row([key.service.as_bytes(), account.as_bytes()], |row| row.get(0)).optional()?;
        if live.unwrap_or(0) >= self.most {
            return Ok(false);
        }
        connection.prepare_cached(CREATE)?.execute(params![
            key.id.as_str(),
            key.service.as_bytes(),
            key.owner.as_bytes(),
            account.as_bytes(),
            kind.as_bytes(),
            self.task.lease.is_some(),
            after(self.now, self.task.lease.map_or(0, millis_of)),
            self.task.expires.map(|expires| signed(expires.0)),
            next_change(connection)?,
            self.origin,
            &self.task.view[..],
            &self.task.work[..],
        ])?;
        let journal = self.task.journal.iter().map(|journal| (JOURNAL, 0, &journal[..]));
        add(connection, &key.id, journal.chain([(CALL, 0, &self.task.call[..])]))?;
        Ok(true)
    }
}

pub(super) struct WriteTask {
    pub(super) change: TaskChange,
    pub(super) now: Millis,
    pub(super) origin: Origin,
}

impl Change for WriteTask {
    type Output = bool;

    fn run(&self, connection: &Connection) -> Sql<bool> {
        let TaskChange { key, is_live, .. } = &self.change;
        let due = match self.change.due {
            Due::After(pause) if *is_live => Some(after(self.now, millis_of(pause))),
            _ => None,
        };
        let written = connection.prepare_cached(WRITE)?.execute(params![
            key.id.as_str(),
            key.service.as_bytes(),
            key.owner.as_bytes(),
            signed(self.change.version),
            is_live,
            *is_live && self.change.due == Due::AsBefore,
            due,
            self.change.expires.map(|expires| signed(expires.0)),
            &self.change.view[..],
            &self.change.work[..],
            self.change.result.as_deref(),
            next_change(connection)?,
            self.origin,
        ])?;
        if written > 0 && self.change.replaces_journal {
            connection.prepare_cached(FORGET_JOURNAL)?.execute([key.id.as_str()])?;
        }
        if written > 0 {
            let parts = of_stream(PARTS, &self.change.parts);
            add(connection, &key.id, of_stream(JOURNAL, &self.change.journal).chain(parts))?;
        }
        Ok(written > 0)
    }
}

pub(super) struct AppendPieces {
    pub(super) key: TaskKey,
    pub(super) fence: u64,
    pub(super) pieces: Vec<Chunk>,
}

impl Change for AppendPieces {
    type Output = bool;

    fn run(&self, connection: &Connection) -> Sql<bool> {
        let key = &self.key;
        let parameters =
            params![key.id.as_str(), key.service.as_bytes(), key.owner.as_bytes(), signed(self.fence)];
        let is_held = connection.prepare_cached(IS_HELD)?.exists(parameters)?;
        if is_held {
            add(connection, &key.id, of_stream(JOURNAL, &self.pieces))?;
        }
        Ok(is_held)
    }
}

pub(super) struct TakeTasks {
    pub(super) wish: Wish,
    pub(super) now: Millis,
}

impl TakeTasks {
    /// Returns identifiers of tasks that are due, those due longest first. Tasks whose worker is gone are due like free ones.
    fn due(&self, connection: &Connection, waiting: &Waiting, most: usize) -> Sql<Vec<TaskId>> {
        let mut statement = connection.prepare_cached(DUE)?;
        let (service, kind, account) =
            (self.wish.service.as_bytes(), waiting.kind.as_bytes(), waiting.account.as_bytes());
        let limit = signed(most.saturating_add(self.wish.except.len()) as u64);
        let mut due = Vec::new();
        for held in [false, true] {
            let parameters = params![service, held, kind, account, signed(self.now.0), limit];
            let read = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, id_of(row.get_ref(0)?.as_str()?)));
            due.extend(statement.query_map(parameters, read)?.collect::<Sql<Vec<_>>>()?);
        }
        due.sort_by_key(|(due, _)| *due);
        let (due, except) = (readable(due.into_iter().map(|(_, id)| id)), self.wish.except.iter());
        let except: HashSet<&TaskId> = except.collect();
        Ok(due.into_iter().filter(|id| !except.contains(id)).take(most).collect())
    }

    fn take(&self, connection: &Connection, id: &TaskId) -> Sql<TakenTask> {
        let mut size = connection.prepare_cached(SIZE)?;
        let pieces: i64 = size.query_row([id.as_str()], |row| row.get(0))?;
        let until = after(self.now, millis_of(self.wish.lease));
        let mut take = connection.prepare_cached(TAKE)?;
        let digest = |row: &Row<'_>, column: usize| {
            digest_of("account or kind", row.get_ref(column)?.as_blob()?).map_err(unreadable)
        };
        take.query_row(params![until, id.as_str()], |row| {
            Ok(TakenTask {
                key: TaskKey { service: self.wish.service, owner: owner(row, 0)?, id: id.clone() },
                account: digest(row, 1)?,
                kind: digest(row, 2)?,
                fence: unsigned(row.get(3)?),
                size: usize::try_from(row.get::<_, i64>(4)?.saturating_add(pieces)).unwrap_or(usize::MAX),
            })
        })
    }
}

impl Change for TakeTasks {
    type Output = Vec<TakenTask>;

    fn run(&self, connection: &Connection) -> Sql<Vec<TakenTask>> {
        let mut taken = Vec::new();
        for (waiting, most) in &self.wish.wanted {
            for id in self.due(connection, waiting, *most)? {
                taken.push(self.take(connection, &id)?);
            }
        }
        Ok(taken)
    }
}

pub(super) struct GiveBackTask {
    pub(super) key: TaskKey,
    pub(super) fence: u64,
    pub(super) now: Millis,
    pub(super) origin: Origin,
}

impl Change for GiveBackTask {
    type Output = Option<u64>;

    fn run(&self, connection: &Connection) -> Sql<Option<u64>> {
        let key = &self.key;
        let parameters = params![
            key.id.as_str(),
            key.service.as_bytes(),
            key.owner.as_bytes(),
            signed(self.fence),
            signed(self.now.0),
            next_change(connection)?,
            self.origin,
        ];
        let mut give_back = connection.prepare_cached(GIVE_BACK)?;
        give_back.query_row(parameters, |row| Ok(unsigned(row.get(0)?))).optional()
    }
}

pub(super) struct RemoveTasks {
    pub(super) service: Digest,
    pub(super) tasks: Vec<(TaskId, u64)>,
}

impl Change for RemoveTasks {
    type Output = ();

    fn run(&self, connection: &Connection) -> Sql<()> {
        let mut remove = connection.prepare_cached(REMOVE)?;
        for (id, version) in &self.tasks {
            remove.execute(params![id.as_str(), self.service.as_bytes(), signed(*version)])?;
        }
        Ok(())
    }
}

pub(super) struct RemoveOrphans {
    pub(super) now: Millis,
    pub(super) most: i64,
}

impl Change for RemoveOrphans {
    type Output = usize;

    fn run(&self, connection: &Connection) -> Sql<usize> {
        let parameters = params![signed(self.now.0), after(self.now, -ORPHAN_GRACE), self.most];
        connection.prepare_cached(REMOVE_ORPHANS)?.execute(parameters)
    }
}

pub(super) struct AdoptTask {
    pub(super) task: AdoptedTask,
    pub(super) origin: Origin,
}

impl Change for AdoptTask {
    type Output = bool;

    fn run(&self, connection: &Connection) -> Sql<bool> {
        let AdoptedTask { key, call, journal, parts, .. } = &self.task;
        let adopted = connection.prepare_cached(ADOPT)?.execute(params![
            key.id.as_str(),
            key.service.as_bytes(),
            key.owner.as_bytes(),
            signed(self.task.version),
            self.task.kind.as_bytes(),
            &self.task.view[..],
            &self.task.work[..],
            self.task.result.as_deref(),
            next_change(connection)?,
            self.origin,
        ])?;
        if adopted > 0 {
            let call = (!call.is_empty()).then_some((CALL, 0, &call[..]));
            let journal = journal.iter().map(|journal| (JOURNAL, 0, &journal[..]));
            let parts = parts.iter().map(|parts| (PARTS, 0, &parts[..]));
            add(connection, &key.id, journal.chain(parts).chain(call))?;
        }
        Ok(adopted > 0)
    }
}

pub(super) struct ResealTasks(pub(super) Vec<Reseal>);

impl Change for ResealTasks {
    type Output = ();

    fn run(&self, connection: &Connection) -> Sql<()> {
        for Reseal { id, field, old, new } in &self.0 {
            let (new, id, old) = (&new[..], id.as_str(), &old[..]);
            let column = match field {
                Field::View => RESEAL_VIEW,
                Field::Work => RESEAL_WORK,
                _ => RESEAL_RESULT,
            };
            match field.piece() {
                Some((stream, number)) => {
                    connection.prepare_cached(RESEAL_PIECE)?.execute(params![new, id, old, stream, number])?
                }
                None => connection.prepare_cached(column)?.execute(params![new, id, old])?,
            };
        }
        Ok(())
    }
}
