//! [`Writer`]: the one connection of a process that writes. Changes that wait together are committed together: with durable
//! commits, the disk is what takes the time.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::file::File;
use super::tasks::{LAST, NEXT};
use super::{Sql, error};
use crate::StoreError;

/// Most changes in one commit.
const GROUP: usize = 64;

/// Changes that may wait.
const QUEUE: usize = 1_024;

/// A change to the database. It may be run more than once, and only its last run counts: the others are rolled back.
pub(super) trait Change: Send + Sync + 'static {
    type Output: Send + 'static;

    fn run(&self, commit: &Commit<'_>) -> Sql<Self::Output>;
}

/// Transaction in which changes are made together.
pub(super) struct Commit<'a> {
    connection: &'a mut Connection,
    /// Number of its changes.
    size: usize,
    /// Numbers of changes of tasks that were taken and are not used yet.
    numbers: Cell<(i64, i64)>,
}

impl<'a> Commit<'a> {
    /// Begins a transaction for this many changes.
    pub(super) fn begin(connection: &'a mut Connection, size: usize) -> Sql<Self> {
        // Compiled once, which a `Transaction` is not.
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
        Ok(Self { connection, size, numbers: Cell::default() })
    }

    fn end(self) -> Sql<()> {
        self.prepare_cached("COMMIT")?.execute(())?;
        Ok(())
    }

    /// Returns the number of the next change of a task. Numbers are taken for all changes at once: a number that stays unused is
    /// left out.
    pub(super) fn next_number(&self) -> Sql<i64> {
        let (mut next, mut end) = self.numbers.get();
        if next == end {
            let taken = i64::try_from(self.size).unwrap_or(1).max(1);
            self.prepare_cached(NEXT)?.execute([taken])?;
            let last: i64 = self.prepare_cached(LAST)?.query_row((), |row| row.get(0))?;
            (next, end) = (last - taken + 1, last + 1);
        }
        self.numbers.set((next + 1, end));
        Ok(next)
    }
}

impl Deref for Commit<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// Rolls back what is not committed.
impl Drop for Commit<'_> {
    fn drop(&mut self) {
        if !self.is_autocommit()
            && let Err(error) = self.execute_batch("ROLLBACK")
        {
            tracing::debug!(error = &error as &dyn std::error::Error, "a transaction cannot be rolled back");
        }
    }
}

/// Handle to the thread that writes.
#[derive(Debug, Clone)]
pub(super) struct Writer(mpsc::Sender<Box<dyn Job>>);

impl Writer {
    /// Starts the thread. It ends with the last handle.
    ///
    /// # Errors
    /// Fails if the system has no thread left.
    pub(super) fn start(connection: Connection, file: File) -> Result<Self, StoreError> {
        let (sender, jobs) = mpsc::channel(QUEUE);
        let thread = thread::Builder::new().name("roundtrip-sqlite".to_owned());
        let started = thread.spawn(move || write(jobs, Some(connection), &file));
        started.map_err(|error| StoreError::Unavailable(Arc::new(error)))?;
        Ok(Self(sender))
    }

    /// Makes a change, and waits until it is durable.
    pub(super) async fn run<C: Change>(&self, change: C) -> Result<C::Output, StoreError> {
        let (reply, outcome) = oneshot::channel();
        let job = Waiting { change, output: None, reply };
        self.0.send(Box::new(job)).await.map_err(|_| StoreError::TimedOut)?;
        outcome.await.unwrap_or(Err(StoreError::TimedOut))
    }
}

/// A change with the request that waits for it.
struct Waiting<C: Change> {
    change: C,
    output: Option<C::Output>,
    reply: oneshot::Sender<Result<C::Output, StoreError>>,
}

/// A [`Waiting`] change of any type.
trait Job: Send {
    fn run(&mut self, commit: &Commit<'_>) -> Sql<()>;

    /// Hands out the output of the last run, or the error.
    fn end(self: Box<Self>, outcome: Result<(), StoreError>);
}

impl<C: Change> Job for Waiting<C> {
    fn run(&mut self, commit: &Commit<'_>) -> Sql<()> {
        self.output = Some(self.change.run(commit)?);
        Ok(())
    }

    fn end(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { output, reply, .. } = *self;
        // The request may have gone away.
        let _ = reply.send(outcome.and_then(|()| output.ok_or(StoreError::TimedOut)));
    }
}

fn write(mut jobs: mpsc::Receiver<Box<dyn Job>>, mut connection: Option<Connection>, file: &File) {
    let mut group = Vec::with_capacity(GROUP);
    while jobs.blocking_recv_many(&mut group, GROUP) > 0 {
        let mut open = match connection.take().map_or_else(|| file.connect().map_err(error), Ok) {
            Ok(open) => open,
            Err(failed) => {
                group.drain(..).for_each(|job| job.end(Err(failed.clone())));
                continue;
            }
        };
        let intact = commit_group(&mut open, &mut group);
        connection = intact.then_some(open);
    }
}

/// Commits changes together; if that fails, each by itself, so that none fails for another. False if the connection is to be
/// replaced.
fn commit_group(connection: &mut Connection, group: &mut Vec<Box<dyn Job>>) -> bool {
    let mut intact = true;
    match commit(connection, group) {
        Ok(()) => group.drain(..).for_each(|job| job.end(Ok(()))),
        Err(failed) if group.len() == 1 || matches!(failed, StoreError::Locked) => {
            intact = !failed.is_passing();
            group.drain(..).for_each(|job| job.end(Err(failed.clone())));
        }
        Err(_) => {
            for mut job in group.drain(..) {
                let outcome = commit(connection, std::slice::from_mut(&mut job));
                intact &= !outcome.as_ref().is_err_and(StoreError::is_passing);
                job.end(outcome);
            }
        }
    }
    intact
}

fn commit(connection: &mut Connection, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    let commit = Commit::begin(connection, jobs.len()).map_err(error)?;
    for job in jobs {
        job.run(&commit).map_err(error)?;
    }
    commit.end().map_err(error)
}
