//! [`Reader`]: the connection of a process that reads. It does not wait for commits.

use std::fmt;
use std::sync::Arc;

use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, SqliteConnection};
use tokio::sync::Mutex;

use super::error;
use crate::StoreError;

/// Handle to the connection, which is opened when it is first needed.
#[derive(Clone)]
pub(super) struct Reader(Arc<Inner>);

struct Inner {
    options: SqliteConnectOptions,
    connection: Mutex<Option<SqliteConnection>>,
}

impl Reader {
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        Self(Arc::new(Inner { options, connection: Mutex::default() }))
    }

    /// Runs a statement that changes nothing. It sees what was committed before.
    pub(super) async fn rows(
        &self,
        statement: Query<'_, sqlx::Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let mut held = self.0.connection.lock().await;
        let connection = match &mut *held {
            Some(connection) => connection,
            none => none.insert(self.0.options.connect().await.map_err(error)?),
        };
        let rows = statement.fetch_all(connection).await.map_err(error);
        if rows.as_ref().is_err_and(StoreError::is_passing) {
            *held = None;
        }
        rows
    }
}

/// The options have the path in them.
impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
