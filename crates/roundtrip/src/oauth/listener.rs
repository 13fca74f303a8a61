//! Loopback listener: one path on one port of this machine, for one sign-in (RFC 8252, 7.3).

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use roundtrip_core::auth::{Answered, CallbackError, Pending};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::lock::lock;

/// Path of the redirect URI.
const PATH: &str = "/callback";
/// Longest time of one connection.
const LONGEST_CONNECTION: Duration = Duration::from_secs(10);
/// Greatest number of connections at once. A browser opens some ahead of need, and asks for an icon.
const MOST_CONNECTIONS: usize = 16;
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest head of a request, in bytes.
const LONGEST_HEAD: usize = 32 * 1024;

/// Outcome of a callback that ends the wait.
type Outcome = Result<Answered, CallbackError>;

/// Listener on the loopback interface. Dropping it frees its port.
#[derive(Debug)]
pub(super) struct Listener {
    socket: TcpListener,
    /// `Host` of requests that are for it.
    host: String,
}

impl Listener {
    /// Binds a port: one that a registration names, if it is free, or any.
    pub(super) async fn bind(registered: Option<u16>) -> io::Result<Self> {
        let at = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let socket = match registered {
            Some(port) => match at(port).await {
                Ok(socket) => socket,
                Err(_) => at(0).await?,
            },
            None => at(0).await?,
        };
        let host = socket.local_addr()?.to_string();
        Ok(Self { socket, host })
    }

    /// Returns the redirect URI.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://{}{PATH}", self.host)
    }

    /// Waits for the callback of a sign-in, and shows its browser a page. Whatever else is asked for is not found, and the wait
    /// goes on.
    pub(super) async fn answered(self, pending: &Pending) -> Outcome {
        let callback = Callback { host: self.host, pending: pending.clone(), outcome: Mutex::default() };
        let callback = Arc::new(callback);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                // The connection that brings the outcome has had its page by then.
                Some(ended) = connections.join_next() => {
                    if let (Ok(true), Some(outcome)) = (ended, lock(&callback.outcome).take()) {
                        return outcome;
                    }
                }
                accepted = self.socket.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&callback)))),
                    // No more files, for one.
                    Err(_) => sleep(PAUSE).await,
                },
            }
        }
    }
}

/// The sign-in that a listener waits for.
struct Callback {
    host: String,
    pending: Pending,
    outcome: Mutex<Option<Outcome>>,
}

/// Serves one connection. Returns whether it brought the outcome.
async fn serve(stream: TcpStream, callback: Arc<Callback>) -> bool {
    let brought = AtomicBool::new(false);
    let answer = service_fn(|request: Request<Incoming>| {
        let page = callback.page(&request, &brought);
        async move { Ok::<_, Infallible>(page) }
    });
    let mut server = http1::Builder::new();
    let serving = server.max_buf_size(LONGEST_HEAD).serve_connection(TokioIo::new(stream), answer);
    if let Ok(Err(error)) = timeout(LONGEST_CONNECTION, serving).await {
        tracing::debug!(%error, "a connection to the listener of a sign-in broke off");
    }
    brought.into_inner()
}

impl Callback {
    /// Answers a request. Nothing of it is in the answer.
    fn page(&self, request: &Request<Incoming>, brought: &AtomicBool) -> Response<String> {
        let for_us = request.method() == Method::GET
            && request.uri().path() == PATH
            && request.headers().get(HOST).is_some_and(|host| host.as_bytes() == self.host.as_bytes());
        let query = request.uri().query().unwrap_or_default();
        let mut outcome = lock(&self.outcome);
        if !for_us || outcome.is_some() {
            return respond(StatusCode::NOT_FOUND, "There is nothing here.");
        }
        match self.pending.answered(&format!("http://{}{PATH}?{query}", self.host)) {
            Err(CallbackError::NotOurs) => respond(StatusCode::NOT_FOUND, "This is no answer to a sign-in."),
            answered => {
                let said = if answered.is_ok() {
                    "You can close this window and go back to the application."
                } else {
                    "The sign-in failed. Go back to the application, which says why."
                };
                *outcome = Some(answered);
                brought.store(true, Ordering::Relaxed);
                respond(StatusCode::OK, said)
            }
        }
    }
}

fn respond(status: StatusCode, said: &str) -> Response<String> {
    let page = format!("<!doctype html><meta charset=utf-8><title>Sign-in</title><p>{said}</p>\n");
    let mut response = Response::new(page);
    *response.status_mut() = status;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (CONNECTION, "close"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
