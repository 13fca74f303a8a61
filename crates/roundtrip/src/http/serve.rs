//! Accept loop for servers that are nothing but an MCP endpoint.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower_service::Service as _;

use super::head::{self, HEAD_BYTES};
use super::head_timer::HeadTimer;
use super::service::Http;
use super::shutdown::{Phase, Signals, Trigger, reached};
use super::socket::{RequestBody, Socket};
use crate::server::{ServeError, Server};

/// Path of the endpoint if Roundtrip accepts the connections itself.
const PATH: &str = "/mcp";

/// A server bound to an address. Await it to serve, until SIGTERM or ctrl-c.
///
/// Then it waits for the calls that run, for at most [`HttpLimits::grace`](super::HttpLimits::grace). A second signal stops it
/// at once.
#[must_use = "a bound server does nothing until it is awaited"]
pub struct Bound {
    http: Http,
    listener: TcpListener,
    shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Server {
    /// Serves HTTP at `/mcp` on an address, until SIGTERM or ctrl-c.
    ///
    /// # Errors
    /// If the server was put together wrongly, or the address cannot be bound.
    pub async fn serve_http(self, address: impl ToSocketAddrs + fmt::Debug) -> Result<(), ServeError> {
        Ok(self.into_http()?.bind(address).await?.await?)
    }
}

impl Http {
    /// Binds to an address, to be served at `/mcp`. On a loopback address only loopback host names are accepted.
    ///
    /// # Errors
    /// If the address cannot be bound: the error names it. If authorization is set up wrongly.
    pub async fn bind(self, address: impl ToSocketAddrs + fmt::Debug) -> io::Result<Bound> {
        self.check()?;
        let named = format!("cannot bind {address:?}");
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| io::Error::new(error.kind(), format!("{named}: {error}")))?;
        let http = self.set(|settings| settings.gate.needs_host = true);
        let http = if listener.local_addr()?.ip().is_loopback() { http.loopback_only() } else { http };
        Ok(Bound { http, listener, shutdown: None })
    }
}

impl Bound {
    /// Returns the address it is bound to.
    ///
    /// # Errors
    /// If the socket does not know its address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until a future completes, instead of until SIGTERM or ctrl-c.
    pub fn until(mut self, shutdown: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(shutdown));
        self
    }

    async fn serve(self) -> io::Result<()> {
        let limits = self.http.http_limits();
        let places = Arc::new(Semaphore::new(limits.connections));
        let (phase, phases) = watch::channel(Phase::Serving);
        let mut trigger = self.shutdown.map_or_else(|| Trigger::Signals(Signals::new()), Trigger::Future);
        tracing::info!("serving MCP at http://{}{PATH}", self.listener.local_addr()?);
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.listener, &places) => accepted,
                () = trigger.first() => break,
            };
            let Some((stream, place)) = accepted else { continue };
            tokio::spawn(connection(self.http.clone(), stream, place, phases.clone()));
        }
        // Stop accepting, end the listening streams with their result, and let the rest finish or move on (H9).
        drop((self.listener, phases));
        let endpoint = self.http.endpoint();
        endpoint.drain();
        endpoint.close_subscriptions();
        phase.send_replace(Phase::Draining);
        if endpoint.running_calls() > 0 {
            let (calls, grace, hint) = (endpoint.running_calls(), limits.grace, trigger.hint());
            tracing::info!("waiting for running calls ({calls}), at most {grace:?}{hint}");
        }
        let all_ended = async {
            phase.closed().await;
            // Rounds whose clients have hung up are still recorded (M6).
            endpoint.finished().await;
        };
        let stopped = tokio::select! {
            ended = tokio::time::timeout(limits.grace, all_ended) => ended.is_err(),
            () = trigger.second() => true,
        };
        if stopped {
            tracing::warn!("stopped before all calls had ended (running: {})", endpoint.running_calls());
            phase.send_replace(Phase::Stopped);
        }
        Ok(())
    }
}

impl IntoFuture for Bound {
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.serve())
    }
}

/// Accepts the next connection, once there is a place for it. Beyond the limit, connections wait in the backlog.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // Most likely out of file descriptors: some have to be closed first.
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

async fn connection(
    http: Http,
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
    mut phases: watch::Receiver<Phase>,
) {
    // A response is one write: there is nothing to wait for and put together.
    let _ = stream.set_nodelay(true);
    let limits = http.http_limits();
    let http = http.for_address(stream.peer_addr().ok().map(|address| address.ip()));
    let socket = Socket::new(stream, limits.write_timeout);
    let answering = socket.answering();
    let mut timer = HeadTimer::new(answering.clone(), limits.head_timeout);
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut http, answering) = (http.clone(), answering.clone());
        let guard = answering.begin();
        async move {
            let mut response = if answering.next_head() > HEAD_BYTES
                && let Some(refused) = head::refuse_long(&request)
            {
                refused
            } else if request.uri().path() == PATH {
                http.call(request.map(|body| RequestBody { body, answering })).await?
            } else {
                head::refuse_hosts(&request)
                    .or_else(|| http.metadata(&request))
                    .unwrap_or_else(head::refuse_path)
            };
            response.body_mut().hold(guard);
            Ok::<_, Infallible>(response)
        }
    });
    let connection =
        http1::Builder::new().max_buf_size(HEAD_BYTES).serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    for phase in [Phase::Draining, Phase::Stopped] {
        match until(phase, connection.as_mut(), &mut timer, &mut phases).await {
            Ended::Closed(closed) => {
                if let Err(error) = closed {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            Ended::Silent => {
                let limit = limits.head_timeout;
                return tracing::debug!(?limit, "connection ended: no head has arrived within the limit");
            }
            Ended::Phase => connection.as_mut().graceful_shutdown(),
        }
    }
}

/// Reason why a connection is not served any more, or otherwise than before.
enum Ended {
    Closed(hyper::Result<()>),
    /// A head was waited for too long.
    Silent,
    /// The server has reached another phase.
    Phase,
}

/// Serves a connection until its end, or until the server has reached a phase.
async fn until(
    phase: Phase,
    mut connection: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    timer: &mut HeadTimer,
    phases: &mut watch::Receiver<Phase>,
) -> Ended {
    let seen = phases.clone();
    let mut reached = pin!(reached(phases, phase));
    let mut is_first = true;
    // A connection is woken for every request, and the other two hardly ever: after the first time they are polled when they have
    // something to say. The waker of a task stays the same.
    poll_fn(|cx| {
        if let Poll::Ready(closed) = connection.as_mut().poll(cx) {
            return Poll::Ready(Ended::Closed(closed));
        }
        if (is_first || timer.is_due()) && timer.poll(cx).is_ready() {
            return Poll::Ready(Ended::Silent);
        }
        if (is_first || seen.has_changed().unwrap_or(true)) && reached.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ended::Phase);
        }
        is_first = false;
        Poll::Pending
    })
    .await
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("listener", &self.listener).finish_non_exhaustive()
    }
}
