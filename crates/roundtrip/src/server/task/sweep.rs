//! Tasks whose time to live is over: those that have not ended fail, the others are removed.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::errors::over;
use crate::task::{Ended, Millis, Record, StoredTask, TaskStoreError, TaskStoreHandle};

/// Time between two looks for tasks that have expired.
const SWEEP: Duration = Duration::from_secs(5);
/// Most tasks that are removed at once: a store may commit them together.
const SWEPT: usize = 100;
/// Most batches that one look removes; the rest waits for the next.
const BATCHES: usize = 100;

/// Removes tasks from a store for as long as it is there. It does so beside the workers, which do not wait for it.
pub(super) async fn sweep(store: impl Fn() -> Option<TaskStoreHandle>) {
    loop {
        sleep(SWEEP).await;
        let Some(store) = store() else { return };
        for _ in 0..BATCHES {
            match batch(&store).await {
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

/// Ends or removes a batch of tasks, and returns how many there were.
async fn batch(store: &TaskStoreHandle) -> Result<usize, TaskStoreError> {
    let now = Millis::now();
    let expired = store.0.expired(now, SWEPT).await?;
    let (number, mut swept) = (expired.len(), JoinSet::new());
    for stored in expired {
        let store = store.clone();
        swept.spawn(async move { end_or_remove(&store, stored, now).await });
    }
    while let Some(ended) = swept.join_next().await {
        // A store that panics has failed for one task; the next look finds it again.
        ended.unwrap_or(Ok(()))?;
    }
    Ok(number)
}

/// Ends a task that has not: it can be read as failed for a while. One that has ended, or cannot be read, is removed.
async fn end_or_remove(
    store: &TaskStoreHandle,
    mut stored: StoredTask,
    now: Millis,
) -> Result<(), TaskStoreError> {
    let fails = Record::read(&stored).is_ok_and(|mut record| {
        let fails = !record.has_ended();
        record.end(Ended::Failed(over()), now);
        fails && record.put(&mut stored, None).is_ok()
    });
    if fails {
        store.0.write(stored).await.map(drop)
    } else {
        store.0.remove(&stored.id, stored.version).await
    }
}
