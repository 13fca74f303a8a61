//! A transport that answers as it is told to, and remembers what it was sent.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use roundtrip::client::{BoxFuture, Incoming, Outgoing, Sent, Transport, Unreachable};
use roundtrip::{Client, Error};
use serde_json::{Value, json};

/// What a request comes to.
pub(crate) enum Answer {
    /// This result.
    Result(Value),
    /// This result, after a while.
    Late(Duration, Value),
    /// This error, after a while.
    LateError(Duration, Value),
    /// The connection breaks.
    Broken(Sent),
    /// The connection breaks after a while, with the request under way.
    LateBreak(Duration),
    /// The server says no without looking.
    TurnedAway,
    /// Nothing, ever.
    Silence,
}

type Respond = Box<dyn Fn(usize, &Value) -> Answer + Send + Sync>;

struct Script {
    respond: Respond,
    log: Arc<Log>,
}

/// What a scripted server has seen.
#[derive(Default)]
pub(crate) struct Log {
    requests: Mutex<Vec<Value>>,
    given_up: AtomicUsize,
}

impl Log {
    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().expect("requests").clone()
    }

    /// The parameters of a request, `_meta` left out.
    pub(crate) fn params(&self, number: usize) -> Value {
        let mut params = self.requests()[number]["params"].clone();
        params.as_object_mut().expect("parameters").remove("_meta");
        params
    }

    /// What a request declared.
    pub(crate) fn declared(&self, number: usize) -> Value {
        self.requests()[number]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.lock().expect("requests").len()
    }

    /// How many requests were given up before they were answered.
    pub(crate) fn given_up(&self) -> usize {
        self.given_up.load(Ordering::SeqCst)
    }
}

/// A client of a server that answers each request with what `respond` makes of it and its number.
pub(crate) fn scripted(
    respond: impl Fn(usize, &Value) -> Answer + Send + Sync + 'static,
) -> (Client, Arc<Log>) {
    let log = Arc::<Log>::default();
    let script = Script { respond: Box::new(respond), log: Arc::clone(&log) };
    (Client::new(script), log)
}

/// A client of a server that gives these results, one after the other.
pub(crate) fn replies<const N: usize>(results: [Value; N]) -> (Client, Arc<Log>) {
    scripted(move |number, _| Answer::Result(results[number].clone()))
}

impl Transport for Script {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        assert!(!outgoing.message.contains(&b'\n') && !outgoing.message.contains(&b'\r'), "one line");
        let message: Value = serde_json::from_slice(&outgoing.message).expect("json");
        // Arguments, answers and state are on their way in it, and none of a log's business.
        assert!(!format!("{outgoing:?}").contains("jsonrpc"), "{outgoing:?}");
        let number = {
            let mut requests = self.log.requests.lock().expect("requests");
            requests.push(message.clone());
            requests.len() - 1
        };
        let (id, answer) = (message["id"].clone(), (self.respond)(number, &message));
        let log = Arc::clone(&self.log);
        Box::pin(async move {
            let (mut outcome, broken) =
                ("result", |sent| Error::unreachable(Unreachable::Broken("it broke".to_owned()), sent));
            let (wait, result) = match answer {
                Answer::Result(result) => (Some(Duration::ZERO), result),
                Answer::Late(wait, result) => (Some(wait), result),
                Answer::LateError(wait, error) => {
                    outcome = "error";
                    (Some(wait), error)
                }
                Answer::Broken(sent) => return Err(broken(sent)),
                Answer::LateBreak(wait) => {
                    tokio::time::sleep(wait).await;
                    return Err(broken(Sent::Maybe));
                }
                Answer::TurnedAway => return Err(Error::closed_by_server("not for you", Sent::No)),
                Answer::Silence => (None, Value::Null),
            };
            let message = json!({ "jsonrpc": "2.0", "id": id, outcome: result });
            let waiting = Box::pin(async move {
                match wait {
                    Some(wait) if wait.is_zero() => {}
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
                Ok(Bytes::from(message.to_string()))
            });
            Ok(Box::pin(Reply { waiting: Some(waiting), log }) as Incoming)
        })
    }
}

struct Reply {
    waiting: Option<BoxFuture<Result<Bytes, Error>>>,
    log: Arc<Log>,
}

impl Stream for Reply {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(None) };
        let answer = std::task::ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        Poll::Ready(Some(answer))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.waiting.is_some() {
            self.log.given_up.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A result that asks.
pub(crate) fn asks<const N: usize>(questions: [(&str, Value); N], state: Option<&str>) -> Value {
    let mut result = json!({
        "resultType": "input_required",
        "inputRequests": questions.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<serde_json::Map<_, _>>(),
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "bookings", "version": "1" } },
    });
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

/// A result that asks nothing, and wants the call made again.
pub(crate) fn again(state: &str) -> Value {
    json!({ "resultType": "input_required", "requestState": state })
}

pub(crate) fn done() -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": "done" }] })
}

/// A form that asks how many people, and whether at the window.
pub(crate) fn party() -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "How many people?", "requestedSchema": {
        "type": "object",
        "properties": {
            "people": { "type": "integer", "minimum": 1, "maximum": 12 },
            "window": { "type": "boolean", "default": true },
        },
        "required": ["people"],
    } } })
}

pub(crate) fn page() -> Value {
    json!({ "method": "elicitation/create",
            "params": { "mode": "url", "message": "Sign in", "url": "https://x.example/in" } })
}

pub(crate) fn sampling() -> Value {
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": "?" } }]);
    json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 9 } })
}

pub(crate) fn roots() -> Value {
    json!({ "method": "roots/list" })
}
