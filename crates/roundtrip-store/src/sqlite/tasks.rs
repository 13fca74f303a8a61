//! Tasks in SQLite. Changes go through the writer, reads past it.

use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::BoxFuture;
use roundtrip::task::{Millis, StoredTask, TaskId, TaskOwner};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::reader::Reader;
use super::writer::{Change, Writer};
use super::{Sql, error};
use crate::StoreError;
use crate::tasks::{Elsewhere, Heard, Origin, Part, Rows, signed, task_of, unsigned};

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
const CHANGES: u32 = 500;

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
        let statement = sqlx::query(VIEW).bind(id.as_str()).bind(&owner.as_bytes()[..]);
        let rows = self.reader.rows(statement).await?;
        rows.first().map(|row| bytes(row, 0)).transpose().map_err(error)
    }

    async fn read(&self, owner: &TaskOwner, id: &TaskId) -> Result<Option<StoredTask>, StoreError> {
        let statement = sqlx::query(READ).bind(id.as_str()).bind(&owner.as_bytes()[..]);
        let rows = self.reader.rows(statement).await?;
        rows.first().map(task_of).transpose().map_err(error)
    }

    async fn write(&self, task: &StoredTask) -> Result<bool, StoreError> {
        self.writer.run(WriteTask { task: task.clone(), origin: self.origin }).await
    }

    /// Looks before it takes: a process that finds nothing to do keeps no other from writing.
    async fn take(&self, now: Millis, until: Millis, most: usize) -> Result<Vec<StoredTask>, StoreError> {
        if self.reader.rows(sqlx::query(IS_DUE).bind(signed(now.0))).await?.is_empty() {
            return Ok(Vec::new());
        }
        self.writer.run(TakeTasks { now, until, most: signed(most as u64) }).await
    }

    async fn expired(&self, now: Millis, most: usize) -> Result<Vec<StoredTask>, StoreError> {
        let statement = sqlx::query(EXPIRED).bind(signed(now.0)).bind(signed(most as u64));
        self.reader.rows(statement).await?.iter().map(task_of).collect::<Sql<_>>().map_err(error)
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
        let after = after.map_or("", TaskId::as_str);
        let statement = sqlx::query(LIST).bind(&owner.as_bytes()[..]).bind(after).bind(signed(most as u64));
        let rows = self.reader.rows(statement).await?;
        rows.iter().map(|row| Ok((id(row)?, bytes(row, 1)?))).collect::<Sql<_>>().map_err(error)
    }

    async fn reseal(&self, id: &TaskId, part: Part, old: &[u8], new: &[u8]) -> Result<(), StoreError> {
        self.writer.run(ResealTask { id: id.clone(), part, old: old.to_vec(), new: new.to_vec() }).await
    }

    /// Other processes find changes by their numbers.
    fn tell(&self, _: &TaskId, _: u64) {}
}

fn bytes(row: &SqliteRow, column: usize) -> Sql<Bytes> {
    Ok(Bytes::copy_from_slice(row.try_get(column)?))
}

fn id(row: &SqliteRow) -> Sql<TaskId> {
    TaskId::parse(row.try_get(0)?)
        .ok_or_else(|| sqlx::Error::Decode("the id of a task cannot be read".into()))
}

/// Returns the number of the next change.
async fn next_change(connection: &mut SqliteConnection) -> Sql<i64> {
    sqlx::query_scalar(NEXT).fetch_one(connection).await
}

struct CreateTask {
    task: StoredTask,
    most: i64,
    origin: Origin,
}

impl CreateTask {
    async fn insert(&self, connection: &mut SqliteConnection) -> Sql<()> {
        let (task, changed) = (&self.task, next_change(connection).await?);
        let insert = sqlx::query(CREATE)
            .bind(task.id.as_str())
            .bind(&task.owner.as_bytes()[..])
            .bind(&task.account.as_bytes()[..])
            .bind(signed(task.version))
            .bind(signed(task.fence))
            .bind(task.is_live)
            .bind(task.due.map(|due| signed(due.0)))
            .bind(task.expires.map(|expires| signed(expires.0)))
            .bind(&task.view[..])
            .bind(&task.work[..])
            .bind(changed)
            .bind(&self.origin[..]);
        insert.execute(connection).await.map(drop)
    }
}

impl Change for CreateTask {
    type Output = bool;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<bool>> {
        Box::pin(async move {
            let known =
                sqlx::query(KNOWN).bind(self.task.id.as_str()).fetch_optional(&mut *connection).await?;
            if known.is_some() {
                return Ok(true);
            }
            let live = sqlx::query_scalar::<_, i64>(LIVE).bind(&self.task.account.as_bytes()[..]);
            if live.fetch_optional(&mut *connection).await?.unwrap_or_default() >= self.most {
                return Ok(false);
            }
            self.insert(connection).await?;
            Ok(true)
        })
    }
}

struct WriteTask {
    task: StoredTask,
    origin: Origin,
}

impl Change for WriteTask {
    type Output = bool;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<bool>> {
        Box::pin(async move {
            let (task, changed) = (&self.task, next_change(connection).await?);
            let update = sqlx::query(WRITE)
                .bind(signed(task.fence))
                .bind(task.is_live)
                .bind(task.due.map(|due| signed(due.0)))
                .bind(task.expires.map(|expires| signed(expires.0)))
                .bind(&task.view[..])
                .bind(&task.work[..])
                .bind(changed)
                .bind(&self.origin[..])
                .bind(task.id.as_str())
                .bind(signed(task.version));
            Ok(update.execute(connection).await?.rows_affected() > 0)
        })
    }
}

struct TakeTasks {
    now: Millis,
    until: Millis,
    most: i64,
}

impl Change for TakeTasks {
    type Output = Vec<StoredTask>;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<Vec<StoredTask>>> {
        Box::pin(async move {
            let due = sqlx::query_scalar::<_, String>(DUE).bind(signed(self.now.0)).bind(self.most);
            let due = due.fetch_all(&mut *connection).await?;
            let mut taken = Vec::with_capacity(due.len());
            for id in due {
                let take = sqlx::query(TAKE).bind(signed(self.until.0)).bind(id);
                taken.push(task_of(&take.fetch_one(&mut *connection).await?)?);
            }
            Ok(taken)
        })
    }
}

struct RemoveTask {
    id: TaskId,
    version: u64,
}

impl Change for RemoveTask {
    type Output = ();

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<()>> {
        Box::pin(async move {
            let remove = sqlx::query(REMOVE).bind(self.id.as_str()).bind(signed(self.version));
            remove.execute(connection).await.map(drop)
        })
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

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<()>> {
        Box::pin(async move {
            let statement = if self.part == Part::View { RESEAL_VIEW } else { RESEAL_WORK };
            let update =
                sqlx::query(statement).bind(&self.new[..]).bind(self.id.as_str()).bind(&self.old[..]);
            update.execute(connection).await.map(drop)
        })
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
        let rows = self.reader.rows(sqlx::query(statement)).await?;
        rows.first().map(|row| row.try_get(0)).transpose().map_err(error)
    }

    /// Passes on what others have changed after `last`, and returns the number of the last change.
    async fn pass_on(&self, mut last: i64, heard: &Heard) -> Result<i64, StoreError> {
        loop {
            let rows = self.reader.rows(sqlx::query(CHANGED).bind(last).bind(CHANGES)).await?;
            for row in &rows {
                last = row.try_get(2).map_err(error)?;
                if row.try_get::<&[u8], _>(3).map_err(error)? != self.origin {
                    let version = unsigned(row.try_get(1).map_err(error)?);
                    heard.changed(id(row).map_err(error)?, version);
                }
            }
            if rows.len() < CHANGES as usize {
                return Ok(last);
            }
        }
    }
}
