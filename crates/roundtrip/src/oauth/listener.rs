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
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::lock::lock;

/// Header by which browsers name the use that they have for a response (Fetch Metadata).
const SEC_FETCH_DEST: &str = "sec-fetch-dest";
/// Path of the redirect URI.
const PATH: &str = "/callback";
/// Longest time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(1);
/// Longest time of a connection after that.
const LONGEST_CONNECTION: Duration = Duration::from_secs(10);
/// Greatest number of connections at once. A browser opens some ahead of need, and asks for an icon. When all slots are taken, the
/// next connection takes that of the oldest one without a whole request: none keeps the callback out by silence.
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
    /// continues.
    pub(super) async fn answered(self, pending: &Pending) -> Outcome {
        let callback = Callback { host: self.host, pending: pending.clone(), outcome: Mutex::default() };
        let callback = Arc::new(callback);
        let mut connections = Connections::default();
        loop {
            tokio::select! {
                // The connection that brings the outcome has had its page by then.
                Some(ended) = connections.tasks.join_next() => {
                    if let (Ok(true), Some(outcome)) = (ended, lock(&callback.outcome).take()) {
                        return outcome;
                    }
                }
                accepted = self.socket.accept(), if connections.has_slot() => match accepted {
                    Ok((stream, _)) => connections.add(stream, &callback).await,
                    // No more files, for one.
                    Err(_) => sleep(PAUSE).await,
                },
            }
        }
    }
}

/// Connections of a listener.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<bool>,
    /// Oldest first.
    open: Vec<(AbortHandle, Arc<Claim>)>,
}

/// Claim on a connection: of its first whole request, or of the one who ends it before there is any.
#[derive(Default)]
struct Claim(AtomicBool);

impl Claim {
    /// Returns whether this claim is the first.
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }

    fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connections {
    /// Returns whether one more connection can be accepted.
    fn has_slot(&self) -> bool {
        self.tasks.len() < MOST_CONNECTIONS || self.open.iter().any(|(_, request)| !request.is_taken())
    }

    /// Serves a connection, in the slot of the oldest one without a request if no other is free.
    async fn add(&mut self, stream: TcpStream, callback: &Arc<Callback>) {
        self.open.retain(|(task, _)| !task.is_finished());
        if self.open.len() >= MOST_CONNECTIONS
            && let Some(oldest) = self.open.iter().position(|(_, request)| request.take())
        {
            self.open.remove(oldest).0.abort();
            // Those that were accepted before have their turn to read.
            tokio::task::yield_now().await;
        }
        let request = Arc::new(Claim::default());
        let task = self.tasks.spawn(serve(stream, Arc::clone(callback), Arc::clone(&request)));
        self.open.push((task, request));
    }
}

/// The sign-in that a listener waits for.
struct Callback {
    host: String,
    pending: Pending,
    outcome: Mutex<Option<Outcome>>,
}

/// Serves one connection. Returns whether it brought the outcome.
async fn serve(stream: TcpStream, callback: Arc<Callback>, first: Arc<Claim>) -> bool {
    let brought = AtomicBool::new(false);
    let answer = service_fn(|request: Request<Incoming>| {
        let page = if first.take() { callback.page(&request, &brought) } else { not_found() };
        async move { Ok::<_, Infallible>(page) }
    });
    let mut server = http1::Builder::new();
    let serving = server.max_buf_size(LONGEST_HEAD).serve_connection(TokioIo::new(stream), answer);
    let late = async {
        sleep(HEAD_TIME).await;
        if first.is_taken() {
            sleep(LONGEST_CONNECTION).await;
        }
    };
    tokio::select! {
        ended = serving => if let Err(error) = ended {
            tracing::debug!(%error, "a connection to the listener of a sign-in broke off");
        },
        () = late => {}
    }
    brought.load(Ordering::Relaxed)
}

impl Callback {
    /// Answers a request. Nothing of it is in the answer, and nothing of it counts without the `state` of the sign-in.
    fn page(&self, request: &Request<Incoming>, brought: &AtomicBool) -> Response<String> {
        let for_us = request.method() == Method::GET
            && request.uri().path() == PATH
            && request.headers().get(HOST).is_some_and(|host| host.as_bytes() == self.host.as_bytes())
            // A browser that comes back shows the page; an image or a script of another page does not.
            && request.headers().get(SEC_FETCH_DEST).is_none_or(|dest| dest == "document");
        let query = request.uri().query().unwrap_or_default();
        let mut outcome = lock(&self.outcome);
        if !for_us || outcome.is_some() {
            return not_found();
        }
        match self.pending.answered(&format!("http://{}{PATH}?{query}", self.host)) {
            // What cannot be read shows no `state`: any program of this machine may have sent it.
            Err(CallbackError::NotOurs | CallbackError::Malformed) => {
                respond(StatusCode::NOT_FOUND, "This is no answer to a sign-in.")
            }
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

fn not_found() -> Response<String> {
    respond(StatusCode::NOT_FOUND, "There is nothing here.")
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
