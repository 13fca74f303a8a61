//! `subscriptions/listen`: the stream of changes.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
#[cfg(feature = "opentelemetry")]
use opentelemetry::context::FutureExt as _;
use roundtrip_core::error::{Error, PeerMisbehaved};
use roundtrip_core::exchange::{Params, TaskDialect};
use roundtrip_core::wire::{
    CancelledNotification, CancelledNotificationParams, Method as _, NotificationMeta, NotificationMethod,
    NotificationParams, PromptListChangedNotification, Raw, RequestId, ResourceListChangedNotification,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParams, SubscriptionFilter,
    SubscriptionsAcknowledgedNotification, SubscriptionsAcknowledgedNotificationParams, SubscriptionsListen,
    TaskNotification, TaskNotificationParams, ToolListChangedNotification, clip,
};
use tokio::time::{Instant, sleep};

use super::builder::Client;
use super::change::Change;
use super::in_flight::{Event, InFlight};
use super::options::{Options, decode};
use super::request::{Request, raw};
use super::request_time::RequestTime;
use super::send::{Attempts, authorize};
use super::transport::BoxFuture;

/// Bounds of the pause before a stream is opened again: it doubles while streams break soon.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Age of a stream that did not break soon.
const SETTLED: Duration = Duration::from_secs(30);
/// Attempts to reach the server, before its error is reported.
const ATTEMPTS: u32 = 5;

/// Builder of a subscription; awaiting it opens the stream of [`Changes`].
#[derive(Debug)]
#[must_use = "nothing is listened for until this is awaited"]
pub struct Listen {
    client: Client,
    options: Options,
    filter: SubscriptionFilter,
    reconnects: bool,
}

impl Listen {
    pub(crate) fn new(client: &Client) -> Self {
        Self::of(client, SubscriptionFilter::default())
    }

    fn of(client: &Client, filter: SubscriptionFilter) -> Self {
        Self { client: client.clone(), options: Options::default(), filter, reconnects: false }
    }

    /// Listens again where the connection breaks: the program of a stdio server that has ended is started anew, and gets the same
    /// `subscriptions/listen` (subscriptions, "stdio"). As any change may have been missed meanwhile, everything that is listened for
    /// counts as changed then, tasks excepted. A pause of 100 ms before that grows up to 5 s while streams break soon; the error of a
    /// server that cannot be reached any more ends the stream.
    pub fn reconnecting(mut self) -> Self {
        self.reconnects = true;
        self
    }

    /// Changes of the list of tools.
    pub fn tools(mut self) -> Self {
        self.filter.tools_list_changed = Some(true);
        self
    }

    /// Changes of the list of prompts.
    pub fn prompts(mut self) -> Self {
        self.filter.prompts_list_changed = Some(true);
        self
    }

    /// Changes of the list of resources.
    pub fn resources(mut self) -> Self {
        self.filter.resources_list_changed = Some(true);
        self
    }

    /// Changes of the content of a resource. Call it again for more of them.
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.filter.resource_subscriptions.push(uri.into());
        self
    }

    /// Changes of a task, by its identifier. Call it again for more of them.
    pub fn task(mut self, id: impl Into<String>) -> Self {
        self.filter.task_ids.push(id.into());
        self.options.dialect = Some(TaskDialect::Extension);
        self
    }

    /// Adds the members that the `_meta` of a task's call has.
    pub(super) fn keep_meta(mut self, meta: &Params) -> Self {
        self.options.keep_meta(meta);
        self
    }

    /// Limits the time the server may take to acknowledge, in place of the client's setting. The stream itself stays
    /// open for as long as both sides want it to.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Adds a value to the request's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl serde::Serialize) -> Self {
        self.options.meta(key.into(), &value);
        self
    }

    async fn open(mut self) -> Result<Changes, Error> {
        self.client.ready(&mut self.options)?;
        let again = self.reconnects.then(|| Reopener::new(&self));
        let mut request = Request::new(SubscriptionsListen::NAME);
        request.set("notifications", Some(raw(&self.filter, "the filter")?));
        let mut time = RequestTime::new(self.client.timeout_of(&self.options));
        loop {
            let opened = time.limit(&request, self.send(&request)).await;
            #[cfg(feature = "opentelemetry")]
            self.client.end_span(&mut self.options, opened.as_ref().map(|_| None));
            match opened {
                Ok((leg, acknowledged)) => {
                    let (reopening, missed) = (None, VecDeque::new());
                    let client = self.client;
                    return Ok(Changes { client, leg: Some(leg), acknowledged, again, reopening, missed });
                }
                Err(error) => {
                    authorize(&self.client, &request, &mut self.options, error, &mut time).await?;
                }
            }
        }
    }

    async fn send(&mut self, request: &Request<'_>) -> Result<(InFlight, SubscriptionFilter), Error> {
        let mut attempts = Attempts::new();
        loop {
            #[cfg(feature = "opentelemetry")]
            let context = self.client.begin_span(request, &mut self.options);
            let outgoing = self.client.outgoing(request, &self.options, attempts.version)?;
            let opening = acknowledged(InFlight::open(self.client.transport(), outgoing));
            #[cfg(feature = "opentelemetry")]
            let opening = opening.with_context(context);
            let opened = opening.await;
            #[cfg(feature = "opentelemetry")]
            self.client.end_span(&mut self.options, opened.as_ref().map(|_| None));
            match opened {
                Ok(acknowledged) => {
                    self.client.answered_in(attempts.version);
                    return Ok(acknowledged);
                }
                Err(error) => attempts.mend(&self.client, request, error).await?,
            }
        }
    }
}

impl IntoFuture for Listen {
    type Output = Result<Changes, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

/// Waits for the acknowledgment, which must be the first message of a stream.
async fn acknowledged(
    opening: impl Future<Output = Result<InFlight, Error>>,
) -> Result<(InFlight, SubscriptionFilter), Error> {
    let mut leg = opening.await?;
    match leg.event().await? {
        Event::Notification { method, params } if method == SubscriptionsAcknowledgedNotification::NAME => {
            let params: SubscriptionsAcknowledgedNotificationParams =
                decode(&method, params.as_ref().map(AsRef::as_ref))?;
            belongs(&params.meta, leg.id(), &method)?;
            Ok((leg, params.notifications))
        }
        Event::Notification { method, .. } => misbehaved(format!(
            "it sent `{}` on a stream of changes that it had not acknowledged",
            clip(&method)
        )),
        Event::Answer(_) => {
            misbehaved("it ended a stream of changes that it had not acknowledged".to_owned())
        }
    }
}

/// Checks that a message on a stream names the stream.
fn belongs(meta: &NotificationMeta, stream: &RequestId, method: &str) -> Result<(), Error> {
    match &meta.subscription_id {
        Some(id) if id == stream => Ok(()),
        Some(id) => misbehaved(format!("`{method}` came on stream {stream} and is tagged {id}")),
        None => misbehaved(format!("`{method}` came on stream {stream} without its id")),
    }
}

fn misbehaved<T>(how: String) -> Result<T, Error> {
    Err(PeerMisbehaved::Subscription(how).into())
}

/// A stream of changes. Dropping it ends the subscription.
///
/// It is a [`Stream`] of results: it ends with `None` when the server ends it in good order, and with an error, then
/// `None`, when it breaks. Cached results of what changed are dropped before the change is handed on.
#[must_use = "changes do nothing until they are asked for"]
pub struct Changes {
    client: Client,
    /// None once it is over.
    leg: Option<InFlight>,
    acknowledged: SubscriptionFilter,
    /// Settings of a stream that is opened again where it breaks.
    again: Option<Reopener>,
    reopening: Option<BoxFuture<Result<Changes, Error>>>,
    /// Changes that may have happened while there was no stream.
    missed: VecDeque<Change>,
}

impl Changes {
    /// Returns the changes that the server agreed to tell of: they may be fewer than were asked for.
    pub fn acknowledged(&self) -> &SubscriptionFilter {
        &self.acknowledged
    }

    /// Returns the next change.
    pub async fn next(&mut self) -> Option<Result<Change, Error>> {
        poll_fn(|cx| self.poll_change(cx)).await
    }

    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Change, Error>>> {
        loop {
            if let Some(change) = self.missed.pop_front() {
                self.client.cache_store().invalidate(&change);
                return Poll::Ready(Some(Ok(change)));
            }
            if let Some(reopening) = &mut self.reopening {
                let reopened = ready!(reopening.as_mut().poll(cx));
                self.reopening = None;
                match reopened {
                    Ok(reopened) => self.resume(reopened),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
                continue;
            }
            let Some(leg) = &mut self.leg else { return Poll::Ready(None) };
            let read = match ready!(leg.poll_event(cx)) {
                Ok(Event::Answer(_)) => Ok(Told::End),
                Ok(Event::Notification { method, params }) => read(leg.id(), &method, params.as_ref()),
                Err(error) => Err(error),
            };
            match read {
                Ok(Told::Nothing) => {}
                Ok(Told::Change(change)) => {
                    self.client.cache_store().invalidate(&change);
                    return Poll::Ready(Some(Ok(change)));
                }
                Ok(Told::End) => {
                    self.leg = None;
                    return Poll::Ready(None);
                }
                Err(error) => {
                    self.leg = None;
                    match &mut self.again {
                        Some(again) if matches!(error, Error::Unreachable { .. }) => {
                            tracing::debug!(%error, "a stream of changes broke, and is opened again");
                            self.reopening = Some(again.reopen(&self.client));
                        }
                        _ => return Poll::Ready(Some(Err(error))),
                    }
                }
            }
        }
    }

    /// Continues with a stream that was opened in place of a broken one.
    fn resume(&mut self, mut reopened: Self) {
        self.leg = reopened.leg.take();
        self.acknowledged = std::mem::take(&mut reopened.acknowledged);
        self.missed.extend(all_changes(&self.acknowledged));
    }
}

/// Content of a message on the stream.
enum Told {
    Change(Change),
    Nothing,
    End,
}

fn read(stream: &RequestId, method: &str, params: Option<&Raw>) -> Result<Told, Error> {
    let params = params.map(AsRef::as_ref);
    let change = match method {
        ToolListChangedNotification::NAME => Change::Tools,
        PromptListChangedNotification::NAME => Change::Prompts,
        ResourceListChangedNotification::NAME => Change::Resources,
        ResourceUpdatedNotification::NAME => {
            let params: ResourceUpdatedNotificationParams = decode(method, params)?;
            belongs(&params.meta, stream, method)?;
            return Ok(Told::Change(Change::Resource { uri: params.uri }));
        }
        TaskNotification::NAME => {
            let TaskNotificationParams { meta, task } = decode(method, params)?;
            belongs(&meta, stream, method)?;
            return Ok(Told::Change(Change::Task(Box::new(task))));
        }
        // The other way for a server to end a stream (cancellation, "Behavior Requirements").
        CancelledNotification::NAME => {
            let params: CancelledNotificationParams = decode(method, params)?;
            return Ok(if params.request_id == *stream { Told::End } else { Told::Nothing });
        }
        other => {
            tracing::debug!(method = &*clip(other), "a notification that is no change");
            return Ok(Told::Nothing);
        }
    };
    let params: NotificationParams = decode(method, params)?;
    belongs(&params.meta, stream, method)?;
    Ok(Told::Change(change))
}

/// Settings of a stream that is opened again where it breaks.
#[derive(Debug)]
struct Reopener {
    filter: SubscriptionFilter,
    timeout: Option<Duration>,
    extra: Vec<(String, Raw)>,
    dialect: Option<TaskDialect>,
    opened: Instant,
    pause: Duration,
}

impl Reopener {
    fn new(listen: &Listen) -> Self {
        Self {
            filter: listen.filter.clone(),
            timeout: listen.options.timeout,
            extra: listen.options.extra.clone(),
            dialect: listen.options.dialect,
            opened: Instant::now(),
            pause: PAUSE.0,
        }
    }

    /// Opens the stream again, after a pause.
    fn reopen(&mut self, client: &Client) -> BoxFuture<Result<Changes, Error>> {
        if self.opened.elapsed() >= SETTLED {
            self.pause = PAUSE.0;
        }
        let first = self.pause;
        self.pause = (2 * self.pause).min(PAUSE.1);
        self.opened = Instant::now() + first;
        let (client, filter, timeout) = (client.clone(), self.filter.clone(), self.timeout);
        let (extra, dialect) = (self.extra.clone(), self.dialect);
        Box::pin(async move {
            let mut pause = first;
            for attempt in 1.. {
                let waiting = async {
                    sleep(pause).await;
                    Ok::<(), Error>(())
                };
                client.closed().unless(waiting).await?;
                pause = (2 * pause).min(PAUSE.1);
                let mut listen = Listen::of(&client, filter.clone());
                listen.options.timeout = timeout;
                listen.options.extra.clone_from(&extra);
                listen.options.dialect = dialect;
                match Box::pin(listen.open()).await {
                    Err(Error::Unreachable { .. }) if attempt < ATTEMPTS => {}
                    opened => return opened,
                }
            }
            Err(Error::Closed)
        })
    }
}

/// Returns all that a subscription tells of, tasks excepted, whose states only the server knows.
fn all_changes(filter: &SubscriptionFilter) -> impl Iterator<Item = Change> {
    let lists = [
        (filter.tools_list_changed, Change::Tools),
        (filter.prompts_list_changed, Change::Prompts),
        (filter.resources_list_changed, Change::Resources),
    ];
    let lists = lists.into_iter().filter_map(|(on, change)| (on == Some(true)).then_some(change));
    let resources = filter.resource_subscriptions.clone().into_iter();
    lists.chain(resources.map(|uri| Change::Resource { uri }))
}

impl Stream for Changes {
    type Item = Result<Change, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_change(cx)
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("acknowledged", &self.acknowledged).finish_non_exhaustive()
    }
}
