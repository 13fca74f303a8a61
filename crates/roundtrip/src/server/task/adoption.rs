//! Tasks that an earlier release has stored: the first service that has the tool adopts them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::sleep;

use super::resume::Resume;
use super::service::TaskService;
use crate::server::outcome::caught;
use crate::task::{OrphanTask, TaskKey, TaskStoreError, task_kind};

/// Most orphans that are read at once.
const BATCH: usize = 16;
/// Time after which orphans of other services are looked at again: a tool may have been added.
const AGAIN: Duration = Duration::from_secs(60);

/// Adopts orphans for as long as there are any.
pub(super) async fn adopt_all(service: Weak<TaskService>) {
    while let Some(own) = service.upgrade().filter(|own| own.has_server()) {
        match caught(own.pass()).await {
            Some(Ok(false)) => return own.adopts.store(false, Ordering::Relaxed),
            Some(Ok(true)) => {}
            Some(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "tasks of an earlier release cannot be read");
            }
            None => {
                tracing::error!(
                    "the task store panicked, and is asked again for tasks of an earlier release"
                );
            }
        }
        drop(own);
        sleep(AGAIN).await;
    }
}

impl TaskService {
    /// Adopts the orphans whose tools this server has. Returns whether others are left.
    async fn pass(&self) -> Result<bool, TaskStoreError> {
        let (mut after, mut are_left) = (None, false);
        loop {
            let orphans = self.store.0.orphans(after.as_ref(), BATCH).await?;
            let Some(last) = orphans.last().map(|orphan| orphan.id.clone()) else { return Ok(are_left) };
            after = Some(last);
            for orphan in orphans {
                are_left |= !self.adopt(orphan).await?;
            }
        }
    }

    /// Adopts an orphan that a request asks for, and returns whether it was one.
    pub(super) async fn adopt_one(&self, key: &TaskKey) -> Result<bool, TaskStoreError> {
        if !self.adopts.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match self.store.0.orphan(&key.owner, &key.id).await? {
            Some(orphan) => self.adopt(orphan).await,
            None => Ok(false),
        }
    }

    /// Adopts an orphan, if this server has its tool. Returns false otherwise.
    async fn adopt(&self, orphan: OrphanTask) -> Result<bool, TaskStoreError> {
        let Some(server) = self.server() else { return Ok(false) };
        let (id, tool) = (orphan.id.clone(), orphan.tool().to_owned());
        if !server.has_tool(&tool) {
            return Ok(false);
        }
        // Tools had no versions.
        match orphan.adopted(self.service, task_kind(&tool, "")) {
            Ok(adopted) => {
                // Another instance may have been first, which is as good.
                self.store.0.adopt(adopted).await?;
                self.wake();
                Ok(true)
            }
            Err(error) => {
                tracing::error!(%error, task = %id, "a task of an earlier release cannot be read");
                Ok(false)
            }
        }
    }

    pub(super) fn server(&self) -> Option<Arc<dyn Resume>> {
        self.resume.get().and_then(Weak::upgrade)
    }
}
