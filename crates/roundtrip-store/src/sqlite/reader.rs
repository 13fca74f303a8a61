//! [`Reader`]: the connection of a process that reads. It does not wait for commits. Looks at tasks that wait together are one
//! statement: the way to the connection's thread and back costs more than what is read.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use roundtrip::task::{TaskId, TaskOwner};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Row, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard, oneshot};

use super::error;
use crate::StoreError;

pub(super) const VIEW: &str = "SELECT id, owner, view FROM roundtrip_tasks WHERE id = ?";
pub(super) const VIEWS: &str = "SELECT id, owner, view FROM roundtrip_tasks WHERE id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Most looks in one statement: the number of values in [`VIEWS`].
const GROUP: usize = 16;

/// Handle to the connection, which is opened when it is first needed.
#[derive(Clone)]
pub(super) struct Reader(Arc<Inner>);

struct Inner {
    options: SqliteConnectOptions,
    connection: Mutex<Option<SqliteConnection>>,
    looks: std::sync::Mutex<VecDeque<Look>>,
}

/// A look at a task that waits for the connection.
struct Look {
    id: TaskId,
    owner: TaskOwner,
    reply: oneshot::Sender<Result<Option<Bytes>, StoreError>>,
}

impl Reader {
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        Self(Arc::new(Inner { options, connection: Mutex::default(), looks: std::sync::Mutex::default() }))
    }

    /// Runs a statement that changes nothing. It sees what was committed before.
    pub(super) async fn rows(
        &self,
        statement: Query<'_, sqlx::Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let held = self.0.connection.lock().await;
        self.0.rows(held, statement).await
    }

    /// Returns the view of a task of this owner. The first that gets the connection reads for all that wait.
    pub(super) async fn view(&self, owner: &TaskOwner, id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        let (reply, mut answer) = oneshot::channel();
        self.0.looks().push_back(Look { id: id.clone(), owner: *owner, reply });
        // Requests that have arrived together are read together.
        tokio::task::yield_now().await;
        loop {
            tokio::select! {
                biased;
                // Closed if the one that read was dropped in the middle of it.
                answer = &mut answer => return answer.unwrap_or(Err(StoreError::TimedOut)),
                held = self.0.connection.lock() => self.0.look(held).await,
            }
        }
    }
}

impl Inner {
    async fn rows(
        &self,
        mut held: MutexGuard<'_, Option<SqliteConnection>>,
        statement: Query<'_, sqlx::Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let connection = match &mut *held {
            Some(connection) => connection,
            none => none.insert(self.options.connect().await.map_err(error)?),
        };
        let rows = statement.fetch_all(connection).await.map_err(error);
        if rows.as_ref().is_err_and(StoreError::is_passing) {
            *held = None;
        }
        rows
    }

    fn looks(&self) -> std::sync::MutexGuard<'_, VecDeque<Look>> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads for those that have waited longest.
    async fn look(&self, held: MutexGuard<'_, Option<SqliteConnection>>) {
        let group: Vec<Look> = {
            let mut looks = self.looks();
            let most = looks.len().min(GROUP);
            looks.drain(..most).filter(|look| !look.reply.is_closed()).collect()
        };
        let rows = match &group[..] {
            [] => return,
            [look] => self.rows(held, sqlx::query(VIEW).bind(look.id.as_str())).await,
            looks => {
                let ids = looks.iter().map(|look| Some(look.id.as_str()));
                let ids = ids.chain(std::iter::repeat(None)).take(GROUP);
                self.rows(held, ids.fold(sqlx::query(VIEWS), Query::bind)).await
            }
        };
        for look in group {
            let view = rows.as_ref().map_err(Clone::clone).and_then(|rows| look.find(rows).map_err(error));
            // It may have gone away.
            let _ = look.reply.send(view);
        }
    }
}

impl Look {
    /// Returns the view, if it is among the rows and of this owner.
    fn find(&self, rows: &[SqliteRow]) -> Result<Option<Bytes>, sqlx::Error> {
        for row in rows {
            let (id, owner): (&str, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
            if id == self.id.as_str() && owner == self.owner.as_bytes() {
                return Ok(Some(Bytes::copy_from_slice(row.try_get(2)?)));
            }
        }
        Ok(None)
    }
}

/// The options have the path in them.
impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
