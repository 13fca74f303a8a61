//! Single flight: one run of a piece of work, shared by all that want its result.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::lock::lock;

type Landing<T> = Arc<watch::Sender<Option<T>>>;
type Slot<T, L> = Arc<Mutex<Option<UnderWay<T, L>>>>;

/// Work that runs at most once at a time, with a label that says what it is for. It runs as a task, so that a caller that is
/// dropped does not end it for others.
#[derive(Debug)]
pub(crate) struct Flight<T, L = ()>(Slot<T, L>);

#[derive(Debug)]
struct UnderWay<T, L> {
    label: L,
    landing: Landing<T>,
}

/// Callers that wait for a piece of work.
pub(crate) struct Waiters<T>(Landing<T>);

impl<T> Waiters<T> {
    /// Waits until no caller waits any more.
    pub(crate) async fn gone(&self) {
        self.0.closed().await;
    }
}

/// Work that was joined.
pub(crate) struct Joined<T, L> {
    /// Label of the work, which may be that of another caller.
    pub(crate) label: L,
    landed: watch::Receiver<Option<T>>,
}

impl<T: Clone, L> Joined<T, L> {
    /// Waits for the result. `None` means that the work panicked, or that its runtime was shut down.
    pub(crate) async fn result(mut self) -> Option<T> {
        self.landed.wait_for(Option::is_some).await.ok()?.clone()
    }
}

impl<T, L> Default for Flight<T, L> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Send + Sync + 'static, L: Clone + Send + 'static> Flight<T, L> {
    /// Joins the work that is under way, or starts what `begin` makes, which is `None` where nothing is left to do.
    pub(crate) fn join<F>(
        &self,
        label: L,
        begin: impl FnOnce(Waiters<T>) -> Option<F>,
    ) -> Option<Joined<T, L>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut slot = lock(&self.0);
        if let Some(UnderWay { label, landing }) = &*slot {
            return Some(Joined { label: label.clone(), landed: landing.subscribe() });
        }
        let (sender, landed) = watch::channel(None);
        let landing = Arc::new(sender);
        let work = begin(Waiters(Arc::clone(&landing)))?;
        *slot = Some(UnderWay { label: label.clone(), landing: Arc::clone(&landing) });
        let ended = Ended(Arc::clone(&self.0));
        tokio::spawn(async move {
            let result = work.await;
            // A caller that comes now starts anew: it may know more than this run did.
            drop(ended);
            landing.send_replace(Some(result));
        });
        Some(Joined { label, landed })
    }
}

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    /// Joins the work that is under way, or starts it, and waits for its result. `None` means that it panicked, or that its
    /// runtime was shut down.
    pub(crate) async fn run<F>(&self, work: impl FnOnce() -> F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.join((), |_| Some(work()))?.result().await
    }
}

/// Clears the flight when its task ends, also by a panic.
struct Ended<T, L>(Slot<T, L>);

impl<T, L> Drop for Ended<T, L> {
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
                flight.run(work).await
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
