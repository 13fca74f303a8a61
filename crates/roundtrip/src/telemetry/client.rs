//! Span and duration of a request at the client.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Instant;

use opentelemetry::metrics::Histogram;
use opentelemetry::trace::{SpanContext, SpanKind, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use roundtrip_core::error::Error;
use roundtrip_core::wire::{
    CallTool, GetPrompt, Method as _, ProtocolVersion, Raw, ReadResource, RequestId, clip, meta,
};
use serde::Deserialize;

use super::network::Network;
use super::{Failure, Telemetry, named, names, shielded, trace_context};
use crate::lock::lock;

/// Most names of tools and prompts that metrics tell apart.
const MOST_NAMES: usize = 1_000;

/// Codes that JSON-RPC reserves. A server may invent any other, and metrics would count each by itself.
const RESERVED: std::ops::RangeInclusive<i64> = -32768..=-32000;

/// Measures of clients.
pub(super) struct Measures {
    operation: Histogram<f64>,
    #[cfg(feature = "legacy")]
    pub(super) session: Histogram<f64>,
    /// Tools and prompts that servers have answered for.
    known: Mutex<HashSet<String>>,
}

impl Measures {
    pub(super) fn new(seconds: impl Fn(&'static str, &'static str) -> Histogram<f64>) -> Self {
        Self {
            operation: seconds(names::CLIENT_OPERATION, "Duration of a request at the client"),
            #[cfg(feature = "legacy")]
            session: seconds(names::CLIENT_SESSION, "Duration of a session at the client"),
            known: Mutex::default(),
        }
    }

    /// Returns whether metrics may have a name: a server has answered for it, now or before. A model may make up any
    /// number of names.
    fn knows(&self, name: &str, answered: bool) -> bool {
        let mut known = lock(&self.known);
        if known.contains(name) {
            return true;
        }
        answered && known.len() < MOST_NAMES && known.insert(name.to_owned())
    }
}

/// Span of a request at the client. It ends with the answer, or when it is dropped.
pub(crate) struct ClientSpan {
    telemetry: Telemetry,
    context: Context,
    method: &'static str,
    target: Option<String>,
    /// Trace context, as members of `_meta`.
    carried: Vec<(&'static str, Raw)>,
    /// Attributes of the connection, which metrics have too.
    connection: Vec<KeyValue>,
    begun: Instant,
    ended: bool,
}

impl Telemetry {
    /// Begins the span of a request to a tool or prompt by name, or to a resource by URI.
    pub(crate) fn call(
        &self,
        method: &'static str,
        target: Option<String>,
        network: &Network,
    ) -> Option<Box<ClientSpan>> {
        shielded(|| Box::new(self.client_span(method, target, network)))
    }

    fn client_span(&self, method: &'static str, target: Option<String>, network: &Network) -> ClientSpan {
        let (name, mut attributes) = named(method, name_of(method, target.as_deref()));
        let connection: Vec<KeyValue> = network.attributes().collect();
        attributes.extend(connection.iter().cloned());
        if let Some(uri) = target.as_deref().filter(|_| method == ReadResource::NAME) {
            attributes.push(KeyValue::new(names::RESOURCE_URI, clip(uri).into_owned()));
        }
        let parent = Context::current();
        let span = self.0.tracer.span_builder(name).with_kind(SpanKind::Client).with_attributes(attributes);
        let span = self.0.tracer.build_with_context(span, &parent);
        let context = parent.with_span(span);
        let carried = carried(context.span().span_context());
        let (telemetry, begun) = (self.clone(), Instant::now());
        ClientSpan { telemetry, context, method, target, carried, connection, begun, ended: false }
    }
}

/// Returns the trace context of a span as members of `_meta`.
fn carried(span: &SpanContext) -> Vec<(&'static str, Raw)> {
    if !span.is_valid() {
        return Vec::new();
    }
    let text = |key, text: &str| Raw::of(text).ok().map(|raw| (key, raw));
    let parent = text(meta::key::TRACEPARENT, &trace_context::traceparent(span));
    let state = Some(span.trace_state().header()).filter(|state| !state.is_empty());
    parent.into_iter().chain(state.and_then(|state| text(meta::key::TRACESTATE, &state))).collect()
}

/// Returns the name of a tool or a prompt.
fn name_of<'a>(method: &str, target: Option<&'a str>) -> Option<&'a str> {
    target.filter(|_| matches!(method, CallTool::NAME | GetPrompt::NAME))
}

impl ClientSpan {
    /// Returns the context with this span, for what is done for the request.
    pub(crate) fn context(&self) -> Context {
        self.context.clone()
    }

    /// Returns the members of `_meta` that make the server's span a child of this one.
    pub(crate) fn trace_context(&self) -> &[(&'static str, Raw)] {
        &self.carried
    }

    /// Notes the id of the request.
    pub(crate) fn set_id(&self, id: &RequestId) {
        let id = KeyValue::new(names::REQUEST_ID, id.to_string());
        shielded(|| self.context.span().set_attribute(id));
    }

    /// Ends the span with the answer of the server. The revision and the session of the connection are known now.
    pub(crate) fn end(
        &mut self,
        answer: Result<Option<&Raw>, &Error>,
        version: ProtocolVersion,
        network: &Network,
    ) {
        let failure = match answer {
            Ok(Some(result)) if self.method == CallTool::NAME && is_error(result) => {
                Some(Failure::new(Failure::TOOL))
            }
            Ok(_) => None,
            Err(error) => Some(failure_of(error)),
        };
        let version = KeyValue::new(names::PROTOCOL_VERSION, version.as_str());
        let late = network.session_attribute().into_iter().chain([version.clone()]);
        shielded(|| self.context.span().set_attributes(late));
        self.connection.push(version);
        self.close(failure, answer.is_ok());
    }

    fn close(&mut self, failure: Option<Failure>, answered: bool) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        shielded(|| {
            let span = self.context.span();
            if let Some(failure) = &failure {
                span.set_attributes(failure.attributes());
                span.set_status(failure.status());
            }
            let mut measured = self.measured(answered);
            measured.extend(failure.map(Failure::bounded).iter().flat_map(Failure::attributes));
            // Recorded inside the span, which an exemplar refers to.
            let _attached = self.context.clone().attach();
            self.telemetry.0.client.operation.record(self.begun.elapsed().as_secs_f64(), &measured);
            span.end();
        });
    }

    /// Returns the attributes of the request for metrics.
    fn measured(&self, answered: bool) -> Vec<KeyValue> {
        let name = name_of(self.method, self.target.as_deref()).map(clip);
        let known = name.filter(|name| self.telemetry.0.client.knows(name, answered));
        let (_, mut attributes) = named(self.method, known.as_deref());
        attributes.extend(self.connection.iter().cloned());
        attributes
    }
}

/// A request that was dropped before its answer has been cancelled.
impl Drop for ClientSpan {
    fn drop(&mut self) {
        self.close(Some(Failure::new(Failure::CANCELLED)), false);
    }
}

impl Failure {
    /// Returns the failure as metrics may tell it: codes of a server's own are one.
    fn bounded(self) -> Self {
        match self.code {
            Some(code) if !RESERVED.contains(&code) => Self::new(Self::OTHER),
            _ => self,
        }
    }
}

/// Names a failure by who must act, where it is neither a JSON-RPC error nor an HTTP status.
fn failure_of(error: &Error) -> Failure {
    let kind = match error {
        Error::Rejected(rejection) => {
            let error = rejection.error();
            return Failure::rejected(error.code, &error.message);
        }
        Error::Refused(refusal) => {
            let kind = refusal.status.as_u16().to_string().into();
            return Failure { kind, code: None, message: String::new() };
        }
        Error::Timeout { .. } => "timeout",
        Error::Unreachable { .. } => "unreachable",
        Error::Closed => "closed",
        Error::PeerMisbehaved(_) => "peer_misbehaved",
        Error::PeerIncompatible(_) => "peer_incompatible",
        Error::GaveUp(_) => "gave_up",
        Error::ApiMisuse(_) => "api_misuse",
        _ => Failure::OTHER,
    };
    Failure::new(kind)
}

/// Returns whether a tool reports an error.
fn is_error(result: &Raw) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Peek {
        #[serde(default)]
        is_error: Option<bool>,
    }
    result.to::<Peek>().is_ok_and(|result| result.is_error == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N7: metrics have a bounded number of names, and of codes.
    #[test]
    fn what_metrics_tell_apart_is_bounded() {
        let telemetry = Telemetry::global();
        let known = |number: usize, answered| telemetry.0.client.knows(&number.to_string(), answered);
        assert!(!known(0, false) && known(0, true) && known(0, false));
        assert_eq!((0..2 * MOST_NAMES).filter(|number| known(*number, true)).count(), MOST_NAMES);
        let told = |code| Failure::rejected(code, "").bounded().kind.into_owned();
        assert_eq!([-32602, -32000, 0, i64::MIN].map(told), ["-32602", "-32000", "_OTHER", "_OTHER"]);
    }
}
