//! Changes of tasks in SQLite. Each is a part of the writer's transaction.

use std::collections::HashSet;

use roundtrip::seal::Digest;
use roundtrip::task::{
    AdoptedTask, Chunk, Due, Millis, NewTask, TakenTask, TaskChange, TaskId, TaskKey, Waiting,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::statements::{
    ADD, ADOPT, CREATE, DUE, FORGET_JOURNAL, GIVE_BACK, IS_HELD, KNOWN, LIVE, REMOVE, REMOVE_ORPHANS,
    RESEAL_CALL, RESEAL_PIECE, RESEAL_RESULT, RESEAL_VIEW, RESEAL_WORK, TAKE, WRITE, WRITE_ALL,
};
use super::{id, owner};
use crate::sqlite::Sql;
use crate::sqlite::writer::{Change, Commit};
use crate::tasks::{
    CALL, Field, JOURNAL, ORPHAN_GRACE, Origin, PARTS, Reseal, Wish, millis_of, readable, signed, unsigned,
};

/// Returns a time after now, as it is stored.
fn after(now: Millis, millis: i64) -> i64 {
    signed(now.0).saturating_add(millis)
}

/// Stream, number and bytes of a piece.
type Piece<'a> = (i16, u32, &'a [u8]);

/// Adds pieces. One that is there already is left as it is.
fn add<'a>(connection: &Connection, id: &TaskId, pieces: impl IntoIterator<Item = Piece<'a>>) -> Sql<()> {
    for (stream, number, bytes) in pieces {
        connection.prepare_cached(ADD)?.execute(params![id.as_str(), stream, number, bytes])?;
    }
    Ok(())
}

/// Largest call that is kept in the row of its task, in bytes.
const SMALL_CALL: usize = 4 * 1024;

fn is_small(call: &[u8]) -> bool {
    call.len() <= SMALL_CALL
}

/// Returns a call as the column of its task, or as a piece.
fn call_columns(call: &[u8]) -> (Option<&[u8]>, Option<Piece<'_>>) {
    if is_small(call) { (Some(call), None) } else { (None, Some((CALL, 0, call))) }
}

/// Returns pieces with their stream.
fn of_stream(stream: i16, pieces: &[Chunk]) -> impl Iterator<Item = Piece<'_>> {
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

    fn run(&self, connection: &Commit<'_>) -> Sql<bool> {
        let NewTask { key, account, kind, .. } = &self.task;
        let (call, large_call) = call_columns(&self.task.call);
        let mut live = connection.prepare_cached(LIVE)?;
        let live = live.query_row(params![key.service.as_bytes(), account.as_bytes()], |row| row.get(0));
        if live.optional()?.unwrap_or(0_i64) >= self.most {
            return connection.prepare_cached(KNOWN)?.exists([key.id.as_str()]);
        }
        let created = connection.prepare_cached(CREATE)?.execute(params![
            key.id.as_str(),
            key.service.as_bytes(),
            key.owner.as_bytes(),
            account.as_bytes(),
            kind.as_bytes(),
            self.task.lease.is_some(),
            after(self.now, self.task.lease.map_or(0, millis_of)),
            self.task.expires.map(|expires| signed(expires.0)),
            connection.next_number()?,
            self.origin,
            &self.task.view[..],
            &self.task.work[..],
            call,
        ])?;
        // Otherwise it was there before.
        if created > 0 {
            let journal = self.task.journal.iter().map(|journal| (JOURNAL, 0, &journal[..]));
            add(connection, &key.id, journal.chain(large_call))?;
        }
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

    fn run(&self, connection: &Commit<'_>) -> Sql<bool> {
        let TaskChange { key, is_live, .. } = &self.change;
        let due = match self.change.due {
            Due::After(pause) if *is_live => Some(after(self.now, millis_of(pause))),
            _ => None,
        };
        let number = connection.next_number()?;
        let parameters = params![
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
            number,
            self.origin,
        ];
        let mut written = connection.prepare_cached(WRITE)?.execute(parameters)?;
        if written == 0 {
            written = connection.prepare_cached(WRITE_ALL)?.execute(parameters)?;
        }
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

    fn run(&self, connection: &Commit<'_>) -> Sql<bool> {
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
    /// Returns tasks that are due, those due longest first: the number of the row of each, and the task as it is
    /// once it is taken. Tasks whose worker is gone are due like free ones.
    fn due(&self, connection: &Connection, waiting: &Waiting, most: usize) -> Sql<Vec<(i64, TakenTask)>> {
        let mut statement = connection.prepare_cached(DUE)?;
        let (service, kind, account) =
            (self.wish.service.as_bytes(), waiting.kind.as_bytes(), waiting.account.as_bytes());
        let limit = signed(most.saturating_add(self.wish.except.len()) as u64);
        let mut due = Vec::new();
        for held in [false, true] {
            let parameters = params![service, held, kind, account, signed(self.now.0), limit];
            let read = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, self.taken(row, waiting, held)));
            due.extend(statement.query_map(parameters, read)?.collect::<Sql<Vec<_>>>()?);
        }
        due.sort_by_key(|(due, _)| *due);
        let except: HashSet<&TaskId> = self.wish.except.iter().collect();
        let due = readable(due.into_iter().map(|(_, task)| task));
        Ok(due.into_iter().filter(|(_, task)| !except.contains(&task.key.id)).take(most).collect())
    }

    /// Returns the number of a row, and its task as it is once it is taken.
    fn taken(&self, row: &Row<'_>, waiting: &Waiting, held: bool) -> Sql<(i64, TakenTask)> {
        let task = TakenTask {
            key: TaskKey { service: self.wish.service, owner: owner(row, 2)?, id: id(row)? },
            account: waiting.account,
            kind: waiting.kind,
            fence: unsigned(row.get(3)?).saturating_add(1),
            lease_expired: held,
            size: usize::try_from(row.get::<_, i64>(4)?).unwrap_or(usize::MAX),
        };
        Ok((row.get(5)?, task))
    }
}

impl Change for TakeTasks {
    type Output = Vec<TakenTask>;

    fn run(&self, connection: &Commit<'_>) -> Sql<Vec<TakenTask>> {
        let mut all = Vec::new();
        let until = after(self.now, millis_of(self.wish.lease));
        for (waiting, most) in &self.wish.wanted {
            let due = self.due(connection, waiting, *most)?;
            let mut take = connection.prepare_cached(TAKE)?;
            for (row, task) in due {
                take.execute([until, row])?;
                all.push(task);
            }
        }
        Ok(all)
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

    fn run(&self, connection: &Commit<'_>) -> Sql<Option<u64>> {
        let key = &self.key;
        let parameters = params![
            key.id.as_str(),
            key.service.as_bytes(),
            key.owner.as_bytes(),
            signed(self.fence),
            signed(self.now.0),
            connection.next_number()?,
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

    fn run(&self, connection: &Commit<'_>) -> Sql<()> {
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

    fn run(&self, connection: &Commit<'_>) -> Sql<usize> {
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

    fn run(&self, connection: &Commit<'_>) -> Sql<bool> {
        let AdoptedTask { key, call, journal, parts, .. } = &self.task;
        let (call, large_call) = call_columns(call);
        let adopted = connection.prepare_cached(ADOPT)?.execute(params![
            key.id.as_str(),
            key.service.as_bytes(),
            key.owner.as_bytes(),
            signed(self.task.version),
            self.task.kind.as_bytes(),
            &self.task.view[..],
            &self.task.work[..],
            self.task.result.as_deref(),
            connection.next_number()?,
            self.origin,
            call.filter(|call| !call.is_empty()),
        ])?;
        if adopted > 0 {
            let journal = journal.iter().map(|journal| (JOURNAL, 0, &journal[..]));
            let parts = parts.iter().map(|parts| (PARTS, 0, &parts[..]));
            add(connection, &key.id, journal.chain(parts).chain(large_call))?;
        }
        Ok(adopted > 0)
    }
}

pub(super) struct ResealTasks(pub(super) Vec<Reseal>);

impl Change for ResealTasks {
    type Output = ();

    fn run(&self, connection: &Commit<'_>) -> Sql<()> {
        for Reseal { id, field, old, new } in &self.0 {
            let (new, id, old) = (&new[..], id.as_str(), &old[..]);
            let column = match field {
                Field::View => RESEAL_VIEW,
                Field::Work => RESEAL_WORK,
                Field::Call if is_small(old) => RESEAL_CALL,
                _ => RESEAL_RESULT,
            };
            let is_column = *field == Field::Call && is_small(old);
            match field.piece().filter(|_| !is_column) {
                Some((stream, number)) => {
                    connection.prepare_cached(RESEAL_PIECE)?.execute(params![new, id, old, stream, number])?
                }
                None => connection.prepare_cached(column)?.execute(params![new, id, old])?,
            };
        }
        Ok(())
    }
}
