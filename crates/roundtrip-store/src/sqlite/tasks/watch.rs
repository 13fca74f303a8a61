//! Changes of tasks that other processes have made.

use std::time::Duration;

use roundtrip::seal::BoxFuture;
use roundtrip::task::{ChangedTask, TaskId};
use rusqlite::{Connection, OptionalExtension as _};

use super::id;
use super::statements::{CHANGED, LAST};
use crate::StoreError;
use crate::sqlite::reader::Reader;
use crate::tasks::{Elsewhere, Heard, Origin, signed, unsigned};

/// Pause between two looks for commits of other processes.
const LOOK: Duration = Duration::from_millis(50);

/// Most changes of other processes that are read at once.
const CHANGES: usize = 500;

/// Looks for the commits of other processes.
pub(in crate::sqlite) struct OtherProcesses {
    pub(in crate::sqlite) reader: Reader,
    pub(in crate::sqlite) origin: Origin,
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
                if let Some(id) = change.id.filter(|_| change.origin != self.origin) {
                    heard.changed(ChangedTask { id, version: change.version, is_due: change.is_due });
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
                    id: id(row).ok(),
                    version: unsigned(row.get(1)?),
                    number: row.get(2)?,
                    origin: row.get_ref(3)?.as_blob()?.to_vec(),
                    is_due: row.get(4)?,
                })
            })?;
            rows.collect()
        };
        self.reader.many(changes).await
    }
}

/// A change of any process.
struct Changed {
    /// `None` if it cannot be read.
    id: Option<TaskId>,
    version: u64,
    number: i64,
    origin: Vec<u8>,
    is_due: bool,
}
