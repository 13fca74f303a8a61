//! Tasks in SQLite. Changes go through the writer, reads past it.

mod changes;
mod renewer;
mod statements;
#[cfg(test)]
mod tests;
mod watch;

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{
    AdoptedTask, ChangedTask, Chunk, ExpiredTask, LeaseRenewer, Millis, NewTask, OrphanTask, StoredTask,
    StoredView, TakenTask, TaskChange, TaskId, TaskKey, TaskOwner, TaskWork, Waiting,
};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use self::changes::{
    AdoptTask, AppendPieces, CreateTask, GiveBackTask, RemoveOrphans, RemoveTasks, ResealTasks, TakeTasks,
    WriteTask,
};
use self::renewer::SqliteRenewer;
#[cfg(test)]
pub(super) use self::statements::ALL_STATEMENTS;
use self::statements::{
    EXPIRED, JOURNAL_OF, LIST, NEXT_ACCOUNT, NEXT_KIND, ORPHAN, ORPHANS, PARTS_FROM, READ, SMALL_WORK, VIEW,
    VIEW_AND_RESULT, WORK,
};
pub(super) use self::statements::{LAST, NEXT};
pub(super) use self::watch::OtherProcesses;
use super::Sql;
use super::file::File;
use super::own_connection::OwnConnection;
use super::reader::Reader;
use super::writer::Writer;
use crate::tasks::{
    Answer, Origin, Pair, PairSearch, Reseal, Rows, Unreadable, Wish, digest_of, id_of, last_of, number_of,
    owner_of, readable, signed, unsigned,
};

/// Statements of tasks.
pub(super) struct SqliteTasks {
    pub(super) file: File,
    pub(super) writer: Writer,
    pub(super) reader: Reader,
    pub(super) origin: Origin,
}

impl Rows for SqliteTasks {
    async fn create(&self, task: &NewTask, most: usize, now: Millis) -> Answer<bool> {
        let most = signed(most as u64);
        self.writer.run(CreateTask { task: task.clone(), most, now, origin: self.origin }).await
    }

    async fn view(&self, key: &TaskKey, with_result: bool, now: Millis) -> Answer<Option<StoredView>> {
        let key = key.clone();
        let view = move |connection: &Connection| {
            let parameters = params![key.id.as_str(), key.service.as_bytes(), key.owner.as_bytes()];
            let view = if with_result { VIEW_AND_RESULT } else { VIEW };
            connection.prepare_cached(view)?.query_row(parameters, |row| view_of(row, now)).optional()
        };
        self.reader.few(view).await
    }

    async fn read(&self, key: &TaskKey, now: Millis) -> Answer<Option<StoredTask>> {
        let key = key.clone();
        let read = move |connection: &Connection| {
            let parameters =
                params![key.id.as_str(), key.service.as_bytes(), key.owner.as_bytes(), signed(now.0)];
            let task = |row: &Row<'_>| {
                Ok(StoredTask {
                    key: key.clone(),
                    version: unsigned(row.get(0)?),
                    fence: unsigned(row.get(1)?),
                    is_held: row.get::<_, Option<bool>>(2)?.unwrap_or_default(),
                    view: bytes(row, 3)?,
                    work: bytes(row, 4)?,
                })
            };
            connection.prepare_cached(READ)?.query_row(parameters, task).optional()
        };
        self.reader.few(read).await
    }

    async fn load(&self, key: &TaskKey) -> Answer<Option<(TaskWork, Vec<Chunk>)>> {
        // Most tasks have a small call and no journal, which is one row.
        let own = key.clone();
        let small = move |connection: &Connection| {
            let parameters = params![own.id.as_str(), own.service.as_bytes(), own.owner.as_bytes()];
            connection.prepare_cached(SMALL_WORK)?.query_row(parameters, small_work_of).optional()
        };
        match self.reader.few(small).await? {
            None => return Ok(None),
            Some(Some(work)) => return Ok(Some((work, Vec::new()))),
            Some(None) => {}
        }
        let key = key.clone();
        let load = move |connection: &Connection| {
            let parameters = params![key.id.as_str(), key.service.as_bytes(), key.owner.as_bytes()];
            // The journal first: if the task ends in between, its call is gone.
            let mut journal = connection.prepare_cached(JOURNAL_OF)?;
            let journal = journal.query_map(parameters, chunk_of)?.collect::<Sql<_>>()?;
            let work = connection.prepare_cached(WORK)?.query_row(parameters, work_of).optional()?;
            Ok(work.map(|work| (work, journal)))
        };
        self.reader.many(load).await
    }

    async fn parts(&self, key: &TaskKey, from: u32, most: usize) -> Answer<Vec<Chunk>> {
        let (key, most) = (key.clone(), signed(most as u64));
        let parts = move |connection: &Connection| {
            let parameters =
                params![key.id.as_str(), key.service.as_bytes(), key.owner.as_bytes(), from, most];
            connection.prepare_cached(PARTS_FROM)?.query_map(parameters, chunk_of)?.collect()
        };
        self.reader.many(parts).await
    }

    async fn write(&self, change: &TaskChange, now: Millis) -> Answer<bool> {
        self.writer.run(WriteTask { change: change.clone(), now, origin: self.origin }).await
    }

    async fn append(&self, key: &TaskKey, fence: u64, pieces: &[Chunk]) -> Answer<bool> {
        self.writer.run(AppendPieces { key: key.clone(), fence, pieces: pieces.to_vec() }).await
    }

    async fn pairs(&self, search: &PairSearch, now: Millis) -> Answer<Vec<Pair>> {
        let search = search.clone();
        let pairs = move |connection: &Connection| {
            let mut pairs = pairs_of(connection, &search, false, now)?;
            pairs.extend(pairs_of(connection, &search, true, now)?);
            Ok(pairs)
        };
        self.reader.many(pairs).await
    }

    async fn take(&self, wish: &Wish, now: Millis) -> Answer<Vec<TakenTask>> {
        self.writer.run(TakeTasks { wish: wish.clone(), now }).await
    }

    async fn give_back(&self, key: &TaskKey, fence: u64, now: Millis) -> Answer<Option<u64>> {
        self.writer.run(GiveBackTask { key: key.clone(), fence, now, origin: self.origin }).await
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        Box::new(SqliteRenewer(OwnConnection::new(self.file.clone())))
    }

    async fn expired(&self, service: &Digest, now: Millis, most: usize) -> Answer<Vec<ExpiredTask>> {
        let (service, most) = (*service, signed(most as u64));
        let expired = move |connection: &Connection| {
            let parameters = params![service.as_bytes(), signed(now.0), most];
            readable_rows(connection, EXPIRED, parameters, |row| {
                let key = TaskKey { service, owner: owner(row, 1)?, id: id(row)? };
                Ok(ExpiredTask { key, version: unsigned(row.get(2)?), is_live: row.get(3)? })
            })
        };
        self.reader.many(expired).await
    }

    async fn remove(&self, service: &Digest, tasks: &[(TaskId, u64)]) -> Answer<()> {
        self.writer.run(RemoveTasks { service: *service, tasks: tasks.to_vec() }).await
    }

    async fn list(
        &self,
        service: &Digest,
        owner: &TaskOwner,
        after: Option<&TaskId>,
        most: usize,
    ) -> Answer<Vec<(TaskId, Bytes)>> {
        let after = after.map_or("", TaskId::as_str).to_owned();
        let (service, owner, most) = (*service, *owner, signed(most as u64));
        let list = move |connection: &Connection| {
            let parameters = params![service.as_bytes(), owner.as_bytes(), after, most];
            readable_rows(connection, LIST, parameters, |row| Ok((id(row)?, bytes(row, 1)?)))
        };
        self.reader.many(list).await
    }

    async fn orphans(&self, after: Option<&TaskId>, most: usize) -> Answer<Vec<OrphanTask>> {
        let (after, most) = (after.map_or("", TaskId::as_str).to_owned(), signed(most as u64));
        let orphans = move |connection: &Connection| {
            readable_rows(connection, ORPHANS, params![after, most], |row| {
                let (id, owner, version) = (id(row)?, owner(row, 1)?, unsigned(row.get(2)?));
                Ok(OrphanTask { id, owner, version, view: Bytes::new(), work: Bytes::new() })
            })
        };
        self.reader.many(orphans).await
    }

    async fn orphan(&self, owner: &TaskOwner, id: &TaskId) -> Answer<Option<OrphanTask>> {
        let (owner, id) = (*owner, id.clone());
        let orphan = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(ORPHAN)?;
            statement.query_row(params![id.as_str(), owner.as_bytes()], orphan_of).optional()
        };
        self.reader.few(orphan).await
    }

    async fn remove_orphans(&self, now: Millis, most: usize) -> Answer<usize> {
        self.writer.run(RemoveOrphans { now, most: signed(most as u64) }).await
    }

    async fn adopt(&self, task: &AdoptedTask) -> Answer<bool> {
        self.writer.run(AdoptTask { task: task.clone(), origin: self.origin }).await
    }

    async fn reseal(&self, stale: &[Reseal]) -> Answer<()> {
        self.writer.run(ResealTasks(stale.to_vec())).await
    }

    /// Other processes find changes by their numbers.
    fn tell(&self, _: &ChangedTask) {}
}

/// Returns the next pairs of free tasks or of held ones, a search of the index for each.
fn pairs_of(connection: &Connection, search: &PairSearch, held: bool, now: Millis) -> Sql<Vec<Pair>> {
    let mut next_account = connection.prepare_cached(NEXT_ACCOUNT)?;
    let mut next_kind = connection.prepare_cached(NEXT_KIND)?;
    let after = search.after.map(|pair| (pair.kind.as_bytes().to_vec(), pair.account.as_bytes().to_vec()));
    let (mut kind, mut account) = after.unwrap_or_default();
    let (mut pairs, mut due) = (Vec::new(), 0);
    while pairs.len() < search.steps && due < search.due {
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?));
        let service = search.service.as_bytes();
        let found = next_account.query_row(params![service, held, kind, account], row).optional()?;
        let found = match found {
            None => next_kind.query_row(params![service, held, kind], row).optional()?,
            found => found,
        };
        let Some(found) = found else { break };
        let is_due = found.2 <= signed(now.0);
        (kind, account) = (found.0, found.1);
        let waiting = Waiting {
            kind: digest_of("kind", &kind).map_err(unreadable)?,
            account: digest_of("account", &account).map_err(unreadable)?,
        };
        if search.kinds.binary_search(&waiting.kind).is_err() {
            account = last_of(waiting.kind).account.as_bytes().to_vec();
        }
        due += usize::from(is_due);
        pairs.push(Pair { held, waiting, is_due });
    }
    Ok(pairs)
}

fn view_of(row: &Row<'_>, now: Millis) -> Sql<StoredView> {
    let due: Option<i64> = row.get(2)?;
    Ok(StoredView {
        view: bytes(row, 0)?,
        kind: digest_of("kind", row.get_ref(1)?.as_blob()?).map_err(unreadable)?,
        is_waiting: due.is_some_and(|due| due <= signed(now.0)),
        result: row.get_ref(3)?.as_blob_or_null()?.map(Bytes::copy_from_slice),
    })
}

fn work_of(row: &Row<'_>) -> Sql<TaskWork> {
    let (version, fence) = (unsigned(row.get(0)?), unsigned(row.get(1)?));
    Ok(TaskWork { version, fence, work: bytes(row, 2)?, call: bytes(row, 3)?, journal: Vec::new() })
}

/// Returns a task as its worker needs it, if its row is all there is to load.
fn small_work_of(row: &Row<'_>) -> Sql<Option<TaskWork>> {
    let has_journal: bool = row.get(4)?;
    let is_small = !has_journal && row.get_ref(3)?.as_blob_or_null()?.is_some();
    is_small.then(|| work_of(row)).transpose()
}

fn orphan_of(row: &Row<'_>) -> Sql<OrphanTask> {
    let (id, owner, version) = (id(row)?, owner(row, 1)?, unsigned(row.get(2)?));
    Ok(OrphanTask { id, owner, version, view: bytes(row, 3)?, work: bytes(row, 4)? })
}

fn chunk_of(row: &Row<'_>) -> Sql<Chunk> {
    Ok(Chunk { number: number_of(row.get(0)?), bytes: bytes(row, 1)? })
}

fn bytes(row: &Row<'_>, column: usize) -> Sql<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_blob()?))
}

fn id(row: &Row<'_>) -> Sql<TaskId> {
    id_of(row.get_ref(0)?.as_str()?).map_err(unreadable)
}

fn owner(row: &Row<'_>, column: usize) -> Sql<TaskOwner> {
    owner_of(row.get_ref(column)?.as_blob()?).map_err(unreadable)
}

/// Returns the rows that could be read. What is not of a row is an error of all.
fn readable_rows<T>(
    connection: &Connection,
    statement: &'static str,
    parameters: impl Params,
    read: impl Fn(&Row<'_>) -> Sql<T>,
) -> Sql<Vec<T>> {
    let mut statement = connection.prepare_cached(statement)?;
    let rows = statement.query_map(parameters, |row| Ok(read(row)))?;
    Ok(readable(rows.collect::<Sql<Vec<_>>>()?.into_iter()))
}

fn unreadable(column: Unreadable) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, Box::new(column))
}
