//! Announces changes of tasks to the subscriptions that watch them, beside the workers, which never wait for it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::sleep;

use super::errors::{busy, read_view};
use super::service::TaskService;
use crate::server::notify::subscription::Change;
use crate::server::outcome::caught;
use crate::task::{Millis, TaskId, TaskStoreError};

/// Pause before a task is announced that could not be read.
const AGAIN: Duration = Duration::from_secs(1);

impl TaskService {
    /// Announces a task that is watched, as it is now. A task that has ended is announced once.
    pub(super) async fn announce(&self, id: &TaskId) {
        let Some(key) = self.announcer.watched(id) else { return };
        match self.store.0.view(&key, true, Millis::now()).await {
            Ok(Some(stored)) => {
                if let Ok(task) = read_view(&stored) {
                    let ended = task.status.is_terminal();
                    self.announcer.hub.announce(Change::Task(&Arc::new(task)));
                    if ended {
                        self.announcer.forget(id);
                    }
                }
            }
            Ok(None) => self.announcer.forget(id),
            Err(error) => {
                let passes = matches!(error, TaskStoreError::Failed(_));
                drop(busy(&error));
                if passes {
                    // Nothing else will say that it has changed.
                    self.announcer.changed(id);
                    sleep(AGAIN).await;
                }
            }
        }
    }
}

/// Announces changes for as long as the server is there.
pub(super) async fn announce(service: Weak<TaskService>) {
    let Some(news) = service.upgrade().map(|service| Arc::clone(&service.announcer.news)) else { return };
    loop {
        news.notified().await;
        while let Some(service) = service.upgrade().filter(|service| service.has_server()) {
            let Some(id) = service.announcer.next() else { break };
            if caught(service.announce(&id)).await.is_none() {
                tracing::error!(task = %id, "the task store panicked, and a change was not announced");
            }
        }
        if service.strong_count() == 0 {
            return;
        }
    }
}
