//! Tasks in PostgreSQL.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip::task::{Millis, StoredTask, TaskId, TaskOwner};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::connections::Connections;
use super::error;
use super::listener::Announcer;
use crate::StoreError;
use crate::tasks::{Origin, Part, Rows, TaskRow, Unreadable, signed};

const CREATE: &str = include_str!("sql/task-create.sql");
const WRITE: &str = include_str!("sql/task-write.sql");
const TAKE: &str = include_str!("sql/task-take.sql");
const REMOVE: &str = include_str!("sql/task-remove.sql");

const VIEW: &str = "SELECT view FROM roundtrip_tasks WHERE id = $1 AND owner = $2";
const READ: &str = "SELECT id, owner, account, version, fence, live, due, expires, view, work FROM roundtrip_tasks \
                    WHERE id = $1 AND owner = $2";
const EXPIRED: &str = "SELECT id, owner, account, version, fence, live, due, expires, view, work FROM roundtrip_tasks \
                       WHERE expires <= $1 ORDER BY expires LIMIT $2";
const LIST: &str = "SELECT id, view FROM roundtrip_tasks WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3";
const RESEAL_VIEW: &str = "UPDATE roundtrip_tasks SET view = $1 WHERE id = $2 AND view = $3";
const RESEAL_WORK: &str = "UPDATE roundtrip_tasks SET work = $1 WHERE id = $2 AND work = $3";

/// Statements of tasks.
#[derive(Debug)]
pub(super) struct PostgresTasks {
    connections: Arc<Connections>,
    announcer: Announcer,
}

impl PostgresTasks {
    /// Starts the announcements, which end with it.
    pub(super) fn start(connections: Arc<Connections>, origin: Origin) -> Self {
        let announcer = Announcer::start(Arc::clone(&connections), origin);
        Self { connections, announcer }
    }
}

impl Rows for PostgresTasks {
    async fn create(&self, task: &StoredTask, most: usize) -> Result<bool, StoreError> {
        let statement = sqlx::query(CREATE)
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
            .bind(signed(most as u64));
        Ok(self.connections.run(statement).await?.is_some())
    }

    async fn view(&self, owner: &TaskOwner, id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        let statement = sqlx::query(VIEW).bind(id.as_str()).bind(&owner.as_bytes()[..]);
        self.connections.run(statement).await?.map(|row| bytes(&row, 0)).transpose()
    }

    async fn read(&self, owner: &TaskOwner, id: &TaskId) -> Result<Option<StoredTask>, StoreError> {
        let statement = sqlx::query(READ).bind(id.as_str()).bind(&owner.as_bytes()[..]);
        self.connections.run(statement).await?.as_ref().map(task_of).transpose().map_err(error)
    }

    async fn write(&self, task: &StoredTask) -> Result<bool, StoreError> {
        let statement = sqlx::query(WRITE)
            .bind(task.id.as_str())
            .bind(signed(task.version))
            .bind(signed(task.fence))
            .bind(task.is_live)
            .bind(task.due.map(|due| signed(due.0)))
            .bind(task.expires.map(|expires| signed(expires.0)))
            .bind(&task.view[..])
            .bind(&task.work[..]);
        Ok(self.connections.run(statement).await?.is_some())
    }

    async fn take(&self, now: Millis, until: Millis, most: usize) -> Result<Vec<StoredTask>, StoreError> {
        let statement = sqlx::query(TAKE).bind(signed(now.0)).bind(signed(until.0)).bind(signed(most as u64));
        tasks(&self.connections.rows(statement).await?)
    }

    async fn expired(&self, now: Millis, most: usize) -> Result<Vec<StoredTask>, StoreError> {
        let statement = sqlx::query(EXPIRED).bind(signed(now.0)).bind(signed(most as u64));
        tasks(&self.connections.rows(statement).await?)
    }

    async fn remove(&self, id: &TaskId, version: u64) -> Result<(), StoreError> {
        let statement = sqlx::query(REMOVE).bind(id.as_str()).bind(signed(version));
        self.connections.run(statement).await.map(drop)
    }

    async fn list(
        &self,
        owner: &TaskOwner,
        after: Option<&TaskId>,
        most: usize,
    ) -> Result<Vec<(TaskId, Bytes)>, StoreError> {
        let after = after.map_or("", TaskId::as_str);
        let statement = sqlx::query(LIST).bind(&owner.as_bytes()[..]).bind(after).bind(signed(most as u64));
        let rows = self.connections.rows(statement).await?;
        rows.iter().map(|row| Ok((id(row)?, bytes(row, 1)?))).collect()
    }

    async fn reseal(&self, id: &TaskId, part: Part, old: &[u8], new: &[u8]) -> Result<(), StoreError> {
        let statement = if part == Part::View { RESEAL_VIEW } else { RESEAL_WORK };
        self.connections.run(sqlx::query(statement).bind(new).bind(id.as_str()).bind(old)).await.map(drop)
    }

    fn tell(&self, id: &TaskId, version: u64) {
        self.announcer.tell(id, version);
    }
}

fn tasks(rows: &[PgRow]) -> Result<Vec<StoredTask>, StoreError> {
    rows.iter().map(task_of).collect::<Result<_, _>>().map_err(error)
}

fn task_of(row: &PgRow) -> Result<StoredTask, sqlx::Error> {
    let row = TaskRow {
        id: row.try_get(0)?,
        owner: row.try_get(1)?,
        account: row.try_get(2)?,
        version: row.try_get(3)?,
        fence: row.try_get(4)?,
        live: row.try_get(5)?,
        due: row.try_get(6)?,
        expires: row.try_get(7)?,
        view: row.try_get(8)?,
        work: row.try_get(9)?,
    };
    row.task().map_err(|column| sqlx::Error::Decode(Box::new(column)))
}

fn bytes(row: &PgRow, column: usize) -> Result<Bytes, StoreError> {
    Ok(Bytes::copy_from_slice(row.try_get(column).map_err(error)?))
}

fn id(row: &PgRow) -> Result<TaskId, StoreError> {
    let id = TaskId::parse(row.try_get(0).map_err(error)?);
    id.ok_or_else(|| error(sqlx::Error::Decode(Box::new(Unreadable("id")))))
}
