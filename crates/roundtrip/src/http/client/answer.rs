//! Reads the messages of an HTTP response.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use reqwest::Response;
use roundtrip_core::wire::{ErrorObject, json};
use serde::Deserialize;

use super::sse::{Decoder, Overlong};
use super::{broken, media_type, shown};
use crate::client::{Error, Failure, HttpRefusal, Incoming, PeerMisbehaved, Refusal, Sent};
use crate::http::EVENT_STREAM;

/// Largest JSON response.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// Most bytes read of a body that only serves an error message.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// Most characters of it that are shown.
const EXCERPT: usize = 300;

/// Reads the messages of a response. A single message is read to its end; a stream is handed over unread.
pub(super) async fn read(mut response: Response) -> Result<Incoming, Failure> {
    let status = response.status();
    if !status.is_success() {
        return Err(Failure::Refused(Box::new(refused(response).await?)));
    }
    match media_type(response.headers()) {
        Some(EVENT_STREAM) => Ok(Box::pin(Events {
            body: Box::pin(response.bytes_stream()),
            decoder: Decoder::default(),
            ready: VecDeque::new(),
        })),
        Some(_) => match collect(&mut response, MAX_BODY).await? {
            (body, true) => Ok(Box::pin(Single(Some(body)))),
            (_, false) => {
                let why = format!("the answer is larger than {} MiB", MAX_BODY >> 20);
                Err(Error::from(PeerMisbehaved::TooLarge(why)).into())
            }
        },
        None => {
            let (body, _) = collect(&mut response, MAX_ERROR_BODY).await?;
            let said = match excerpt(&body) {
                said if said.is_empty() => " and no body".to_owned(),
                said => format!(": {said}"),
            };
            let url = shown(response.url());
            let why = format!("{url} answered HTTP {status} with neither JSON nor an event stream{said}");
            let otherwise = Err(PeerMisbehaved::UnexpectedResponse(why).into());
            Err(Failure::Refused(Box::new(Refusal { status: status.as_u16(), error: None, otherwise })))
        }
    }
}

/// Reads the refusal out of a response whose status is not a success.
pub(super) async fn refused(mut response: Response) -> Result<Refusal, Error> {
    let mut refusal = HttpRefusal::new(response.status(), std::mem::take(response.headers_mut()));
    refusal.url = Some(shown(response.url()));
    #[cfg(feature = "oauth")]
    if let Some(super::authorized::TokenNumber(number)) = response.extensions().get() {
        refusal.token = *number;
    }
    let (body, _) = collect(&mut response, MAX_ERROR_BODY).await?;
    // Whatever its `Content-Type`.
    let error = error_in(&body);
    let status = refusal.status.as_u16();
    // A challenge, and perhaps the time to wait, is in the headers, so they have to reach the caller even if the body is a
    // JSON-RPC error.
    let waits = status == 429 && error.as_ref().is_some_and(|error| error.retry_after().is_none());
    let in_headers = refusal.is_challenge() || waits && refusal.retry_after().is_some();
    let otherwise = if error.is_some() && !in_headers {
        Ok(Box::pin(Single(Some(body))) as Incoming)
    } else {
        refusal.body = excerpt(&body);
        refusal.error.clone_from(&error);
        Err(refusal.into())
    };
    Ok(Refusal { status, error, otherwise })
}

/// Returns whether a response is a stream of events.
#[cfg(feature = "legacy")]
pub(super) fn is_stream(response: &Response) -> bool {
    media_type(response.headers()) == Some(EVENT_STREAM)
}

/// Reads up to `limit` bytes; returns whether that was all.
async fn collect(response: &mut Response, limit: usize) -> Result<(Bytes, bool), Error> {
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok((body.freeze(), true)),
            Ok(Some(chunk)) if body.len() + chunk.len() > limit => {
                body.extend_from_slice(&chunk[..limit - body.len()]);
                return Ok((body.freeze(), false));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Err(error) => return Err(broken("the answer broke off", error, Sent::Maybe)),
        }
    }
}

/// Returns the JSON-RPC error that a body holds, whatever its id.
fn error_in(body: &[u8]) -> Option<ErrorObject> {
    #[derive(Deserialize)]
    struct Failed {
        #[serde(rename = "jsonrpc")]
        _jsonrpc: serde::de::IgnoredAny,
        error: ErrorObject,
    }
    json::from_slice(body).ok().map(|Failed { error, .. }| error)
}

/// Returns the beginning of a body, on one line.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * EXCERPT)]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = words.chars().filter(|c| !c.is_control()).take(EXCERPT).collect();
    if shown.len() < words.len() || body.len() > 4 * EXCERPT {
        shown.push('…');
    }
    shown
}

/// Stream of one message.
struct Single(Option<Bytes>);

impl Stream for Single {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

/// Stream of messages as they arrive. Dropping it closes the response, which cancels the request.
struct Events<B> {
    body: Pin<Box<B>>,
    decoder: Decoder,
    ready: VecDeque<Bytes>,
}

impl<B: Stream<Item = reqwest::Result<Bytes>>> Stream for Events<B> {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(message) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            match ready!(this.body.as_mut().poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(chunk)) => {
                    if let Err(Overlong) = this.decoder.feed(&chunk, |event| this.ready.push_back(event)) {
                        let why = PeerMisbehaved::TooLarge(Overlong.to_string());
                        return Poll::Ready(Some(Err(why.into())));
                    }
                }
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(broken("the stream broke off", error, Sent::Maybe))));
                }
            }
        }
    }
}
