//! `subscriptions/listen`: open subscriptions, and the changes that each has yet to be told.
//!
//! Every notification here says "this changed", so a subscriber needs no queue: a flag for each thing that
//! changed since it last looked is enough, however slow it is (N1).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use due::{Due, bytes_of};
use roundtrip_core::error::BUSY;
#[cfg(feature = "legacy")]
use roundtrip_core::wire::{BareTask, TaskStatusNotification};
use roundtrip_core::wire::{
    ErrorObject, NotificationMeta, NotificationMethod, NotificationParams, ProgressNotification,
    ProgressNotificationParams, PromptListChangedNotification, RequestId, ResourceListChangedNotification,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParams, ResultMeta, SubscriptionFilter,
    SubscriptionsAcknowledgedNotification, SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenResult, Task, TaskNotification, TaskNotificationParams, ToolListChangedNotification,
    encode_notification,
};

use crate::lock::lock;
use crate::server::budget::{Budget, Owner, Reservation};
use crate::server::hook::{HeldViewer, Viewer};
use crate::server::limits::Limits;
use watched_tasks::WatchedTasks;

mod due;
mod watched_tasks;

/// Most resources that one subscription may watch.
const MAX_WATCHED: usize = 1_000;
/// Most tasks that the subscription of a legacy session watches.
#[cfg(feature = "legacy")]
const MAX_TASKS: usize = 100;
/// Bytes that a subscription takes besides what it watches and what waits.
const OVERHEAD: usize = 512;

/// All subscriptions to one server.
#[derive(Debug)]
pub(crate) struct Hub(Mutex<Listeners>);

#[derive(Debug)]
struct Listeners {
    next: u64,
    open: HashMap<u64, Arc<Subscriber>>,
    /// Those of them that watch tasks.
    tasks: WatchedTasks,
    /// Places of subscriptions with a tag. Those without belong to legacy sessions, which are bounded themselves.
    places: Arc<Budget>,
    /// Bytes of all subscriptions.
    bytes: Arc<Budget>,
    closed: bool,
}

#[derive(Debug)]
struct Subscriber {
    /// Subscription id in its messages. Without one, as in legacy sessions, there is no acknowledgement either.
    tag: Option<RequestId>,
    due: Mutex<Due>,
}

/// A change to announce.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change<'a> {
    Tools,
    Prompts,
    Resources,
    Resource(&'a str),
    Task(&'a Arc<Task>),
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Listeners {
            next: 0,
            open: HashMap::new(),
            tasks: WatchedTasks::default(),
            places: Budget::new(usize::MAX),
            bytes: Budget::new(usize::MAX),
            closed: false,
        }))
    }

    /// Sets the limits for subscriptions from now on.
    pub(crate) fn limit(&self, limits: &Limits) {
        let mut listeners = lock(&self.0);
        listeners.places = Budget::new(limits.subscriptions);
        listeners.bytes = Budget::new(limits.subscription_bytes);
    }

    /// Opens a subscription to what the filter and the server have in common.
    pub(crate) fn open(
        self: &Arc<Self>,
        owner: &Owner,
        tag: Option<RequestId>,
        filter: SubscriptionFilter,
        viewer: Option<HeldViewer>,
    ) -> Result<Subscription, ErrorObject> {
        if filter.resource_subscriptions.len() > MAX_WATCHED {
            return Err(too_many("params.notifications.resourceSubscriptions"));
        }
        let tasks = filter.task_ids.iter().map(|id| bytes_of(id)).sum::<usize>();
        let mut listeners = lock(&self.0);
        let place = match &tag {
            Some(_) => Some(listeners.places.reserve(owner, 1).ok_or_else(too_many_open)?),
            None => None,
        };
        let named = filter.resource_subscriptions.iter().map(|uri| bytes_of(uri)).sum::<usize>();
        let held = viewer.as_ref().map_or(0, HeldViewer::bytes);
        let bytes = OVERHEAD + named + tasks + held;
        let bytes = listeners.bytes.reserve(owner, bytes).ok_or_else(too_large)?;
        let key = listeners.next;
        listeners.next += 1;
        listeners.tasks.set(key, &filter.task_ids);
        let mut due = Due::new(filter, bytes, tag.is_none(), listeners.closed);
        due.viewer = viewer.map(Arc::new);
        let subscriber = Arc::new(Subscriber { tag, due: Mutex::new(due) });
        listeners.open.insert(key, Arc::clone(&subscriber));
        Ok(Subscription { hub: Arc::clone(self), key, subscriber, _place: place })
    }

    /// Returns the number of subscriptions that are calls, and not part of a session.
    pub(crate) fn calls(&self) -> usize {
        lock(&self.0).open.values().filter(|subscriber| subscriber.tag.is_some()).count()
    }

    /// Returns how many bytes all subscriptions hold.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.0).bytes.held()
    }

    /// Announces a change to every subscription that watches it.
    pub(crate) fn announce(&self, change: Change<'_>) {
        if let Change::Task(task) = change {
            return self.announce_task(task);
        }
        for subscriber in lock(&self.0).open.values() {
            let due = &mut *lock(&subscriber.due);
            let filter = &due.lists;
            let wanted = match change {
                Change::Tools if filter.tools_list_changed == Some(true) => {
                    !std::mem::replace(&mut due.tools, true)
                }
                Change::Prompts if filter.prompts_list_changed == Some(true) => {
                    !std::mem::replace(&mut due.prompts, true)
                }
                Change::Resources if filter.resources_list_changed == Some(true) => {
                    !std::mem::replace(&mut due.resources, true)
                }
                Change::Resource(uri) => due.update(uri),
                _ => false,
            };
            if wanted {
                due.wake();
            }
        }
    }

    fn announce_task(&self, task: &Arc<Task>) {
        self.to_watchers(&task.task_id, |subscriber, due| subscriber.task_changed(due, task));
    }

    /// Announces the progress of a task to the legacy sessions that watch it. The extension has no progress.
    pub(crate) fn announce_progress(&self, task: &str, report: &ProgressNotificationParams) {
        self.to_watchers(task, |subscriber, due| subscriber.tag.is_none() && due.report(task, report));
    }

    /// Notes a change for the subscriptions that watch a task, and wakes those for which it is news.
    fn to_watchers(&self, task: &str, change: impl Fn(&Subscriber, &mut Due) -> bool) {
        let listeners = lock(&self.0);
        for subscriber in listeners.tasks.of(task).iter().filter_map(|key| listeners.open.get(key)) {
            let due = &mut *lock(&subscriber.due);
            // A session does not watch a task any more that has ended.
            if due.lists.task_ids.iter().any(|watched| watched == task) && change(subscriber, due) {
                due.wake();
            }
        }
    }

    /// Returns whether a task is watched.
    pub(crate) fn watches_task(&self, id: &str) -> bool {
        !lock(&self.0).tasks.of(id).is_empty()
    }

    /// Announces a change of a resource to every subscription that watches it and whose caller sees it.
    pub(crate) fn announce_to_viewers(&self, uri: &str, sees: impl Fn(&Viewer<'_>) -> bool) {
        let watches = |subscriber: &&Arc<Subscriber>| lock(&subscriber.due).watched.contains(uri);
        let watching: Vec<_> = lock(&self.0).open.values().filter(watches).map(Arc::clone).collect();
        // Rules are the author's code, and may use the catalog: nothing is locked while they run.
        for subscriber in watching {
            let viewer = lock(&subscriber.due).viewer.clone();
            if viewer.is_some_and(|viewer| viewer.is(&sees)) {
                let mut due = lock(&subscriber.due);
                if due.update(uri) {
                    due.wake();
                }
            }
        }
    }

    /// Ends every subscription, open or yet to come, with its result.
    pub(crate) fn close(&self) {
        let mut listeners = lock(&self.0);
        listeners.closed = true;
        for subscriber in listeners.open.values() {
            let mut due = lock(&subscriber.due);
            due.closed = true;
            if let Some(waker) = due.closing_waker.take() {
                waker.wake();
            }
        }
    }
}

/// One open subscription. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    key: u64,
    subscriber: Arc<Subscriber>,
    _place: Option<Reservation>,
}

impl Subscription {
    /// Completes once the server ends the subscription. The first poll starts it: until then nothing is sent, so that
    /// a hook in front can still refuse it.
    pub(crate) fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<SubscriptionsListenResult> {
        let mut due = lock(&self.subscriber.due);
        due.started = true;
        if !due.closed {
            due.closing_waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let meta = ResultMeta { subscription_id: self.subscriber.tag.clone(), ..ResultMeta::default() };
        Poll::Ready(SubscriptionsListenResult { meta, ..SubscriptionsListenResult::default() })
    }

    /// Watches one more resource, from here on as `viewer`.
    #[cfg(feature = "legacy")]
    pub(crate) fn watch(&self, uri: &str, viewer: HeldViewer) -> Result<(), ErrorObject> {
        let due = &mut *lock(&self.subscriber.due);
        // A session has one client: another request of it differs in what the HTTP stack attached.
        if due.viewer.is_none() && !due.bytes.grow(viewer.bytes()) {
            return Err(too_large());
        }
        due.viewer = Some(Arc::new(viewer));
        if due.watched.contains(uri) {
            return Ok(());
        }
        if due.watched.len() >= MAX_WATCHED {
            return Err(too_many("params.uri"));
        }
        if !due.bytes.grow(bytes_of(uri)) {
            return Err(too_large());
        }
        due.watched.insert(uri.into());
        Ok(())
    }

    /// Watches one resource less.
    #[cfg(feature = "legacy")]
    pub(crate) fn unwatch(&self, uri: &str) {
        let due = &mut *lock(&self.subscriber.due);
        if due.watched.swap_remove(uri) {
            due.updated.remove(uri);
            due.bytes.shrink(bytes_of(uri));
        }
    }

    /// Watches a task until it has ended. Returns false if it watches as many as it may: a client may not rely on being told.
    #[cfg(feature = "legacy")]
    pub(crate) fn watch_task(&self, id: &str) -> bool {
        {
            let due = &mut *lock(&self.subscriber.due);
            if due.lists.task_ids.len() >= MAX_TASKS || !due.bytes.grow(bytes_of(id)) {
                return false;
            }
            due.lists.task_ids.push(id.to_owned());
        }
        // Only now: the hub locks its subscribers.
        lock(&self.hub.0).tasks.add(self.key, id);
        true
    }

    /// Returns the next notification, or `Pending` with the waker kept.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let mut due = lock(&self.subscriber.due);
        if let Some(notification) = self.subscriber.next(&mut due) {
            return Poll::Ready(notification);
        }
        due.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns the next notification that is due already.
    pub(crate) fn pop(&self) -> Option<Vec<u8>> {
        self.subscriber.next(&mut lock(&self.subscriber.due))
    }
}

impl Subscriber {
    /// Notes a change of a task that is watched; returns whether that is news.
    fn task_changed(&self, due: &mut Due, task: &Arc<Task>) -> bool {
        #[cfg(feature = "legacy")]
        if self.tag.is_none() {
            return due.session_task_changed(task);
        }
        due.task_changed(Arc::clone(task))
    }

    fn next(&self, due: &mut Due) -> Option<Vec<u8>> {
        let tag = &self.tag;
        if !due.started {
            None
        } else if !std::mem::replace(&mut due.acknowledged, true) {
            let params = SubscriptionsAcknowledgedNotificationParams {
                meta: tagged(tag),
                notifications: due.filter(),
            };
            Some(encode::<SubscriptionsAcknowledgedNotification>(&params))
        } else if std::mem::take(&mut due.tools) {
            Some(encode_tagged(ToolListChangedNotification::NAME, tag))
        } else if std::mem::take(&mut due.prompts) {
            Some(encode_tagged(PromptListChangedNotification::NAME, tag))
        } else if std::mem::take(&mut due.resources) {
            Some(encode_tagged(ResourceListChangedNotification::NAME, tag))
        } else if let Some(uri) = due.updated.pop_first() {
            Some(encode::<ResourceUpdatedNotification>(&ResourceUpdatedNotificationParams {
                meta: tagged(tag),
                uri: uri.as_ref().to_owned(),
            }))
        } else if let Some(report) = due.next_progress() {
            Some(encode::<ProgressNotification>(&report))
        } else {
            let task = due.next_task()?;
            #[cfg(feature = "legacy")]
            if tag.is_none() {
                if task.status.is_terminal() {
                    due.unwatch_task(&task.task_id);
                }
                return Some(encode::<TaskStatusNotification>(&BareTask::from(Arc::unwrap_or_clone(task))));
            }
            let params = TaskNotificationParams { meta: tagged(tag), task: Arc::unwrap_or_clone(task) };
            Some(encode::<TaskNotification>(&params))
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut listeners = lock(&self.hub.0);
        listeners.open.remove(&self.key);
        listeners.tasks.remove(self.key);
    }
}

fn too_many_open() -> ErrorObject {
    ErrorObject::new(BUSY, "too many open subscriptions: close one, or try again later")
}

fn too_large() -> ErrorObject {
    ErrorObject::new(BUSY, "too many resources are watched: watch fewer, or try again later")
}

fn too_many(place: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("{place}: at most {MAX_WATCHED} resources in one subscription"))
}

fn tagged(tag: &Option<RequestId>) -> NotificationMeta {
    NotificationMeta { subscription_id: tag.clone() }
}

fn encode<N: NotificationMethod>(params: &N::Params) -> Vec<u8> {
    // Ids, strings and booleans: there is nothing here that could fail to serialise.
    encode_notification(N::NAME, params).unwrap_or_default()
}

fn encode_tagged(method: &str, tag: &Option<RequestId>) -> Vec<u8> {
    encode_notification(method, &NotificationParams { meta: tagged(tag) }).unwrap_or_default()
}

#[cfg(test)]
mod tests;
