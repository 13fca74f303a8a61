//! [`Writer`]: the one connection of a process that writes. Changes that wait together are committed together: with durable
//! commits, the disk is what takes the time.

use std::sync::Arc;
use std::thread;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::file::File;
use super::{Sql, error};
use crate::StoreError;

/// Most changes in one commit.
const GROUP: usize = 64;

/// Changes that may wait.
const QUEUE: usize = 1_024;

/// A change to the database. It may be run more than once, and only its last run counts: the others are rolled back.
pub(super) trait Change: Send + Sync + 'static {
    type Output: Send + 'static;

    fn run(&self, connection: &Connection) -> Sql<Self::Output>;
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
    fn run(&mut self, connection: &Connection) -> Sql<()>;

    /// Hands out the output of the last run, or the error.
    fn end(self: Box<Self>, outcome: Result<(), StoreError>);
}

impl<C: Change> Job for Waiting<C> {
    fn run(&mut self, connection: &Connection) -> Sql<()> {
        self.output = Some(self.change.run(connection)?);
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
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error)?;
    for job in jobs {
        job.run(&transaction).map_err(error)?;
    }
    transaction.commit().map_err(error)
}
