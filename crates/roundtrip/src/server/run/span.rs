//! Spans of a call: that of `tracing`, and that of OpenTelemetry where there is telemetry.

#[cfg(feature = "opentelemetry")]
use opentelemetry::ContextGuard;
use roundtrip_core::wire::{ClientRequest, Era, clip, json, meta};
use serde_json::value::RawValue;

use crate::server::hook::revision;
#[cfg(feature = "opentelemetry")]
use crate::server::outcome::Outcome;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::ServerSpan;

/// Spans of a call.
pub(crate) struct CallSpan {
    span: tracing::Span,
    #[cfg(feature = "opentelemetry")]
    telemetry: Option<Box<ServerSpan>>,
}

/// Guard of the spans of a call that are entered.
pub(crate) struct Entered<'a> {
    _span: tracing::span::Entered<'a>,
    /// Left last, as it was entered first.
    #[cfg(feature = "opentelemetry")]
    _telemetry: Option<ContextGuard>,
}

impl CallSpan {
    /// Begins the spans of a request.
    #[cfg(not(feature = "opentelemetry"))]
    pub(crate) fn new(request: &ClientRequest<'_>) -> Self {
        Self { span: span_of(request) }
    }

    /// Begins the spans of a request. That of `tracing` begins inside the other, as its child where it is exported too.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn new(request: &ClientRequest<'_>, telemetry: Option<Box<ServerSpan>>) -> Self {
        let _attached = telemetry.as_deref().map(ServerSpan::attach);
        Self { span: span_of(request), telemetry }
    }

    pub(crate) fn enter(&self) -> Entered<'_> {
        #[cfg(feature = "opentelemetry")]
        let _telemetry = self.telemetry.as_deref().map(ServerSpan::attach);
        Entered {
            _span: self.span.enter(),
            #[cfg(feature = "opentelemetry")]
            _telemetry,
        }
    }

    /// Ends the span of the telemetry with the outcome of the call.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn end(&mut self, outcome: &Outcome) {
        if let Some(span) = &mut self.telemetry {
            span.end(outcome);
        }
    }
}

/// Returns the span of a request (N7). The caller's trace context is recorded, for exporters of spans; so is the flow,
/// once the handler can ask, which is what links its rounds.
fn span_of(request: &ClientRequest<'_>) -> tracing::Span {
    let span = tracing::info_span!(
        "mcp.request",
        method = request.method(),
        target = tracing::field::Empty,
        era = ?era(request),
        traceparent = tracing::field::Empty,
        flow = tracing::field::Empty,
        round = tracing::field::Empty,
    );
    if !span.is_disabled() {
        if let Some(target) = request.target() {
            span.record("target", &*clip(target));
        }
        let text = |raw: &RawValue| json::from_str::<String>(raw.get()).ok();
        if let Some(parent) = request.meta().get(meta::key::TRACEPARENT).and_then(text) {
            span.record("traceparent", &*clip(&parent));
        }
    }
    span
}

fn era(request: &ClientRequest<'_>) -> Era {
    revision(request.meta()).era()
}
