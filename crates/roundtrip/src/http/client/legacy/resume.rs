//! Streams of a session, resumed after they break off (transports, "Resumability and Redelivery").

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use reqwest::Response;
use tokio::time::{Instant, sleep};

use super::At;
use crate::client::{Error, Incoming, PeerMisbehaved, Refusal, Sent, Unreachable};
use crate::http::client::broken;
use crate::http::client::link::Http;
use crate::http::client::sse::{Decoder, Overlong};
use crate::legacy::client::{SessionFailure, unfold};

/// Most failures in a row to resume a stream.
const ATTEMPTS: u32 = 5;
/// Pause before resuming if the server does not name one.
const PAUSE: Duration = Duration::from_secs(1);
/// Shortest and longest pause, whatever the server says.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60));
/// A connection that lasts less than this and brings no event is a failure.
const SHORT: Duration = Duration::from_secs(1);

type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// Stream of one request. It can be resumed if its events have ids.
pub(super) fn stream(http: Http, at: At, response: Response) -> Incoming {
    Resumed::start(http, at, response, false)
}

/// Stream of messages that belong to no request. It can always be opened again.
pub(super) fn endless(http: Http, at: At, response: Response) -> Incoming {
    Resumed::start(http, at, response, true)
}

struct Resumed {
    http: Http,
    at: At,
    /// `None` while there is no connection.
    body: Option<Body>,
    decoder: Decoder,
    ready: VecDeque<Bytes>,
    endless: bool,
    /// Failures in a row.
    failed: u32,
    /// Start of this connection.
    since: Instant,
}

impl Resumed {
    fn start(http: Http, at: At, response: Response, endless: bool) -> Incoming {
        let resumed = Self {
            http,
            at,
            body: Some(Box::pin(response.bytes_stream())),
            decoder: Decoder::default(),
            ready: VecDeque::new(),
            endless,
            failed: 0,
            since: Instant::now(),
        };
        unfold(resumed, |mut resumed| async move {
            match resumed.next().await {
                Some(Ok(message)) => Some((Ok(message), Some(resumed))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        })
    }

    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        // Error that ended the last connection.
        let mut ended = None;
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(Ok(message));
            }
            let Some(body) = &mut self.body else {
                match self.take_up(ended.take()).await {
                    Ok(true) => continue,
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                }
            };
            match poll_fn(|cx| body.as_mut().poll_next(cx)).await {
                Some(Ok(chunk)) => {
                    let (ready, failed) = (&mut self.ready, &mut self.failed);
                    // An event without data only carries its id.
                    let fed = self.decoder.feed(&chunk, |event| {
                        *failed = 0;
                        if !event.is_empty() {
                            ready.push_back(event);
                        }
                    });
                    if let Err(Overlong) = fed {
                        return Some(Err(PeerMisbehaved::TooLarge(Overlong.to_string()).into()));
                    }
                }
                Some(Err(error)) => {
                    self.body = None;
                    ended = Some(broken("the stream broke off", error, Sent::Maybe));
                }
                None => self.body = None,
            }
        }
    }

    /// Connects again; false if that is not possible and the stream has simply ended.
    async fn take_up(&mut self, mut ended: Option<Error>) -> Result<bool, Error> {
        if self.decoder.position().last_id().is_none() && !self.endless {
            return ended.map_or(Ok(false), Err);
        }
        if self.since.elapsed() >= SHORT {
            self.failed = 0;
        }
        while self.failed < ATTEMPTS {
            sleep(self.decoder.position().retry().unwrap_or(PAUSE).clamp(PAUSES.0, PAUSES.1)).await;
            self.decoder.begin_anew();
            let last_id = self.decoder.position().last_id().map(<[u8]>::to_vec);
            match self.http.get(&self.at, last_id.as_deref()).await {
                Ok(response) => {
                    self.body = Some(Box::pin(response.bytes_stream()));
                    self.since = Instant::now();
                    // Reset by the first event.
                    self.failed += 1;
                    return Ok(true);
                }
                Err(SessionFailure::Error(error @ Error::Unreachable { .. })) => {
                    self.failed += 1;
                    tracing::debug!(%error, "a stream could not be resumed");
                    ended = Some(error);
                }
                Err(SessionFailure::Error(error)) => return Err(error),
                Err(SessionFailure::Gone) => {
                    let why = "the stream broke off, and the session is gone";
                    return Err(Error::unreachable(Unreachable::SessionEnded(why.to_owned()), Sent::Maybe));
                }
                Err(SessionFailure::Refused(refusal)) if refusal.status >= 500 => {
                    self.failed += 1;
                    tracing::debug!(status = refusal.status, "a stream could not be resumed");
                }
                Err(SessionFailure::Refused(refusal)) => return Err(not_taken_up(*refusal, ended)),
            }
        }
        Err(ended.unwrap_or_else(|| Error::closed_by_server("the stream broke off", Sent::Maybe)))
    }
}

/// Builds the error of a stream that the server does not let be taken up again. The request itself was sent.
fn not_taken_up(refusal: Refusal, ended: Option<Error>) -> Error {
    match refusal.otherwise {
        // The caller has to see the challenge, however the stream ended.
        Err(Error::Refused(mut refused)) if refused.is_challenge() => {
            refused.sent = Sent::Maybe;
            Error::Refused(refused)
        }
        _ => ended.unwrap_or_else(|| {
            let status = refusal.status;
            let why = format!("the stream broke off, and HTTP {status} keeps it from being taken up");
            Error::closed_by_server(why, Sent::Maybe)
        }),
    }
}
