//! [`Postgres`]: a store in PostgreSQL.

mod connections;
mod ledger;
mod listener;
mod own_connection;
mod rates;
mod tasks;

use std::ffi::OsString;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::time::sleep;

use self::connections::Connections;
use self::ledger::PostgresRecords;
use self::listener::OtherInstances;
use self::rates::PostgresRates;
use self::tasks::PostgresTasks;
use crate::ledger::{SharedLedger, ledger_of};
use crate::opening::{Open, Settings};
use crate::rates::rates_of;
use crate::retry::{in_time, retry_within};
use crate::schema::{MIGRATION_TIME, Migrations, warn_of_left_out};
use crate::tasks::{SharedTasks, new_origin, tasks_of};
use crate::{Opening, StoreError};

const MIGRATIONS: Migrations = Migrations(&[
    include_str!("../../migrations/postgres/0001-ledger.sql"),
    include_str!("../../migrations/postgres/0002-tasks.sql"),
    include_str!("../../migrations/postgres/0003-rates.sql"),
    include_str!("../../migrations/postgres/0004-task-services.sql"),
]);

/// Version of the tables that made tasks a service's own.
const TASK_SERVICES: i64 = 4;

/// Shortest and longest pause between two attempts at the lock under which tables are made.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// Number of the advisory lock under which tables are made: "roundtri" in ASCII.
const MIGRATION_LOCK: i64 = 0x726f_756e_6474_7269;

/// A store of rounds, tasks and [rate limits](roundtrip::RateLimit) in PostgreSQL, for a fleet. Clones share it.
///
/// Tables are made in the first schema of the connection's search path, and their names begin with `roundtrip_`.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use roundtrip::{Keyring, Server, Tasks};
/// use roundtrip_store::Postgres;
///
/// let store = Postgres::connect(&std::env::var("DATABASE_URL")?).sealed_by(Keyring::from_env("STORE_KEYS")?).await?;
/// let server = Server::new("shop", "1.0.0").tasks(Tasks::new(store.clone())).ledger(store);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Postgres {
    ledger: SharedLedger<PostgresRecords>,
    tasks: SharedTasks<PostgresTasks>,
    rates: Arc<PostgresRates>,
}

impl Postgres {
    /// Connects to a database: `postgres://user:password@host/database?sslmode=verify-full`.
    ///
    /// # Errors
    /// Awaiting it fails if the address cannot be read, the database cannot be reached within 10 seconds, refuses the
    /// user, or has the tables of a later release. Tables of an earlier release are brought up to date, which may take minutes.
    pub fn connect(url: &str) -> Opening<Self> {
        Opening::new(url)
    }
}

impl Opening<Postgres> {
    /// Sets how many connections are opened at most, in place of 8. They are opened when they are needed.
    pub fn connections(mut self, connections: usize) -> Self {
        self.settings.connections = connections.max(1);
        self
    }
}

ledger_of!(Postgres);
tasks_of!(Postgres);
rates_of!(Postgres);

impl Open for Postgres {
    async fn open(url: OsString, settings: Settings) -> Result<Self, StoreError> {
        settings.check("postgres")?;
        let url = url.to_str().ok_or(StoreError::Address("postgres"))?;
        // The error may quote the address.
        let options = PgConnectOptions::from_str(url).map_err(|_| StoreError::Address("postgres"))?;
        let options = options.application_name("roundtrip").disable_statement_logging();
        let connections = Arc::new(Connections::new(options.clone(), settings.connections));
        retry_within(MIGRATION_TIME, || connections.with_new(migrate)).await?;
        let origin = new_origin()?;
        let rows = PostgresTasks::start(Arc::clone(&connections), options.clone(), origin);
        let elsewhere = OtherInstances { options: options.clone(), origin };
        let tasks = SharedTasks::new(rows, elsewhere, &settings);
        let rates = Arc::new(PostgresRates::new(Arc::clone(&connections)));
        let records = PostgresRecords { connections, options, settings: settings.clone() };
        Ok(Self { ledger: SharedLedger::start(records, &settings)?, tasks, rates })
    }
}

/// Makes the tables, or brings them up to date, under a lock that all instances take.
async fn migrate(mut connection: PgConnection) -> Result<PgConnection, StoreError> {
    let mut transaction = in_time(async { connection.begin().await.map_err(error) }).await?;
    lock(&mut transaction).await?;
    let found = in_time(version(&mut transaction)).await?;
    for (version, step) in MIGRATIONS.after(found)? {
        let moves_tasks = version == TASK_SERVICES;
        let before = if moves_tasks {
            count(&mut transaction, "SELECT count(*) FROM roundtrip_tasks").await?
        } else {
            0
        };
        // A bound for the statements of calls is not meant for this one.
        let unbounded = sqlx::raw_sql("SET LOCAL statement_timeout = 0");
        unbounded.execute(&mut *transaction).await.map_err(error)?;
        sqlx::raw_sql(step).execute(&mut *transaction).await.map_err(error)?;
        if moves_tasks {
            let after = count(&mut transaction, "SELECT count(*) FROM roundtrip_task").await?;
            warn_of_left_out(before - after);
        }
        let insert = sqlx::query("INSERT INTO roundtrip_schema (version) VALUES ($1)").bind(version);
        insert.execute(&mut *transaction).await.map_err(error)?;
    }
    transaction.commit().await.map_err(error)?;
    Ok(connection)
}

/// Waits for the lock of a migration as long as another instance has it. Each attempt is an exchange of its own, so that a database
/// that does not answer is noticed.
async fn lock(connection: &mut PgConnection) -> Result<(), StoreError> {
    let (mut pause, longest) = PAUSES;
    loop {
        let lock = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(MIGRATION_LOCK);
        if in_time(async { lock.fetch_one(&mut *connection).await.map_err(error) }).await? {
            return Ok(());
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Returns the version of the tables.
async fn version(connection: &mut PgConnection) -> Result<i64, StoreError> {
    let table = "CREATE TABLE IF NOT EXISTS roundtrip_schema (version bigint NOT NULL)";
    sqlx::raw_sql(table).execute(&mut *connection).await.map_err(error)?;
    count(connection, "SELECT coalesce(max(version), 0) FROM roundtrip_schema").await
}

/// Returns the number that a statement finds.
async fn count(connection: &mut PgConnection, statement: &'static str) -> Result<i64, StoreError> {
    sqlx::query_scalar(statement).fetch_one(connection).await.map_err(error)
}

/// Names an error by its SQLSTATE; one without is of the connection.
fn error(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|error| error.code().map(String::from));
    match code.as_deref() {
        Some("25006") => StoreError::ReadOnly,
        Some("53100" | "53200") => StoreError::NoSpace,
        // Shutting down, starting, a connection that was idle for too long, too many connections, a deadlock, a conflict, a row that an
        // attempt of before has added at the same time: in a moment it may succeed.
        Some("57P01" | "57P02" | "57P03" | "57P05" | "53300" | "40P01" | "40001" | "23505") => {
            StoreError::Unavailable(Arc::new(error))
        }
        // The connection is broken, or a pooler in front of the database has lost it.
        Some(code) if code.starts_with("08") => StoreError::Unavailable(Arc::new(error)),
        // A value or its size, a constraint, a limit of the database: the next attempt fails the same.
        Some(code) if ["22", "23", "54"].iter().any(|class| code.starts_with(class)) => {
            StoreError::Unstorable(Arc::new(error))
        }
        Some(_) => StoreError::Refused(Arc::new(error)),
        None if matches!(error, sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. }) => {
            StoreError::Refused(Arc::new(error))
        }
        None => StoreError::Unavailable(Arc::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::error::Error;
    use std::fmt;

    use sqlx::error::{DatabaseError, ErrorKind};

    use super::*;

    /// An error of the database with this SQLSTATE.
    #[derive(Debug)]
    struct State(&'static str);

    impl fmt::Display for State {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for State {}

    impl DatabaseError for State {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    /// K3: a connection that the database or a pooler in front of it has ended is not used again, and what was asked is asked again;
    /// what is refused is not.
    #[test]
    fn connections_that_have_ended_are_told_from_refusals() {
        let named = |code| error(sqlx::Error::Database(Box::new(State(code))));
        for code in ["57P01", "57P02", "57P03", "57P05", "08000", "08003", "08006", "08P01", "53300", "40001"]
        {
            assert!(matches!(named(code), StoreError::Unavailable(_)), "{code}");
        }
        for code in ["42601", "42501", "57014", "55P03", "0A000"] {
            assert!(matches!(named(code), StoreError::Refused(_)), "{code}");
        }
        for code in ["22021", "23514", "54000"] {
            assert!(matches!(named(code), StoreError::Unstorable(_)), "{code}");
        }
        assert!(matches!(named("25006"), StoreError::ReadOnly));
        assert!(matches!(named("53100"), StoreError::NoSpace));
    }
}
