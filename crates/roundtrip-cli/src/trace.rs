//! `--trace`: every round as a readable exchange.

use std::fmt::Display;
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use roundtrip::client::Task;
use roundtrip::seal::Digest;
use roundtrip::wire::Method;
use roundtrip::{Error, Pending};
use serde::Serialize;

use crate::output::err;
use crate::printable::printable;
use crate::rows::Screen;

/// Number of characters of a digest that are shown.
const DIGEST: usize = 12;

/// Trace of one call, if it is wanted.
pub(crate) struct Trace {
    is_on: bool,
    /// Time at which the request under way was sent.
    sent: Instant,
}

impl Trace {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on, sent: Instant::now() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Describes the request that goes on with a flow.
    pub(crate) fn next<M: Method>(&self, answered: &Pending<M>) -> String {
        let stored = serde_json::to_value(answered).unwrap_or_default();
        let (round, size) = (answered.round() + 1, size(&stored["answers"]));
        match (answered.task(), answered.questions().next()) {
            (Some(task), _) => format!("answers to task {}, {size} bytes", task.task_id),
            (None, Some(_)) => {
                format!("{} with {size} bytes of answers, round {round}", answered.request_name())
            }
            (None, None) => format!("{} again, round {round}", answered.request_name()),
        }
    }

    /// Shows a request before it is sent.
    pub(crate) fn request(&mut self, what: impl Display) {
        self.sent = Instant::now();
        self.line("-->", AnsiColor::Cyan, what);
    }

    /// Shows questions.
    pub(crate) fn asked<M: Method>(&self, pending: &Pending<M>) {
        if !self.is_on {
            return;
        }
        let took = self.sent.elapsed().as_millis();
        let state = state(pending).map_or_else(
            || "no state".to_owned(),
            |state| {
                let digest = Digest::of("trace", &[state.as_bytes()]).to_string();
                format!(
                    "state of {} characters, digest {}",
                    state.chars().count(),
                    &digest[..DIGEST.min(digest.len())]
                )
            },
        );
        let what = format!("input_required in {took} ms, round {}, {state}", pending.round());
        self.line("<--", AnsiColor::Green, what);
        for question in pending.questions() {
            let text = question.message().or(question.url()).unwrap_or_default();
            let size = size(&question.request());
            self.line(
                "   ",
                AnsiColor::Green,
                format!("{} ({}, {size} bytes): {text}", question.key(), question.kind()),
            );
        }
    }

    /// Shows a task that the call has become, or that has moved on.
    pub(crate) fn task<M: Method>(&self, task: &Task<M>) {
        let took = self.sent.elapsed().as_millis();
        let seen = task.last_seen();
        self.line("<--", AnsiColor::Green, format!("task {} in {took} ms, {}", seen.task_id, seen.status));
    }

    /// Shows the end of a call.
    pub(crate) fn done(&self, result: &impl Serialize) {
        let took = self.sent.elapsed().as_millis();
        self.line("<--", AnsiColor::Green, format!("complete in {took} ms, {} bytes", size(result)));
    }

    /// Shows the error of a request.
    pub(crate) fn failed(&self, error: &Error) {
        let took = self.sent.elapsed().as_millis();
        self.line("<--", AnsiColor::Red, format!("error in {took} ms: {error}"));
    }

    fn line(&self, arrow: &str, colour: AnsiColor, what: impl Display) {
        if self.is_on {
            let style = Style::new().fg_color(Some(colour.into()));
            let lead = format!("{style}{arrow}{style:#} ");
            err!("{}", Screen::Err.rows(&lead, &printable(&what.to_string())));
        }
    }
}

/// Returns `requestState` as it would be stored.
fn state<M: Method>(pending: &Pending<M>) -> Option<String> {
    let stored = serde_json::to_value(pending).ok()?;
    stored["state"].as_str().map(str::to_owned)
}

/// Returns the size of a value as JSON.
pub(crate) fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}
