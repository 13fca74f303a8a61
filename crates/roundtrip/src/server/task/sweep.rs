//! Tasks whose time to live is over: those that have not ended fail, the others are removed.

use std::time::Duration;

use roundtrip_core::seal::Digest;
use tokio::time::sleep;

use super::errors::over;
use crate::server::outcome::caught;
use crate::task::{Due, Ended, ExpiredTask, Millis, Record, TaskKey, TaskStoreError, TaskStoreHandle};

/// Time between two looks for tasks that have expired.
const SWEEP: Duration = Duration::from_secs(5);
/// Most tasks that are removed at once: a store may commit them together.
const SWEPT: usize = 100;
/// Most batches that one look removes; the rest waits for the next.
const BATCHES: usize = 100;

/// Returns the store and the service to sweep, as long as there is a server.
trait Swept: Fn() -> Option<(TaskStoreHandle, Digest)> {}

impl<F: Fn() -> Option<(TaskStoreHandle, Digest)>> Swept for F {}

/// Removes tasks for as long as there is a store to sweep. One that panics is swept again after the usual pause (Z1).
#[expect(private_bounds, reason = "a name for a long bound")]
pub(super) async fn sweeps(swept: impl Swept) {
    while caught(sweep(&swept)).await.is_none() {
        tracing::error!("the task store panicked, and is swept again");
    }
}

/// Removes tasks from a store for as long as it is there. It does so beside the workers, which do not wait for it.
async fn sweep(swept: &impl Swept) {
    loop {
        sleep(SWEEP).await;
        let Some((store, service)) = swept() else { return };
        for _ in 0..BATCHES {
            match batch(&store, &service).await {
                Ok(SWEPT) => {}
                Ok(_) => break,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, "expired tasks cannot be removed");
                    break;
                }
            }
        }
    }
}

/// Ends or removes a batch of tasks, and returns how many there were. Those that have ended are not read.
async fn batch(store: &TaskStoreHandle, service: &Digest) -> Result<usize, TaskStoreError> {
    let now = Millis::now();
    let expired = store.0.expired(service, now, SWEPT).await?;
    let mut gone = Vec::new();
    for ExpiredTask { key, version, is_live } in &expired {
        if !is_live || !fail(store, key, *version, now).await? {
            gone.push((key.id.clone(), *version));
        }
    }
    store.0.remove(service, &gone).await?;
    Ok(expired.len())
}

/// Ends a task that has not: it can be read as failed for a while. Returns false if it cannot be read.
async fn fail(
    store: &TaskStoreHandle,
    key: &TaskKey,
    version: u64,
    now: Millis,
) -> Result<bool, TaskStoreError> {
    let stored = match store.0.read(key, now).await {
        Ok(stored) => stored.filter(|stored| stored.version == version),
        Err(TaskStoreError::Unreadable(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    // Another change came first: the next sweep finds it.
    let Some(stored) = stored else { return Ok(true) };
    let Ok(mut record) = Record::read(&stored.work) else { return Ok(false) };
    record.end(&Ended::Failed(over()), now);
    let Ok(change) = record.change(key, version, Due::Never) else { return Ok(false) };
    store.0.write(change, now).await.map(|_| true)
}
