//! Tasks that an earlier release has stored: the first service that has the tool adopts them.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use roundtrip_core::seal::Digest;
use tokio::time::sleep;

use super::resume::Resume;
use super::service::TaskService;
use crate::server::outcome::caught;
use crate::task::{Millis, OrphanTask, TaskId, TaskKey, TaskOwner, TaskStoreError, task_kind};

/// Most orphans that are listed at once, and that are removed at once.
const BATCH: usize = 100;
/// Shortest and longest pause between two passes. A tool that is added meanwhile ends a longer one after the shortest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(60 * 60));
/// Most orphans that are remembered because their tools are another server's. Any further one is read in each pass.
const REMEMBERED: usize = 10_000;
/// Failures in a row that end a pass: the store is likely to be away.
const FAILURES: usize = 8;

/// Adopts orphans for as long as there are any.
pub(super) async fn adopt_all(service: Weak<TaskService>) {
    let mut passes = Passes::new();
    while let Some(own) = service.upgrade().filter(|own| own.has_server()) {
        match caught(own.pass(&mut passes)).await {
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
        passes.rest(&service).await;
    }
}

/// Passes over the orphans so far.
struct Passes {
    /// Orphans whose tool this server has not, or that cannot be opened.
    passed: HashSet<TaskId>,
    /// Kinds of tasks that the server ran then.
    kinds: Arc<[Digest]>,
    /// Orphan behind which the next pass begins, if the last one did not come to the end.
    after: Option<TaskId>,
    pause: Duration,
}

impl Passes {
    fn new() -> Self {
        Self { passed: HashSet::new(), kinds: Arc::default(), after: None, pause: PAUSES.0 }
    }

    /// Begins a pass. Orphans that were passed over count again if the server has other tools now.
    fn begin(&mut self, kinds: Arc<[Digest]>) {
        if self.kinds != kinds {
            self.passed.clear();
            (self.kinds, self.pause) = (kinds, PAUSES.0);
        }
    }

    fn pass_over(&mut self, id: TaskId) {
        if self.passed.len() < REMEMBERED {
            self.passed.insert(id);
        }
    }

    /// Waits until it is time for the next pass: longer each time, unless there was something to do.
    async fn rest(&mut self, service: &Weak<TaskService>) {
        let mut left = self.pause;
        self.pause = (self.pause * 2).min(PAUSES.1);
        while !left.is_zero() {
            let turn = left.min(PAUSES.0);
            sleep(turn).await;
            left -= turn;
            let server = service.upgrade().and_then(|own| own.server());
            if server.is_none_or(|server| server.kinds() != self.kinds) {
                return;
            }
        }
    }
}

/// Orphans that could not be adopted in a pass. They take one line of the log together.
#[derive(Default)]
struct Failures {
    number: usize,
    in_a_row: usize,
    first: Option<(TaskId, TaskStoreError)>,
}

impl Failures {
    fn add(&mut self, id: TaskId, error: TaskStoreError) {
        self.number += 1;
        self.in_a_row += 1;
        self.first.get_or_insert((id, error));
    }

    fn log(&self) {
        if let Some((task, error)) = &self.first {
            let (number, error) = (self.number, error as &dyn std::error::Error);
            tracing::error!(error, %task, number, "tasks of an earlier release cannot be adopted now");
        }
    }
}

impl TaskService {
    /// Returns whether tasks of an earlier release may be there. Ask before a task is looked for: it may be
    /// adopted in between.
    pub(super) fn adopts(&self) -> bool {
        self.adopts.load(Ordering::Relaxed)
    }

    /// Adopts the orphans whose tools this server has, and removes those that have expired. Returns whether any are left.
    async fn pass(&self, passes: &mut Passes) -> Result<bool, TaskStoreError> {
        let Some(kinds) = self.server().map(|server| server.kinds()) else { return Ok(true) };
        passes.begin(kinds);
        while self.store.0.remove_orphans(Millis::now(), BATCH).await? >= BATCH {}
        let (mut are_left, mut failures) = (passes.after.is_some(), Failures::default());
        'pass: loop {
            let orphans = self.store.0.orphans(passes.after.as_ref(), BATCH).await?;
            if orphans.is_empty() {
                passes.after = None;
                break;
            }
            for OrphanTask { id, owner, .. } in orphans {
                passes.after = Some(id.clone());
                let is_left =
                    passes.passed.contains(&id) || !self.adopt_listed(owner, id, passes, &mut failures).await;
                are_left |= is_left;
                if failures.in_a_row >= FAILURES {
                    break 'pass;
                }
            }
        }
        failures.log();
        Ok(are_left)
    }

    /// Adopts an orphan of a list. Returns false if it is left to others, or for later.
    async fn adopt_listed(
        &self,
        owner: TaskOwner,
        id: TaskId,
        passes: &mut Passes,
        failures: &mut Failures,
    ) -> bool {
        let adopted = match self.store.0.orphan(&owner, &id).await {
            Ok(Some(orphan)) => self.adopt(orphan).await,
            Ok(None) => Ok(true),
            // The store has logged it.
            Err(TaskStoreError::Unreadable(_)) => Ok(false),
            Err(error) => Err(error),
        };
        match adopted {
            Ok(is_adopted) => {
                failures.in_a_row = 0;
                if is_adopted {
                    passes.pause = PAUSES.0;
                } else {
                    passes.pass_over(id);
                }
                is_adopted
            }
            Err(error) => {
                passes.pause = PAUSES.0;
                failures.add(id, error);
                false
            }
        }
    }

    /// Adopts an orphan that a request asks for. Returns false if there is a task that this server cannot adopt.
    pub(super) async fn adopt_one(&self, key: &TaskKey) -> Result<bool, TaskStoreError> {
        match self.store.0.orphan(&key.owner, &key.id).await? {
            Some(orphan) => self.adopt(orphan).await,
            // It may have been adopted since it was looked for.
            None => Ok(true),
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
