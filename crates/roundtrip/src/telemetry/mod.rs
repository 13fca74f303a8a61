//! Telemetry by OpenTelemetry's names: a span and a duration for every request, on servers and on clients.
//!
//! Names, kinds and buckets are those of OpenTelemetry's semantic conventions for MCP, version 1.41 (`docs/gen-ai/mcp.md`).
//! Later versions keep them in a repository of their own, `semantic-conventions-genai`, under the same names.

#[cfg(feature = "client")]
mod client;
mod names;
mod network;
mod server;
#[cfg(feature = "legacy")]
mod session;
mod trace_context;

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use opentelemetry::global::{self, BoxedTracer, ObjectSafeTracerProvider};
use opentelemetry::metrics::{Histogram, Meter, MeterProvider};
use opentelemetry::trace::Status;
use opentelemetry::{InstrumentationScope, KeyValue};
use roundtrip_core::wire::{CallTool, GetPrompt, Method as _, clip};

#[cfg(feature = "client")]
pub(crate) use client::ClientSpan;
pub use network::Network;
pub(crate) use server::{ServerSpan, Serving, set_flow, trace_of_round};
#[cfg(feature = "legacy")]
pub(crate) use session::SessionTimer;

/// Spans and metrics for a [`Server`](crate::Server) or a `Client`, by the names of OpenTelemetry's conventions for MCP.
///
/// Clones share everything. Servers and clients may share one.
///
/// ```
/// use roundtrip::Server;
/// use roundtrip::telemetry::Telemetry;
///
/// // After `opentelemetry::global::set_tracer_provider(..)` and `set_meter_provider(..)`.
/// let server = Server::new("greeter", "1.0.0").telemetry(Telemetry::global());
/// # server.build().unwrap();
/// ```
#[derive(Clone)]
pub struct Telemetry(Arc<Inner>);

struct Inner {
    tracer: BoxedTracer,
    server_operation: Histogram<f64>,
    #[cfg(feature = "legacy")]
    server_session: Histogram<f64>,
    #[cfg(feature = "client")]
    client: client::Measures,
}

impl Telemetry {
    /// Reports to the global providers as they are now: set them first.
    pub fn global() -> Self {
        Self::with(global::tracer_with_scope(scope()), &global::meter_with_scope(scope()))
    }

    /// Reports to these providers.
    pub fn new(tracers: &impl ObjectSafeTracerProvider, meters: &impl MeterProvider) -> Self {
        Self::with(BoxedTracer::new(tracers.boxed_tracer(scope())), &meters.meter_with_scope(scope()))
    }

    fn with(tracer: BoxedTracer, meter: &Meter) -> Self {
        let seconds = |name: &'static str, what: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(what);
            histogram.with_boundaries(names::BUCKETS.to_vec()).build()
        };
        Self(Arc::new(Inner {
            tracer,
            server_operation: seconds(names::SERVER_OPERATION, "Duration of a request at the server"),
            #[cfg(feature = "legacy")]
            server_session: seconds(names::SERVER_SESSION, "Duration of a session at the server"),
            #[cfg(feature = "client")]
            client: client::Measures::new(seconds),
        }))
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Telemetry")
    }
}

fn scope() -> InstrumentationScope {
    let scope = InstrumentationScope::builder(env!("CARGO_PKG_NAME"));
    scope.with_version(env!("CARGO_PKG_VERSION")).with_schema_url(names::SCHEMA_URL).build()
}

/// Runs code of the providers: samplers, processors and exporters may be the author's own, and may panic (Z1).
fn shielded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).inspect_err(|_| tracing::error!("telemetry panicked")).ok()
}

/// Attributes that name a tool or a prompt, and the name of the span.
fn named(method: &'static str, name: Option<&str>) -> (Cow<'static, str>, Vec<KeyValue>) {
    let mut attributes = vec![KeyValue::new(names::METHOD, method)];
    if method == CallTool::NAME {
        attributes.push(KeyValue::new(names::GEN_AI_OPERATION, "execute_tool"));
    }
    let Some(name) = name else { return (method.into(), attributes) };
    let name = clip(name);
    let key = if method == GetPrompt::NAME { names::PROMPT } else { names::TOOL };
    attributes.push(KeyValue::new(key, name.clone().into_owned()));
    (format!("{method} {name}").into(), attributes)
}

/// Failure of a request, in the words of the conventions.
struct Failure {
    /// `error.type`
    kind: Cow<'static, str>,
    /// `rpc.response.status_code`
    code: Option<i64>,
    message: String,
}

impl Failure {
    /// A result with `isError`.
    const TOOL: &str = "tool_error";
    /// A request that was dropped before its answer.
    const CANCELLED: &str = "cancelled";
    /// A failure of a kind that metrics must not tell apart.
    #[cfg(feature = "client")]
    const OTHER: &str = "_OTHER";

    /// Creates a failure that is no JSON-RPC error.
    fn new(kind: &'static str) -> Self {
        Self { kind: kind.into(), code: None, message: String::new() }
    }

    /// Creates the failure of a JSON-RPC error.
    fn rejected(code: i64, message: &str) -> Self {
        Self { kind: code.to_string().into(), code: Some(code), message: clip(message).into_owned() }
    }

    /// Returns `error.type` and the code as attributes.
    fn attributes(&self) -> Vec<KeyValue> {
        let mut attributes = vec![KeyValue::new(names::ERROR, self.kind.clone())];
        attributes.extend(self.code.map(|code| KeyValue::new(names::STATUS_CODE, code.to_string())));
        attributes
    }

    fn status(&self) -> Status {
        Status::error(self.message.clone())
    }
}
