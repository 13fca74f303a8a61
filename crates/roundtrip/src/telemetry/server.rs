//! Span and duration of a request at the server.

use std::net::IpAddr;
use std::time::Instant;

use opentelemetry::trace::{Link, SpanContext, SpanKind, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, ContextGuard, KeyValue};
use roundtrip_core::round::TraceContext;
use roundtrip_core::seal::FlowId;
use roundtrip_core::wire::{
    ClientRequest, ErrorObject, Method as _, ProtocolVersion, ReadResource, RequestId, ServerResult, clip,
};

use super::network::Network;
use super::{Failure, Telemetry, named, names, shielded, trace_context};

/// Request that a server has received.
pub(crate) struct Serving<'a> {
    pub(crate) id: &'a RequestId,
    pub(crate) request: &'a ClientRequest<'a>,
    /// True if the server has the tool or the prompt: a name that a peer made up is told to no one.
    pub(crate) exists: bool,
    pub(crate) address: Option<IpAddr>,
    pub(crate) network: Option<&'a Network>,
}

/// Span of a request at the server. It ends with the outcome, or when it is dropped.
pub(crate) struct ServerSpan {
    telemetry: Telemetry,
    context: Context,
    /// Attributes of the span that metrics have too.
    shared: Vec<KeyValue>,
    begun: Instant,
    ended: bool,
}

/// Span of the request that runs now, wherever its handler has begun spans of its own.
struct OfRequest(Context);

impl Telemetry {
    /// Begins the span of a request.
    pub(crate) fn serve(&self, serving: &Serving<'_>) -> Option<Box<ServerSpan>> {
        shielded(|| Box::new(self.server_span(serving)))
    }

    fn server_span(&self, serving: &Serving<'_>) -> ServerSpan {
        let Serving { id, request, exists, address, network } = serving;
        let target = request.target();
        let (name, mut shared) = named(request.method(), target.filter(|_| *exists));
        if let Ok(version) = request.meta().protocol_version.parse::<ProtocolVersion>() {
            shared.push(KeyValue::new(names::PROTOCOL_VERSION, version.as_str()));
        }
        shared.extend(network.iter().flat_map(|network| network.attributes()));
        let mut attributes = shared.clone();
        attributes.push(KeyValue::new(names::REQUEST_ID, clip(&id.to_string()).into_owned()));
        attributes.extend(network.and_then(Network::session_attribute));
        attributes.extend(address.map(|address| KeyValue::new(names::CLIENT_ADDRESS, address.to_string())));
        if let Some(uri) = target.filter(|_| request.method() == ReadResource::NAME) {
            attributes.push(KeyValue::new(names::RESOURCE_URI, clip(uri).into_owned()));
        }
        let (parent, links) = parent_of(request);
        let span = self.0.tracer.span_builder(name).with_kind(SpanKind::Server).with_attributes(attributes);
        let span = self.0.tracer.build_with_context(span.with_links(links), &parent);
        let context = parent.with_span(span);
        let context = context.with_value(OfRequest(context.clone()));
        ServerSpan { telemetry: self.clone(), context, shared, begun: Instant::now(), ended: false }
    }
}

/// Returns the parent of a request's span, and its links. The caller's context is the parent; the context that the
/// transport is in, such as that of an HTTP request, is linked then.
fn parent_of(request: &ClientRequest<'_>) -> (Context, Vec<Link>) {
    let around = Context::current();
    let Some(remote) = trace_context::read(request.meta()) else { return (around, Vec::new()) };
    let ambient = around.span().span_context().clone();
    let linked = Some(ambient).filter(|span| span.is_valid() && !is_same(span, &remote));
    let links = linked.map(Link::with_context).into_iter().collect();
    (around.with_remote_span_context(remote), links)
}

fn is_same(one: &SpanContext, other: &SpanContext) -> bool {
    one.trace_id() == other.trace_id() && one.span_id() == other.span_id()
}

impl ServerSpan {
    /// Makes this the current span until the guard is dropped.
    pub(crate) fn attach(&self) -> ContextGuard {
        self.context.clone().attach()
    }

    /// Ends the span with the outcome of its call.
    pub(crate) fn end(&mut self, outcome: &Result<ServerResult, ErrorObject>) {
        let failure = match outcome {
            Ok(ServerResult::CallTool(result)) if result.is_error == Some(true) => {
                Some(Failure::new(Failure::TOOL))
            }
            Ok(_) => None,
            Err(error) => Some(Failure::rejected(error.code, &error.message)),
        };
        self.close(failure.as_ref());
    }

    fn close(&mut self, failure: Option<&Failure>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        shielded(|| {
            let span = self.context.span();
            if let Some(failure) = failure {
                let attributes = failure.attributes();
                span.set_attributes(attributes.iter().cloned());
                span.set_status(failure.status());
                self.shared.extend(attributes);
            }
            // Recorded inside the span, which an exemplar refers to.
            let _attached = self.attach();
            self.telemetry.0.server_operation.record(self.begun.elapsed().as_secs_f64(), &self.shared);
            span.end();
        });
    }
}

/// A call that was not answered has been cancelled.
impl Drop for ServerSpan {
    fn drop(&mut self) {
        self.close(Some(&Failure::new(Failure::CANCELLED)));
    }
}

/// Tells the span of the current request its flow and round, and links it to the round before.
pub(crate) fn set_flow(flow: FlowId, round: u32, before: Option<&TraceContext>) {
    with_request(|context| {
        let span = context.span();
        span.set_attribute(KeyValue::new(names::FLOW, flow.to_string()));
        span.set_attribute(KeyValue::new(names::ROUND, i64::from(round)));
        if let Some(before) = before.and_then(trace_context::from_bytes) {
            span.add_link(before, Vec::new());
        }
    });
}

/// Returns the trace context of the current request, for the next round to link to.
pub(crate) fn trace_of_round() -> Option<TraceContext> {
    with_request(|context| {
        let span = context.span();
        Some(span.span_context()).filter(|span| span.is_valid()).map(trace_context::to_bytes)
    })
    .flatten()
}

fn with_request<T>(work: impl FnOnce(&Context) -> T) -> Option<T> {
    let current = Context::map_current(|current| current.get().map(|OfRequest(context)| context.clone()));
    current.and_then(|context| shielded(|| work(&context)))
}
