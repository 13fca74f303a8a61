//! `subscriptions/listen`: who listens to what, and what they have not been told yet.
//!
//! Every notification here says "this changed", so a subscriber needs no queue: a flag for each thing that
//! changed since it last looked is enough, however slow it is (N1).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{
    ErrorObject, NotificationMeta, NotificationMethod, PromptListChangedNotification, RequestId,
    ResourceListChangedNotification, ResourceUpdatedNotification, ResourceUpdatedNotificationParams,
    ResultMeta, SubscriptionFilter, SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenResult, ToolListChangedNotification,
    encode_notification,
};
use serde::Serialize;

/// How many resources one subscription may watch.
const MAX_WATCHED: usize = 1_000;

/// Everything that listens to one server.
#[derive(Debug)]
pub(crate) struct Hub(Mutex<Listeners>);

#[derive(Debug)]
struct Listeners {
    next: u64,
    open: HashMap<u64, Arc<Subscriber>>,
    limit: usize,
    closed: bool,
}

#[derive(Debug)]
struct Subscriber {
    id: RequestId,
    filter: SubscriptionFilter,
    due: Mutex<Due>,
}

/// What a subscriber is still to be told.
#[derive(Debug, Default)]
struct Due {
    started: bool,
    acknowledged: bool,
    tools: bool,
    prompts: bool,
    resources: bool,
    updated: BTreeSet<usize>,
    closed: bool,
    waker: Option<Waker>,
    closing_waker: Option<Waker>,
}

/// What can change.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change<'a> {
    Tools,
    Prompts,
    Resources,
    Resource(&'a str),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Flags and maps are changed in single steps: a panic elsewhere cannot leave them half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Listeners { next: 0, open: HashMap::new(), limit: usize::MAX, closed: false }))
    }

    pub(crate) fn limit(&self, limit: usize) {
        lock(&self.0).limit = limit;
    }

    /// Opens a subscription to what the filter and the server have in common.
    pub(crate) fn open(
        self: &Arc<Self>,
        id: RequestId,
        filter: SubscriptionFilter,
    ) -> Result<Subscription, ErrorObject> {
        if filter.resource_subscriptions.len() > MAX_WATCHED {
            return Err(ErrorObject::invalid_params(format!(
                "params.notifications.resourceSubscriptions: at most {MAX_WATCHED} resources in one subscription"
            )));
        }
        let mut listeners = lock(&self.0);
        if listeners.open.len() >= listeners.limit {
            return Err(ErrorObject::new(BUSY, "too many open subscriptions: close one, or try again later"));
        }
        let key = listeners.next;
        listeners.next += 1;
        let due = Due { closed: listeners.closed, ..Due::default() };
        let subscriber = Arc::new(Subscriber { id, filter, due: Mutex::new(due) });
        listeners.open.insert(key, Arc::clone(&subscriber));
        Ok(Subscription { hub: Arc::clone(self), key, subscriber })
    }

    /// Tells everybody who asked for it.
    pub(crate) fn announce(&self, change: Change<'_>) {
        for subscriber in lock(&self.0).open.values() {
            let filter = &subscriber.filter;
            let mut due = lock(&subscriber.due);
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
                Change::Resource(uri) => {
                    match filter.resource_subscriptions.iter().position(|watched| watched == uri) {
                        Some(index) => due.updated.insert(index),
                        None => false,
                    }
                }
                _ => false,
            };
            if wanted {
                due.wake();
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

impl Due {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// One open subscription. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    key: u64,
    subscriber: Arc<Subscriber>,
}

impl Subscription {
    /// Ready once the server ends the subscription. The first poll starts it: until then nothing is sent, so that
    /// a hook in front can still refuse it.
    pub(crate) fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<SubscriptionsListenResult> {
        let mut due = lock(&self.subscriber.due);
        due.started = true;
        if !due.closed {
            due.closing_waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let meta = ResultMeta { subscription_id: Some(self.subscriber.id.clone()), ..ResultMeta::default() };
        Poll::Ready(SubscriptionsListenResult { meta, ..SubscriptionsListenResult::default() })
    }

    /// The next notification, or `Pending` with the waker kept.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let mut due = lock(&self.subscriber.due);
        if let Some(notification) = self.subscriber.next(&mut due) {
            return Poll::Ready(notification);
        }
        due.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next notification that is due already.
    pub(crate) fn pop(&self) -> Option<Vec<u8>> {
        self.subscriber.next(&mut lock(&self.subscriber.due))
    }
}

impl Subscriber {
    fn next(&self, due: &mut Due) -> Option<Vec<u8>> {
        let Self { id, filter, .. } = self;
        if !due.started {
            None
        } else if !std::mem::replace(&mut due.acknowledged, true) {
            let params = SubscriptionsAcknowledgedNotificationParams {
                meta: tagged(id),
                notifications: filter.clone(),
            };
            Some(encode::<SubscriptionsAcknowledgedNotification>(&params))
        } else if std::mem::take(&mut due.tools) {
            Some(encode_tagged(ToolListChangedNotification::NAME, id))
        } else if std::mem::take(&mut due.prompts) {
            Some(encode_tagged(PromptListChangedNotification::NAME, id))
        } else if std::mem::take(&mut due.resources) {
            Some(encode_tagged(ResourceListChangedNotification::NAME, id))
        } else {
            let uri = filter.resource_subscriptions.get(due.updated.pop_first()?)?.clone();
            Some(encode::<ResourceUpdatedNotification>(&ResourceUpdatedNotificationParams {
                meta: tagged(id),
                uri,
            }))
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.hub.0).open.remove(&self.key);
    }
}

fn tagged(id: &RequestId) -> NotificationMeta {
    NotificationMeta { subscription_id: Some(id.clone()) }
}

fn encode<N: NotificationMethod>(params: &N::Params) -> Vec<u8> {
    // Ids, strings and booleans: there is nothing here that could fail to serialise.
    encode_notification(N::NAME, params).unwrap_or_default()
}

fn encode_tagged(method: &str, id: &RequestId) -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: NotificationMeta,
    }
    encode_notification(method, &Params { meta: tagged(id) }).unwrap_or_default()
}
