//! Receiver of OTLP over HTTP, on loopback: it decodes the published protobuf.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, ScopeMetrics};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ScopeSpans, Span};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prost::Message as _;
use roundtrip::telemetry::Telemetry;

pub(crate) type Attributes = BTreeMap<String, String>;

/// Span that was received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    /// Its trace id and its own, in hex.
    pub(crate) id: (String, String),
    /// Trace id and span id of its parent.
    pub(crate) parent: (String, String),
    pub(crate) links: Vec<(String, String)>,
    pub(crate) attributes: Attributes,
    /// Message of a failure.
    pub(crate) failed: Option<String>,
}

/// Point of a histogram that was received.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) bounds: Vec<f64>,
    pub(crate) count: u64,
    pub(crate) attributes: Attributes,
}

/// Everything that was exported so far. Of the metrics, which add up, the last export counts.
#[derive(Default)]
struct Inbox {
    spans: Vec<ScopeSpans>,
    metrics: Vec<ScopeMetrics>,
}

pub(crate) struct Collector {
    inbox: Arc<Mutex<Inbox>>,
    pub(crate) traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let inbox = Arc::<Mutex<Inbox>>::default();
        let (of_traces, of_metrics) = (Arc::clone(&inbox), Arc::clone(&inbox));
        let receive_traces = async move |body: Bytes| {
            let request = ExportTraceServiceRequest::decode(body).expect("the published protobuf");
            let spans = request.resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
            of_traces.lock().expect("a lock").spans.extend(spans);
        };
        let receive_metrics = async move |body: Bytes| {
            let request = ExportMetricsServiceRequest::decode(body).expect("the published protobuf");
            let metrics = request.resource_metrics.into_iter().flat_map(|metrics| metrics.scope_metrics);
            of_metrics.lock().expect("a lock").metrics = metrics.collect();
        };
        let routes = Router::new()
            .route("/v1/traces", post(receive_traces))
            .route("/v1/metrics", post(receive_metrics));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let (traces, metrics) = (exported_traces(&url), exported_metrics(&url));
        Self { inbox, traces, metrics }
    }

    pub(crate) fn telemetry(&self) -> Telemetry {
        Telemetry::new(&self.traces, &self.metrics)
    }

    async fn flush(&self) {
        let (traces, metrics) = (self.traces.clone(), self.metrics.clone());
        let flushed = tokio::task::spawn_blocking(move || {
            traces.force_flush().expect("an export of spans");
            metrics.force_flush().expect("an export of metrics");
        });
        flushed.await.expect("a flush");
    }

    /// Returns the spans that have ended, with the scopes they came from.
    pub(crate) async fn scoped(&self) -> Vec<(InstrumentationScope, String, Received)> {
        self.flush().await;
        let inbox = self.inbox.lock().expect("a lock");
        let scopes = inbox.spans.iter();
        let spans = scopes.flat_map(|scope| {
            let name = scope.scope.clone().expect("a scope");
            scope.spans.iter().map(move |span| (name.clone(), scope.schema_url.clone(), received(span)))
        });
        spans.collect()
    }

    /// Returns the spans that have ended.
    pub(crate) async fn spans(&self) -> Vec<Received> {
        self.scoped().await.into_iter().map(|(_, _, span)| span).collect()
    }

    /// Returns the points of all histograms.
    pub(crate) async fn points(&self) -> Vec<Point> {
        self.flush().await;
        let inbox = self.inbox.lock().expect("a lock");
        inbox.metrics.iter().flat_map(|scope| &scope.metrics).flat_map(points).collect()
    }
}

fn exported_traces(url: &str) -> SdkTracerProvider {
    let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
    let exporter = exporter.with_endpoint(format!("{url}/v1/traces")).build().expect("an exporter");
    SdkTracerProvider::builder().with_batch_exporter(exporter).build()
}

fn exported_metrics(url: &str) -> SdkMeterProvider {
    let exporter = MetricExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
    let exporter = exporter.with_endpoint(format!("{url}/v1/metrics")).build().expect("an exporter");
    SdkMeterProvider::builder().with_periodic_exporter(exporter).build()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn received(span: &Span) -> Received {
    let trace = hex(&span.trace_id);
    let status = span.status.clone().unwrap_or_default();
    Received {
        name: span.name.clone(),
        kind: span.kind(),
        id: (trace.clone(), hex(&span.span_id)),
        parent: (trace, hex(&span.parent_span_id)),
        links: span.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id))).collect(),
        attributes: attributes(&span.attributes),
        failed: (status.code() == StatusCode::Error).then_some(status.message),
    }
}

fn points(metric: &Metric) -> Vec<Point> {
    let Some(Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?} is no histogram") };
    let point = |point: &opentelemetry_proto::tonic::metrics::v1::HistogramDataPoint| Point {
        metric: metric.name.clone(),
        unit: metric.unit.clone(),
        bounds: point.explicit_bounds.clone(),
        count: point.count,
        attributes: attributes(&point.attributes),
    };
    histogram.data_points.iter().map(point).collect()
}

fn attributes(attributes: &[KeyValue]) -> Attributes {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?} is neither a text nor a number"),
    };
    let value = |attribute: &KeyValue| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref()).expect("a value");
        (attribute.key.clone(), text(value))
    };
    let read: Attributes = attributes.iter().map(value).collect();
    assert_eq!(read.len(), attributes.len(), "a key is there twice: {attributes:?}");
    read
}
