//! Messages of a server that belong to no call: changes, for listeners; requests, for the handlers; log messages, for the
//! calls that asked for any.

use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::wire::{
    BareTask, ClientCapabilities, LoggingMessageNotification, Message, Method as _, NotificationMeta,
    NotificationMethod as _, PromptListChangedNotification, RequestId, ResourceListChangedNotification,
    ResourceUpdatedNotification, SubscriptionFilter, SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListen, Task, TaskNotification,
    TaskStatusNotification, ToolListChangedNotification, encode_notification, json, meta,
};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::task::{AbortHandle, coop};
use tokio::time::timeout;

use super::detect::PATIENCE;
use super::link::{SessionFailure, SessionLink};
use super::questions::{belongs_to_a_call, handlers_outside_calls, log_to_calls};
use super::request::{Request, encoded};
use super::server_request::{admit, answer_outside_call, is_question, small_enough};
use super::session::{Session, in_background, named};
use super::unfold::unfold;
use crate::client::{Error, Incoming, PeerIncompatible, Sent, Unreachable};
use crate::legacy::handshake::{SUBSCRIBE, UNSUBSCRIBE};
use crate::lock::lock;

/// Most changes that may wait for a listener. A listener that falls so far behind ends: a change must not be lost
/// unnoticed.
const CAPACITY: usize = 256;
/// Largest notification.
const LARGEST_NOTIFICATION: usize = 64 * 1024;
/// Longest wait for a stream that is opened in case of questions or log messages.
const OPENING: Duration = Duration::from_secs(2);
/// Most resources that one listener may watch.
const WATCHED: usize = 1024;

/// Stream of messages that belong to no call. A server sends each message on one stream alone, so all listeners share
/// it. It is closed when the last of them is dropped.
pub(super) struct SharedStream {
    /// Upgrades as long as the stream is open.
    sender: broadcast::WeakSender<Bytes>,
    pump: AbortHandle,
}

impl Drop for SharedStream {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

/// The shared stream of a session, if one is open.
#[derive(Default)]
pub(super) struct SharedStreamSlot {
    current: Weak<SharedStream>,
    /// Keeps the stream open for questions, independent of listeners for changes.
    kept: Option<Arc<SharedStream>>,
}

impl<L: SessionLink> Session<L> {
    /// Keeps the shared stream open as long as the session lasts: on stdio because it has to be read, over HTTP if
    /// the client can be asked. Many servers ask outside of the call that needs the answer.
    pub(super) async fn keep_listening(self: &Arc<Self>) -> Result<(), SessionFailure> {
        if L::SHARED {
            return self.keep_shared_stream().await;
        }
        let ClientCapabilities { roots, sampling, elicitation, .. } = &self.declared;
        if roots.is_some() || sampling.is_some() || elicitation.is_some() {
            self.listen_if_offered().await;
        }
        Ok(())
    }

    /// Keeps the shared stream open from now on, if the server offers one.
    pub(super) async fn listen_if_offered(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let opening = tokio::spawn(async move {
            if session.closed.unless(session.keep_shared_stream()).await.is_err() {
                tracing::debug!("the server offers no stream outside of calls");
            }
        });
        // A server that is slow to open it is not waited for.
        let _ = timeout(OPENING, opening).await;
    }

    /// Opens the stream for questions again after it has broken off for good.
    pub(super) fn listen_again(self: &Arc<Self>) {
        let broken = self
            .shared_stream
            .try_lock()
            .is_ok_and(|slot| slot.kept.as_ref().is_some_and(|stream| stream.sender.upgrade().is_none()));
        if broken {
            let session = Arc::clone(self);
            in_background(async move { drop(session.keep_shared_stream().await) });
        }
    }

    async fn keep_shared_stream(self: &Arc<Self>) -> Result<(), SessionFailure> {
        let (stream, _) = self.open_shared_stream().await?;
        self.shared_stream.lock().await.kept = Some(stream);
        Ok(())
    }

    async fn open_shared_stream(
        self: &Arc<Self>,
    ) -> Result<(Arc<SharedStream>, broadcast::Receiver<Bytes>), SessionFailure> {
        let mut slot = self.shared_stream.lock().await;
        if let Some(stream) = slot.current.upgrade()
            && let Some(sender) = stream.sender.upgrade()
        {
            let receiver = sender.subscribe();
            return Ok((stream, receiver));
        }
        let opening = timeout(PATIENCE, self.link.listen(&self.at)).await;
        let incoming =
            opening.unwrap_or_else(|_| Err(Error::timeout(SubscriptionsListen::NAME, PATIENCE).into()))?;
        let (sender, receiver) = broadcast::channel(CAPACITY);
        let weak = sender.downgrade();
        let (closed, pumping) = (self.closed.clone(), pump(Arc::downgrade(self), incoming, sender));
        let pump = tokio::spawn(async move {
            tokio::select! {
                () = closed.wait() => {}
                () = pumping => {}
            }
        })
        .abort_handle();
        let stream = Arc::new(SharedStream { sender: weak, pump });
        slot.current = Arc::downgrade(&stream);
        Ok((stream, receiver))
    }
}

/// Routes messages until the stream ends.
async fn pump<L: SessionLink>(
    session: Weak<Session<L>>,
    mut incoming: Incoming,
    sender: broadcast::Sender<Bytes>,
) {
    loop {
        coop::consume_budget().await;
        let message = match poll_fn(|cx| incoming.as_mut().poll_next(cx)).await {
            Some(Ok(message)) => message,
            Some(Err(error)) => {
                tracing::debug!(%error, "the stream of messages outside of calls broke off");
                return;
            }
            None => return,
        };
        match Message::decode(&message) {
            Ok(Message::Request(request)) => {
                let Some(session) = session.upgrade() else { return };
                answer(&session, &request, &message).await;
            }
            Ok(Message::Notification(_)) if message.len() > LARGEST_NOTIFICATION => {
                tracing::warn!(bytes = message.len(), "a notification is too large; ignored");
            }
            // There may be no listener.
            Ok(Message::Notification(notification)) if is_change(&notification.method) => {
                drop(sender.send(message));
            }
            Ok(Message::Notification(notification))
                if notification.method == LoggingMessageNotification::NAME =>
            {
                let Some(session) = session.upgrade() else { return };
                log_to_calls(&session, &message);
            }
            _ => tracing::debug!("neither a change, a question nor a log message; ignored"),
        }
    }
}

/// Answers a request of the server, or gives it to the call that it belongs to.
async fn answer<L: SessionLink>(
    session: &Arc<Session<L>>,
    request: &roundtrip_core::wire::Request<'_>,
    message: &Bytes,
) {
    if let Err(large) = small_enough(request, message) {
        drop(session.respond(&request.id, Err(&large)).await);
        return;
    }
    if is_question(&request.method) && belongs_to_a_call(session, message) {
        return;
    }
    let (hello, handlers) = handlers_outside_calls(session);
    let asked = admit(request, &session.askable(&hello), &hello.caller.limits);
    let most = hello.caller.limits.questions_outside_calls;
    drop(answer_outside_call(session, handlers, most, &request.id, asked).await);
}

/// Returns whether a notification is one that a listener can ask for. Others must not take their places in the queue.
fn is_change(method: &str) -> bool {
    [
        ToolListChangedNotification::NAME,
        PromptListChangedNotification::NAME,
        ResourceListChangedNotification::NAME,
        ResourceUpdatedNotification::NAME,
        TaskStatusNotification::NAME,
    ]
    .contains(&method)
}

/// Resources that a listener watches. When the last listener of a resource is dropped, the server is told.
struct Watch<L: SessionLink> {
    session: Arc<Session<L>>,
    uris: Vec<String>,
}

impl<L: SessionLink> Watch<L> {
    /// Adds a resource; returns whether the server agreed.
    async fn add(&mut self, uri: String) -> Result<bool, SessionFailure> {
        let first = {
            let mut watched = lock(&self.session.watched);
            let count = watched.entry(uri.clone()).or_default();
            *count += 1;
            *count == 1
        };
        self.uris.push(uri.clone());
        if !first {
            return Ok(true);
        }
        match self.session.aside(SUBSCRIBE, named(&uri)).await {
            Ok(_) => Ok(true),
            Err(SessionFailure::Error(Error::Rejected(error))) => {
                tracing::warn!(uri, %error, "the server refused to report changes of a resource");
                self.uris.pop();
                self.forget(&uri);
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Removes a resource; returns whether this was its last listener.
    fn forget(&self, uri: &str) -> bool {
        let mut watched = lock(&self.session.watched);
        match watched.entry(uri.to_owned()) {
            Entry::Occupied(mut entry) if *entry.get() > 1 => {
                *entry.get_mut() -= 1;
                false
            }
            Entry::Occupied(entry) => entry.remove() > 0,
            Entry::Vacant(_) => false,
        }
    }
}

impl<L: SessionLink> Drop for Watch<L> {
    fn drop(&mut self) {
        let last: Vec<String> =
            std::mem::take(&mut self.uris).into_iter().filter(|uri| self.forget(uri)).collect();
        if !last.is_empty() {
            let session = Arc::clone(&self.session);
            in_background(async move {
                for uri in last {
                    drop(session.aside(UNSUBSCRIBE, named(&uri)).await);
                }
            });
        }
    }
}

/// A listener. The field that holds the stream open comes after the one that tells the server, so that it is dropped
/// later.
struct Listener<L: SessionLink> {
    watch: Watch<L>,
    receiver: broadcast::Receiver<Bytes>,
    _stream: Arc<SharedStream>,
    id: RequestId,
    granted: SubscriptionFilter,
    /// First message of the stream.
    acknowledgment: Option<Bytes>,
}

/// Serves `subscriptions/listen` with the subscriptions of the handshake eras.
pub(super) async fn listen<L: SessionLink>(
    session: &Arc<Session<L>>,
    request: &Request,
) -> Result<Incoming, SessionFailure> {
    session.called_by(&request.hello);
    let wanted: SubscriptionFilter =
        request.params.get("notifications").and_then(|filter| filter.to().ok()).unwrap_or_default();
    let (stream, receiver) = match session.open_shared_stream().await {
        Err(SessionFailure::Refused(refusal)) if refusal.status == 405 => {
            return Err(Error::from(PeerIncompatible::NoChanges).into());
        }
        opened => opened?,
    };
    let (mut granted, watches) = grant(&wanted, session);
    let mut watch = Watch { session: Arc::clone(session), uris: Vec::new() };
    for uri in wanted.resource_subscriptions.into_iter().filter(|_| watches).take(WATCHED) {
        if watch.add(uri.clone()).await? {
            granted.resource_subscriptions.push(uri);
        }
    }
    let params = SubscriptionsAcknowledgedNotificationParams {
        meta: NotificationMeta { subscription_id: Some(request.id.clone()) },
        notifications: granted.clone(),
    };
    let message = encoded(encode_notification(SubscriptionsAcknowledgedNotification::NAME, &params))?;
    let acknowledgment = Some(message.into());
    let listener =
        Listener { watch, receiver, _stream: stream, id: request.id.clone(), granted, acknowledgment };
    Ok(unfold(listener, |mut listener| async move {
        let told = listener.next().await;
        let over = told.is_err();
        Some((told, if over { None } else { Some(listener) }))
    }))
}

/// Returns the wanted list changes that the server offers, and whether it offers resource subscriptions.
fn grant<L: SessionLink>(wanted: &SubscriptionFilter, session: &Session<L>) -> (SubscriptionFilter, bool) {
    let offers = &session.server.capabilities;
    let resources = offers.resources.clone().unwrap_or_default();
    let both = |wanted: Option<bool>, offered: Option<bool>| {
        (wanted == Some(true) && offered == Some(true)).then_some(true)
    };
    let tools = offers.tools.as_ref().and_then(|tools| tools.list_changed);
    let prompts = offers.prompts.as_ref().and_then(|prompts| prompts.list_changed);
    let granted = SubscriptionFilter {
        tools_list_changed: both(wanted.tools_list_changed, tools),
        prompts_list_changed: both(wanted.prompts_list_changed, prompts),
        resources_list_changed: both(wanted.resources_list_changed, resources.list_changed),
        resource_subscriptions: Vec::new(),
        task_ids: wanted.task_ids.iter().filter(|_| session.has_tasks).take(WATCHED).cloned().collect(),
    };
    (granted, resources.subscribe == Some(true))
}

impl<L: SessionLink> Listener<L> {
    async fn next(&mut self) -> Result<Bytes, Error> {
        if let Some(first) = self.acknowledgment.take() {
            return Ok(first);
        }
        loop {
            match self.receiver.recv().await {
                Ok(message) => {
                    if let Some(change) = self.tagged(&message) {
                        return Ok(change);
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    return Err(Error::unreachable(Unreachable::FellBehind, Sent::Maybe));
                }
                Err(broadcast::error::RecvError::Closed) => {
                    return Err(Error::closed_by_server("the stream of changes broke off", Sent::Maybe));
                }
            }
        }
    }

    /// Returns a change that was asked for, with the subscription id that the modern era puts into `_meta`.
    fn tagged(&self, message: &[u8]) -> Option<Bytes> {
        let mut value: Value = json::from_slice(message).ok()?;
        let wanted = match value["method"].as_str()? {
            ToolListChangedNotification::NAME => self.granted.tools_list_changed.is_some(),
            PromptListChangedNotification::NAME => self.granted.prompts_list_changed.is_some(),
            ResourceListChangedNotification::NAME => self.granted.resources_list_changed.is_some(),
            ResourceUpdatedNotification::NAME => {
                let uri = value["params"]["uri"].as_str()?;
                self.watch.uris.iter().any(|watched| uri.starts_with(watched.as_str()))
            }
            TaskStatusNotification::NAME => {
                let task: BareTask = json::from_value(&value["params"]).ok()?;
                let wanted = self.granted.task_ids.contains(&task.task_id);
                value =
                    json!({ "jsonrpc": "2.0", "method": TaskNotification::NAME, "params": Task::from(task) });
                wanted
            }
            _ => false,
        };
        if !value["params"].is_object() {
            value["params"] = json!({});
        }
        value["params"]["_meta"] = json!({ meta::key::SUBSCRIPTION_ID: self.id });
        wanted.then(|| value.to_string().into())
    }
}
