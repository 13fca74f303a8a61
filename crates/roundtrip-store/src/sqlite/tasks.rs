//! Tasks in SQLite. Changes go through the writer, reads past it.

use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::BoxFuture;
use roundtrip::task::{Millis, StoredTask, TaskId, TaskOwner};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::Sql;
use super::reader::Reader;
use super::writer::{Change, Writer};
use crate::StoreError;
use crate::tasks::{Elsewhere, Heard, Origin, Part, Rows, TaskRow, Unreadable, signed, unsigned};

/// Columns of a task, in the order of [`task_of`].
macro_rules! columns {
    () => {
        "id, owner, account, version, fence, live, due, expires, view, work"
    };
}

const LIVE: &str = "SELECT live FROM roundtrip_tasks_live WHERE account = ?";
const KNOWN: &str = "SELECT 1 FROM roundtrip_tasks WHERE id = ?";
const NEXT: &str = "UPDATE roundtrip_tasks_changes SET last = last + 1 WHERE one = 1 RETURNING last";
const CREATE: &str = concat!(
    "INSERT INTO roundtrip_tasks (",
    columns!(),
    ", changed, origin) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
);
const VIEW: &str = "SELECT view FROM roundtrip_tasks WHERE id = ? AND owner = ?";
const READ: &str = concat!("SELECT ", columns!(), " FROM roundtrip_tasks WHERE id = ? AND owner = ?");
const WRITE: &str = "UPDATE roundtrip_tasks SET version = version + 1, fence = ?, live = ?, due = ?, expires = ?, view = ?, \
                     work = ?, changed = ?, origin = ? WHERE id = ? AND version = ?";
const IS_DUE: &str = "SELECT 1 FROM roundtrip_tasks WHERE due <= ? LIMIT 1";
const DUE: &str = "SELECT id FROM roundtrip_tasks WHERE due <= ? ORDER BY due LIMIT ?";
const TAKE: &str = concat!(
    "UPDATE roundtrip_tasks SET due = ?, version = version + 1, fence = fence + 1 WHERE id = ? RETURNING ",
    columns!()
);
const EXPIRED: &str =
    concat!("SELECT ", columns!(), " FROM roundtrip_tasks WHERE expires <= ? ORDER BY expires LIMIT ?");
const REMOVE: &str = "DELETE FROM roundtrip_tasks WHERE id = ? AND version = ?";
const LIST: &str = "SELECT id, view FROM roundtrip_tasks WHERE owner = ? AND id > ? ORDER BY id LIMIT ?";
const RESEAL_VIEW: &str = "UPDATE roundtrip_tasks SET view = ? WHERE id = ? AND view = ?";
const RESEAL_WORK: &str = "UPDATE roundtrip_tasks SET work = ? WHERE id = ? AND work = ?";
const LAST: &str = "SELECT last FROM roundtrip_tasks_changes WHERE one = 1";
const CHANGED: &str =
    "SELECT id, version, changed, origin FROM roundtrip_tasks WHERE changed > ? ORDER BY changed LIMIT ?";

/// Every statement: a test shows that none looks at tasks one by one (K7).
#[cfg(test)]
pub(super) const ALL_STATEMENTS: &[&str] = &[
    LIVE,
    KNOWN,
    NEXT,
    CREATE,
    VIEW,
    READ,
    WRITE,
    IS_DUE,
    DUE,
    TAKE,
    EXPIRED,
    REMOVE,
    LIST,
    RESEAL_VIEW,
    RESEAL_WORK,
    LAST,
    CHANGED,
];

/// Pause between two looks for commits of other processes.
const LOOK: Duration = Duration::from_millis(50);

/// Most changes of other processes that are read at once.
const CHANGES: usize = 500;

/// Statements of tasks.
#[derive(Debug)]
pub(super) struct SqliteTasks {
    pub(super) writer: Writer,
    pub(super) reader: Reader,
    pub(super) origin: Origin,
}

impl Rows for SqliteTasks {
    async fn create(&self, task: &StoredTask, most: usize) -> Result<bool, StoreError> {
        let most = signed(most as u64);
        self.writer.run(CreateTask { task: task.clone(), most, origin: self.origin }).await
    }

    async fn view(&self, owner: &TaskOwner, id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        let (owner, id) = (*owner.as_bytes(), id.clone());
        let view = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(VIEW)?;
            statement.query_row(params![id.as_str(), owner], |row| bytes(row, 0)).optional()
        };
        self.reader.few(view).await
    }

    async fn read(&self, owner: &TaskOwner, id: &TaskId) -> Result<Option<StoredTask>, StoreError> {
        let (owner, id) = (*owner.as_bytes(), id.clone());
        let read = move |connection: &Connection| {
            connection.prepare_cached(READ)?.query_row(params![id.as_str(), owner], task_of).optional()
        };
        self.reader.few(read).await
    }

    async fn write(&self, task: &StoredTask) -> Result<bool, StoreError> {
        self.writer.run(WriteTask { task: task.clone(), origin: self.origin }).await
    }

    /// Looks before it takes: a process that finds nothing to do keeps no other from writing.
    async fn take(&self, now: Millis, until: Millis, most: usize) -> Result<Vec<StoredTask>, StoreError> {
        let is_due =
            move |connection: &Connection| connection.prepare_cached(IS_DUE)?.exists([signed(now.0)]);
        if !self.reader.few(is_due).await? {
            return Ok(Vec::new());
        }
        self.writer.run(TakeTasks { now, until, most: signed(most as u64) }).await
    }

    async fn expired(&self, now: Millis, most: usize) -> Result<Vec<StoredTask>, StoreError> {
        let most = signed(most as u64);
        let expired = move |connection: &Connection| {
            connection.prepare_cached(EXPIRED)?.query_map([signed(now.0), most], task_of)?.collect()
        };
        self.reader.many(expired).await
    }

    async fn remove(&self, id: &TaskId, version: u64) -> Result<(), StoreError> {
        self.writer.run(RemoveTask { id: id.clone(), version }).await
    }

    async fn list(
        &self,
        owner: &TaskOwner,
        after: Option<&TaskId>,
        most: usize,
    ) -> Result<Vec<(TaskId, Bytes)>, StoreError> {
        let after = after.map_or("", TaskId::as_str).to_owned();
        let (owner, most) = (*owner.as_bytes(), signed(most as u64));
        let list = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(LIST)?;
            let rows =
                statement.query_map(params![owner, after, most], |row| Ok((id(row)?, bytes(row, 1)?)))?;
            rows.collect()
        };
        self.reader.many(list).await
    }

    async fn reseal(&self, id: &TaskId, part: Part, old: &[u8], new: &[u8]) -> Result<(), StoreError> {
        self.writer.run(ResealTask { id: id.clone(), part, old: old.to_vec(), new: new.to_vec() }).await
    }

    /// Other processes find changes by their numbers.
    fn tell(&self, _: &TaskId, _: u64) {}
}

fn task_of(row: &Row<'_>) -> Sql<StoredTask> {
    let row = TaskRow {
        id: row.get_ref(0)?.as_str()?,
        owner: row.get_ref(1)?.as_blob()?,
        account: row.get_ref(2)?.as_blob()?,
        version: row.get(3)?,
        fence: row.get(4)?,
        live: row.get(5)?,
        due: row.get(6)?,
        expires: row.get(7)?,
        view: row.get_ref(8)?.as_blob()?,
        work: row.get_ref(9)?.as_blob()?,
    };
    row.task().map_err(unreadable)
}

fn bytes(row: &Row<'_>, column: usize) -> Sql<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_blob()?))
}

fn id(row: &Row<'_>) -> Sql<TaskId> {
    TaskId::parse(row.get_ref(0)?.as_str()?).ok_or_else(|| unreadable(Unreadable("id")))
}

fn unreadable(column: Unreadable) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, Box::new(column))
}

/// Returns the number of the next change.
fn next_change(connection: &Connection) -> Sql<i64> {
    connection.prepare_cached(NEXT)?.query_row((), |row| row.get(0))
}

struct CreateTask {
    task: StoredTask,
    most: i64,
    origin: Origin,
}

impl Change for CreateTask {
    type Output = bool;

    fn run(&self, connection: &Connection) -> Sql<bool> {
        let task = &self.task;
        if connection.prepare_cached(KNOWN)?.exists([task.id.as_str()])? {
            return Ok(true);
        }
        let live: Option<i64> = connection
            .prepare_cached(LIVE)?
            .query_row([task.account.as_bytes()], |row| row.get(0))
            .optional()?;
        if live.unwrap_or_default() >= self.most {
            return Ok(false);
        }
        connection.prepare_cached(CREATE)?.execute(params![
            task.id.as_str(),
            task.owner.as_bytes(),
            task.account.as_bytes(),
            signed(task.version),
            signed(task.fence),
            task.is_live,
            task.due.map(|due| signed(due.0)),
            task.expires.map(|expires| signed(expires.0)),
            &task.view[..],
            &task.work[..],
            next_change(connection)?,
            self.origin,
        ])?;
        Ok(true)
    }
}

struct WriteTask {
    task: StoredTask,
    origin: Origin,
}

impl Change for WriteTask {
    type Output = bool;

    fn run(&self, connection: &Connection) -> Sql<bool> {
        let task = &self.task;
        let written = connection.prepare_cached(WRITE)?.execute(params![
            signed(task.fence),
            task.is_live,
            task.due.map(|due| signed(due.0)),
            task.expires.map(|expires| signed(expires.0)),
            &task.view[..],
            &task.work[..],
            next_change(connection)?,
            self.origin,
            task.id.as_str(),
            signed(task.version),
        ])?;
        Ok(written > 0)
    }
}

struct TakeTasks {
    now: Millis,
    until: Millis,
    most: i64,
}

impl Change for TakeTasks {
    type Output = Vec<StoredTask>;

    fn run(&self, connection: &Connection) -> Sql<Vec<StoredTask>> {
        let mut due = connection.prepare_cached(DUE)?;
        let due = due.query_map([signed(self.now.0), self.most], |row| row.get::<_, String>(0))?;
        let mut take = connection.prepare_cached(TAKE)?;
        // Read to its end first: taking changes the index that it is read from.
        let due: Vec<_> = due.collect::<Sql<_>>()?;
        due.iter().map(|id| take.query_row(params![signed(self.until.0), id], task_of)).collect()
    }
}

struct RemoveTask {
    id: TaskId,
    version: u64,
}

impl Change for RemoveTask {
    type Output = ();

    fn run(&self, connection: &Connection) -> Sql<()> {
        let mut remove = connection.prepare_cached(REMOVE)?;
        remove.execute(params![self.id.as_str(), signed(self.version)]).map(drop)
    }
}

struct ResealTask {
    id: TaskId,
    part: Part,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Change for ResealTask {
    type Output = ();

    fn run(&self, connection: &Connection) -> Sql<()> {
        let statement = if self.part == Part::View { RESEAL_VIEW } else { RESEAL_WORK };
        let mut reseal = connection.prepare_cached(statement)?;
        reseal.execute(params![self.new, self.id.as_str(), self.old]).map(drop)
    }
}

/// Looks for the commits of other processes.
pub(super) struct OtherProcesses {
    pub(super) reader: Reader,
    pub(super) origin: Origin,
}

/// State of the file at the last look.
#[derive(Default)]
struct Seen {
    /// Changes with every commit of another connection, and costs next to nothing to read.
    data_version: Option<i64>,
    /// Number of the last change that was read.
    last: Option<i64>,
}

impl Elsewhere for OtherProcesses {
    fn listen<'a>(&'a self, heard: &'a Heard) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut seen = Seen::default();
            loop {
                if let Err(error) = self.look(&mut seen, heard).await {
                    tracing::debug!(error = &error as &dyn std::error::Error, "changes cannot be looked for");
                    seen.data_version = None;
                }
                tokio::time::sleep(LOOK).await;
            }
        })
    }
}

impl OtherProcesses {
    async fn look(&self, seen: &mut Seen, heard: &Heard) -> Result<(), StoreError> {
        let data_version = self.number("PRAGMA data_version").await?;
        if seen.data_version == data_version {
            return Ok(());
        }
        match seen.last {
            Some(last) => seen.last = Some(self.pass_on(last, heard).await?),
            None => {
                seen.last = self.number(LAST).await?;
                heard.any();
            }
        }
        seen.data_version = data_version;
        Ok(())
    }

    async fn number(&self, statement: &'static str) -> Result<Option<i64>, StoreError> {
        let number = move |connection: &Connection| {
            connection.prepare_cached(statement)?.query_row((), |row| row.get(0)).optional()
        };
        self.reader.few(number).await
    }

    /// Passes on what others have changed after `last`, and returns the number of the last change.
    async fn pass_on(&self, mut last: i64, heard: &Heard) -> Result<i64, StoreError> {
        loop {
            let rows = self.changes_after(last).await?;
            let read = rows.len();
            for change in rows {
                last = change.number;
                if change.origin != self.origin {
                    heard.changed(change.id, change.version);
                }
            }
            if read < CHANGES {
                return Ok(last);
            }
        }
    }

    async fn changes_after(&self, last: i64) -> Result<Vec<Changed>, StoreError> {
        let changes = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(CHANGED)?;
            let rows = statement.query_map([last, signed(CHANGES as u64)], |row| {
                Ok(Changed {
                    id: id(row)?,
                    version: unsigned(row.get(1)?),
                    number: row.get(2)?,
                    origin: row.get_ref(3)?.as_blob()?.to_vec(),
                })
            })?;
            rows.collect()
        };
        self.reader.many(changes).await
    }
}

/// A change of any process.
struct Changed {
    id: TaskId,
    version: u64,
    number: i64,
    origin: Vec<u8>,
}
