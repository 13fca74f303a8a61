//! [`News`]: changes of tasks, those of this instance at once, those of others as their database tells.

use std::sync::{Arc, Mutex, PoisonError};

use roundtrip::seal::BoxFuture;
use roundtrip::task::{ChangedTask, TaskChanges};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Most changes that may wait for a follower.
const UNSEEN: usize = 1_024;

/// Changed task, or any task.
type Change = Option<ChangedTask>;

/// Changes that other instances make.
pub(crate) trait Elsewhere: Send + Sync + 'static {
    /// Passes them on for as long as it is polled. It says [`Heard::any`] once it listens, and after every gap.
    fn listen<'a>(&'a self, heard: &'a Heard) -> BoxFuture<'a, ()>;
}

/// Sender of changes.
#[derive(Debug)]
pub(crate) struct Heard(broadcast::Sender<Change>);

impl Heard {
    pub(crate) fn changed(&self, task: ChangedTask) {
        // There may be no follower.
        let _ = self.0.send(Some(task));
    }

    /// Returns a sender, and what it sends.
    #[cfg(all(test, feature = "postgres"))]
    pub(crate) fn followed() -> (Self, broadcast::Receiver<Change>) {
        let (sender, changes) = broadcast::channel(UNSEEN);
        (Self(sender), changes)
    }

    /// Says that any task may have changed.
    pub(crate) fn any(&self) {
        let _ = self.0.send(None);
    }
}

/// Changes of all instances of a store.
pub(crate) struct News(Arc<Inner>);

struct Inner {
    heard: Heard,
    elsewhere: Box<dyn Elsewhere>,
    /// True while a task listens to the other instances.
    listens: Mutex<bool>,
}

impl News {
    pub(crate) fn new(elsewhere: impl Elsewhere) -> Self {
        let heard = Heard(broadcast::Sender::new(UNSEEN));
        Self(Arc::new(Inner { heard, elsewhere: Box::new(elsewhere), listens: Mutex::new(false) }))
    }

    /// Tells followers of a change that this instance has made.
    pub(crate) fn tell(&self, task: ChangedTask) {
        self.0.heard.changed(task);
    }

    /// Begins to follow the changes.
    pub(crate) fn follow(&self) -> Box<dyn TaskChanges> {
        Box::new(Following { changes: self.0.heard.0.subscribe(), news: Some(Arc::clone(&self.0)) })
    }
}

impl Inner {
    /// Starts to listen to other instances, unless that has been done.
    fn ensure_listens(self: Arc<Self>) {
        let mut listens = self.listens.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *listens, true) {
            tokio::spawn(Arc::clone(&self).listen());
        }
    }

    /// Listens for as long as there is a follower.
    async fn listen(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.heard.0.closed() => {}
                () = self.elsewhere.listen(&self.heard) => {}
            }
            let mut listens = self.listens.lock().unwrap_or_else(PoisonError::into_inner);
            if self.heard.0.receiver_count() == 0 {
                *listens = false;
                return;
            }
        }
    }
}

struct Following {
    changes: broadcast::Receiver<Change>,
    /// Taken when it is first waited for: from then on there is a runtime to listen in.
    news: Option<Arc<Inner>>,
}

impl TaskChanges for Following {
    fn next(&mut self) -> BoxFuture<'_, Change> {
        Box::pin(async move {
            if let Some(news) = self.news.take() {
                news.ensure_listens();
            }
            match self.changes.recv().await {
                Ok(change) => change,
                Err(RecvError::Lagged(_)) => None,
                // The store is gone, and nothing changes any more.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        })
    }
}
