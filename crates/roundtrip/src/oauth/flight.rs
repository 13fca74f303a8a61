//! Single flight: one run of a piece of work, shared by all that want its result.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::lock::lock;

/// Work that runs at most once at a time. It runs as a task, so that it ends even if nothing waits for it any more.
#[derive(Debug)]
pub(crate) struct Flight<T> {
    running: Arc<Mutex<Option<watch::Receiver<Option<T>>>>>,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Self { running: Arc::default() }
    }
}

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    /// Joins the work that is running, or starts it. Returns `None` if it panicked or its runtime was shut down.
    pub(crate) async fn join<F>(&self, work: impl FnOnce() -> F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut landed = self.running_or(work);
        let result = landed.wait_for(Option::is_some).await.ok()?;
        result.clone()
    }

    fn running_or<F>(&self, work: impl FnOnce() -> F) -> watch::Receiver<Option<T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut running = lock(&self.running);
        if let Some(flight) = &*running {
            return flight.clone();
        }
        let (sender, receiver) = watch::channel(None);
        *running = Some(receiver.clone());
        let (work, ended) = (work(), Ended(Arc::clone(&self.running)));
        tokio::spawn(async move {
            let result = work.await;
            // A caller that comes now starts anew: it may know more than this run did.
            drop(ended);
            sender.send_replace(Some(result));
        });
        receiver
    }
}

/// Clears the flight when its task ends, also by a panic.
struct Ended<T>(Arc<Mutex<Option<watch::Receiver<Option<T>>>>>);

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;

    use tokio::sync::Notify;

    use super::*;

    /// O80: work that is wanted again while it runs is shared, and runs anew once it has ended.
    #[tokio::test]
    async fn work_runs_once_for_all_that_wait() {
        let flight = Arc::new(Flight::default());
        let (runs, release) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let join = || {
            let (flight, runs, release) = (Arc::clone(&flight), Arc::clone(&runs), Arc::clone(&release));
            async move {
                let work = || {
                    let run = runs.fetch_add(1, SeqCst);
                    async move {
                        release.notified().await;
                        run
                    }
                };
                flight.join(work).await
            }
        };
        let calls: Vec<_> = (0..100).map(|_| tokio::spawn(join())).collect();
        while runs.load(SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let late = tokio::spawn(join());
        tokio::task::yield_now().await;
        release.notify_waiters();
        release.notify_one();
        for call in calls {
            assert_eq!(call.await.unwrap(), Some(0));
        }
        assert_eq!(late.await.unwrap(), Some(0));
        release.notify_one();
        assert_eq!(join().await, Some(1));
    }
}
