//! Transport over several instances: every request goes to the next one, as behind a load balancer without sticky
//! sessions.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use anstream::println;
use anstyle::{AnsiColor, Style};
use bytes::Bytes;
use futures_core::Stream;
use roundtrip::Error;
use roundtrip::client::{BoxFuture, Incoming, Outgoing, Transport};
use serde_json::Value;

use crate::printable::printable;

/// Instances by name, used in turn.
#[derive(Debug)]
pub(crate) struct Fleet<T> {
    instances: Vec<(&'static str, T)>,
    next: AtomicUsize,
}

impl<T> Fleet<T> {
    pub(crate) fn new(instances: Vec<(&'static str, T)>) -> Self {
        Self { instances, next: AtomicUsize::new(0) }
    }
}

impl<T: Transport> Transport for Fleet<T> {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.instances.len();
        let (name, instance) = &self.instances[turn];
        sent(name, &outgoing.message);
        let (name, sending) = (*name, instance.send(outgoing));
        Box::pin(async move { Ok(Box::pin(Shown { name, answers: sending.await? }) as Incoming) })
    }
}

/// Messages of an instance, printed as they arrive.
struct Shown {
    name: &'static str,
    answers: Incoming,
}

impl Stream for Shown {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.answers.as_mut().poll_next(cx);
        if let Poll::Ready(Some(Ok(message))) = &next {
            received(self.name, message);
        }
        next
    }
}

fn parse(message: &[u8]) -> Value {
    serde_json::from_slice(message).unwrap_or_default()
}

fn keys(map: &Value) -> String {
    let keys: Vec<String> = map.as_object().into_iter().flatten().map(|(key, _)| printable(key)).collect();
    keys.join(", ")
}

fn sent(name: &str, message: &[u8]) {
    let message = parse(message);
    let params = &message["params"];
    let what = match params.get("inputResponses") {
        Some(answers) => format!("again, answering {}", keys(answers)),
        None => "for the first time".to_owned(),
    };
    say(
        "client",
        AnsiColor::Cyan,
        &format!("calls {} at {name}, {what}", params["name"].as_str().unwrap_or_default()),
    );
}

fn received(name: &str, message: &[u8]) {
    let message = parse(message);
    let result = &message["result"];
    let what = if result["resultType"] == "input_required" {
        let sealed = result["requestState"].as_str().unwrap_or_default().len();
        format!(
            "asks {}, and forgets: the sealed state has {sealed} characters",
            keys(&result["inputRequests"])
        )
    } else {
        "is done".to_owned()
    };
    say(name, AnsiColor::Green, &what);
}

fn say(who: &str, colour: AnsiColor, what: &str) {
    let style = Style::new().fg_color(Some(colour.into()));
    println!("{style}{who:<8}{style:#} {what}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::keys;

    /// E5: what a server calls its questions is shown, and not obeyed.
    #[test]
    fn keys_of_questions_are_printable() {
        assert_eq!(keys(&json!({ "a\u{1b}[2J": 1, "b": 2 })), "a\\u{1b}[2J, b");
    }
}
