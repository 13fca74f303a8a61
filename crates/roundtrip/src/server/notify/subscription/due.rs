//! Changes that a subscriber has yet to be told, and the bytes that they take.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::task::Waker;

use indexmap::IndexSet;
#[cfg(feature = "legacy")]
use roundtrip_core::wire::BareTask;
use roundtrip_core::wire::{ProgressNotificationParams, SubscriptionFilter, Task};

use crate::server::budget::Reservation;
use crate::server::hook::HeldViewer;

/// Bytes that a URI, a task or a report takes besides its text.
const OVERHEAD: usize = 128;

/// Changes that a subscriber has yet to be told.
#[derive(Debug)]
pub(super) struct Due {
    /// Lists that are watched.
    pub(super) lists: SubscriptionFilter,
    /// Resources that are watched, in the order they were named.
    pub(super) watched: IndexSet<Arc<str>>,
    /// The caller, if it watches resources: they may have visibility rules.
    pub(super) viewer: Option<Arc<HeldViewer>>,
    /// Bytes of all of these, and of the tasks and reports that wait.
    pub(super) bytes: Reservation,
    pub(super) started: bool,
    pub(super) acknowledged: bool,
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) updated: BTreeSet<Arc<str>>,
    /// Tasks that have changed, each as it is now, and its bytes.
    tasks: BTreeMap<String, (Arc<Task>, usize)>,
    /// Progress of tasks, in legacy sessions: the highest so far, and the report to tell.
    progress: BTreeMap<String, (f64, Option<ProgressNotificationParams>)>,
    pub(super) closed: bool,
    pub(super) waker: Option<Waker>,
    pub(super) closing_waker: Option<Waker>,
}

impl Due {
    pub(super) fn new(
        mut filter: SubscriptionFilter,
        bytes: Reservation,
        acknowledged: bool,
        closed: bool,
    ) -> Self {
        let watched = std::mem::take(&mut filter.resource_subscriptions);
        Self {
            lists: filter,
            watched: watched.into_iter().map(Arc::from).collect(),
            viewer: None,
            bytes,
            started: false,
            acknowledged,
            tools: false,
            prompts: false,
            resources: false,
            updated: BTreeSet::new(),
            tasks: BTreeMap::new(),
            progress: BTreeMap::new(),
            closed,
            waker: None,
            closing_waker: None,
        }
    }

    /// Returns the filter as it was requested.
    pub(super) fn filter(&self) -> SubscriptionFilter {
        let resource_subscriptions = self.watched.iter().map(|uri| uri.as_ref().to_owned()).collect();
        SubscriptionFilter { resource_subscriptions, ..self.lists.clone() }
    }

    /// Notes a change of a resource, if it is watched; returns whether that is news. Its text is there once, however often it
    /// changes.
    pub(super) fn update(&mut self, uri: &str) -> bool {
        self.watched.get(uri).is_some_and(|watched| self.updated.insert(Arc::clone(watched)))
    }

    /// Notes a change of a task; returns whether that is news. A task that changes again before it is told is told once, as it is
    /// then. Where there is no room for it, it is left out, as it was before too: the client looks at it again itself.
    pub(super) fn task_changed(&mut self, task: Arc<Task>) -> bool {
        let before = self.take_task(&task.task_id);
        let bytes = OVERHEAD + written(&task);
        if !self.make_room(bytes) {
            tracing::debug!(task = task.task_id, bytes, "a slow listener is not told of a task");
            return false;
        }
        self.tasks.insert(task.task_id.clone(), (task, bytes));
        before.is_none()
    }

    /// Notes a change of a task as 2025-11-25 tells it, without what `tasks/result` gives: a session may have no reader for as
    /// long as it lasts.
    #[cfg(feature = "legacy")]
    pub(super) fn session_task_changed(&mut self, task: &Task) -> bool {
        let is_news = self.task_changed(Arc::new(BareTask::of_2025_11_25(task.clone()).into()));
        if task.status.is_terminal() && !self.tasks.contains_key(&task.task_id) {
            self.unwatch_task(&task.task_id);
        }
        is_news
    }

    /// Watches one task less: it has ended.
    #[cfg(feature = "legacy")]
    pub(super) fn unwatch_task(&mut self, id: &str) {
        self.lists.task_ids.retain(|watched| watched != id);
        self.bytes.shrink(bytes_of(id));
        if let Some((_, Some(report))) = self.progress.remove(id) {
            self.bytes.shrink(bytes_of_report(&report));
        }
    }

    /// Notes the progress of a task, if it goes beyond the last (N2); returns whether that is news.
    pub(super) fn report(&mut self, task: &str, report: &ProgressNotificationParams) -> bool {
        let (highest, before) = self.progress.get(task).map_or((f64::NEG_INFINITY, 0), |(highest, due)| {
            (*highest, due.as_ref().map_or(0, bytes_of_report))
        });
        if !report.progress.is_finite() || report.progress <= highest {
            return false;
        }
        self.bytes.shrink(before);
        let due = self.make_room(bytes_of_report(report)).then(|| report.clone());
        let is_news = due.is_some();
        self.progress.insert(task.to_owned(), (report.progress, due));
        is_news
    }

    /// Takes the next report of progress.
    pub(super) fn next_progress(&mut self) -> Option<ProgressNotificationParams> {
        let report = self.progress.values_mut().find_map(|(_, report)| report.take())?;
        self.bytes.shrink(bytes_of_report(&report));
        Some(report)
    }

    /// Takes the next task that has changed.
    pub(super) fn next_task(&mut self) -> Option<Arc<Task>> {
        let (_, (task, bytes)) = self.tasks.pop_first()?;
        self.bytes.shrink(bytes);
        Some(task)
    }

    fn take_task(&mut self, id: &str) -> Option<Arc<Task>> {
        let (task, bytes) = self.tasks.remove(id)?;
        self.bytes.shrink(bytes);
        Some(task)
    }

    /// Counts bytes of something that is to wait, if there is room for them. A reader that waits takes it at once, however large
    /// it is.
    fn make_room(&mut self, bytes: usize) -> bool {
        if self.waker.is_some() {
            self.bytes.charge(bytes);
            return true;
        }
        self.bytes.grow(bytes)
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Returns the bytes of the budget that the URI of a resource or the id of a task takes.
pub(super) fn bytes_of(text: &str) -> usize {
    text.len() + OVERHEAD
}

fn bytes_of_report(report: &ProgressNotificationParams) -> usize {
    OVERHEAD + report.message.as_ref().map_or(0, String::len)
}

/// Returns the bytes of a task as it is written.
fn written(task: &Task) -> usize {
    let mut count = Count(0);
    // One that cannot be written is not sent: what counts is what was written.
    drop(serde_json::to_writer(&mut count, task));
    count.0
}

/// Writer that counts.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
