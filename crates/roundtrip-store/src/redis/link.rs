//! [`Link`]: the connection of a store, made again when it breaks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, FromRedisValue, RedisError, Script, ScriptInvocation};
use tokio::sync::Mutex;

use crate::StoreError;

const TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that all requests share: answers come in the order of questions.
pub(super) struct Link {
    client: Client,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Link {
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        if url.starts_with("rediss:") {
            // Rustls wants to know its provider. An application that has chosen one keeps it.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        // The error may quote the address.
        let client = Client::open(url).map_err(|_| StoreError::Address("redis"))?;
        Ok(Self { client, connection: Mutex::new(None) })
    }

    /// Returns a link with its own connection to the same database.
    pub(super) fn another(&self) -> Self {
        Self { client: self.client.clone(), connection: Mutex::new(None) }
    }

    /// Runs a script.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connect().await?;
        let outcome = script.invoke_async(&mut connection).await;
        self.checked(outcome).await
    }

    /// Runs a command.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, StoreError> {
        let mut connection = self.connect().await?;
        let outcome = command.query_async(&mut connection).await;
        self.checked(outcome).await
    }

    /// Runs commands in one exchange.
    pub(super) async fn query_all<T: FromRedisValue>(
        &self,
        commands: &redis::Pipeline,
    ) -> Result<T, StoreError> {
        let mut connection = self.connect().await?;
        let outcome = commands.query_async(&mut connection).await;
        self.checked(outcome).await
    }

    /// Sets the version of the layout if there is none or an earlier one, and returns the one that is there.
    pub(super) async fn schema(&self, key: &str, known: i64) -> Result<i64, StoreError> {
        let script = Script::new(include_str!("scripts/schema.lua"));
        self.run(script.key(key).arg(known)).await
    }

    /// Warns if the database may forget records to make room.
    pub(super) async fn warn_of_eviction(&self) {
        let info: Result<String, _> = self.query(redis::cmd("INFO").arg("memory")).await;
        let policy = info.unwrap_or_default();
        let policy = policy.lines().find_map(|line| line.trim().strip_prefix("maxmemory_policy:"));
        if let Some(policy) = policy.filter(|policy| *policy != "noeviction") {
            tracing::warn!(
                policy,
                "this database may evict records, and their rounds run again: set `maxmemory-policy noeviction`"
            );
        }
    }

    async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = &*connection {
            return Ok(open.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        let new = self.client.get_multiplexed_async_connection_with_config(&config).await.map_err(error)?;
        *connection = Some(new.clone());
        Ok(new)
    }

    /// Drops the connection after an error that it may not survive, so that the next request makes a new one.
    async fn checked<T>(&self, outcome: Result<T, RedisError>) -> Result<T, StoreError> {
        let outcome = outcome.map_err(error);
        if let Err(StoreError::Unavailable(_) | StoreError::ReadOnly) = &outcome {
            *self.connection.lock().await = None;
        }
        outcome
    }
}

/// The client has the password in it.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

/// Names an error by its code; one without is of the connection.
fn error(error: RedisError) -> StoreError {
    match error.code() {
        Some("OOM" | "MISCONF") => StoreError::NoSpace,
        Some("READONLY") => StoreError::ReadOnly,
        Some("LOADING" | "MASTERDOWN" | "BUSY" | "TRYAGAIN" | "CLUSTERDOWN") => {
            StoreError::Unavailable(Arc::new(error))
        }
        Some(_) => StoreError::Refused(Arc::new(error)),
        None => StoreError::Unavailable(Arc::new(error)),
    }
}
