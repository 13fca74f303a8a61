//! Telemetry as a backend gets it: over OTLP/HTTP, in the published protobuf, by the published names.
#![expect(clippy::expect_used, reason = "a test says what it expects")]

mod collector;
mod hooks_and_contexts;
mod published;

use std::future::pending;
use std::time::Duration;

use collector::{Collector, Point, Received};
use opentelemetry::Context;
use opentelemetry::context::FutureExt as _;
use opentelemetry::trace::{TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use roundtrip::server::Peer;
use roundtrip::stdio::serve_lines;
use roundtrip::telemetry::Telemetry;
use roundtrip::wire::{CallToolResult, ErrorObject};
use roundtrip::{Ask, AskError, Client, Error, Prompt, Resource, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::oneshot;

/// Returns the ids of the trace and of the span that its handler runs in.
async fn inside() -> String {
    let current = Context::current();
    let span = current.span();
    format!("{} {}", span.span_context().trace_id(), span.span_context().span_id())
}

async fn sure(ask: Ask) -> Result<String, AskError> {
    let first = ask.confirm("first", "Sure?").await?;
    let second = ask.confirm("second", "Really?").await?;
    Ok(format!("{first} {second}"))
}

fn server(telemetry: Telemetry) -> Server {
    Server::new("fixture", "1.0.0")
        .tool(Tool::new("inside", inside))
        .tool(Tool::new("sure", sure))
        .tool(Tool::new("broken", async || Err::<String, _>(ToolError::new("it is broken"))))
        .tool(Tool::new("refuses", async || Err::<String, ErrorObject>(ErrorObject::new(418, "a teapot"))))
        .tool(Tool::new("hang", async || pending::<String>().await))
        .prompt(Prompt::new("greeting", async || "Hello"))
        .resource(Resource::new("app://motto", "motto", async || "Stop and ask."))
        .telemetry(telemetry)
}

/// Serves on HTTP until the sender is dropped.
async fn serve(server: Server) -> (String, oneshot::Sender<()>) {
    let (stop, stopped) = oneshot::channel();
    let bound = server.into_http().expect("a sound server").bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", bound.local_addr().expect("an address"));
    tokio::spawn(bound.until(async { drop(stopped.await) }).into_future());
    (url, stop)
}

/// Returns a client and a server in one process that report to one collector.
async fn in_process() -> (Collector, Client) {
    let collector = Collector::start().await;
    let client = client_of(server(collector.telemetry())).telemetry(collector.telemetry());
    (collector, client)
}

fn client_of(server: Server) -> Client {
    let client = Client::in_process(server).expect("a sound server");
    client.on_form(async |form| form.accept(json!({ "confirm": true })))
}

fn text(result: &CallToolResult) -> &str {
    result.content[0].as_text().expect("text")
}

fn named<'a>(spans: &'a [Received], kind: SpanKind, name: &str) -> Vec<&'a Received> {
    spans.iter().filter(|span| span.kind == kind && span.name == name).collect()
}

fn only<'a>(spans: &'a [Received], kind: SpanKind, name: &str) -> &'a Received {
    let [span] = named(spans, kind, name)[..] else { panic!("not one {kind:?} `{name}`: {spans:#?}") };
    span
}

fn has(span: &Received, attributes: &[(&str, &str)]) {
    for (name, value) in attributes {
        assert_eq!(span.attributes.get(*name).map(String::as_str), Some(*value), "{name} of {span:#?}");
    }
}

fn is_measured(points: &[Point], metric: &str, attributes: &[(&str, &str)]) -> bool {
    points.iter().any(|point| {
        let fits = |(name, value): &(&str, &str)| point.attributes.get(*name).is_some_and(|own| own == value);
        point.metric == metric && attributes.iter().all(fits)
    })
}

/// Checks every name that was exported against the published list.
async fn assert_published(collector: &Collector) {
    let scoped = collector.scoped().await;
    assert!(!scoped.is_empty());
    for (scope, schema, span) in scoped.iter().filter(|(scope, ..)| scope.name != "caller") {
        assert_eq!((&*scope.name, &*scope.version), ("roundtrip", env!("CARGO_PKG_VERSION")));
        assert_eq!(schema, "https://opentelemetry.io/schemas/1.41.0");
        assert!(matches!(span.kind, SpanKind::Client | SpanKind::Server), "{span:#?}");
        for name in span.attributes.keys() {
            assert!(published::span_has(span.kind == SpanKind::Client, name), "{name} of {span:#?}");
        }
        let method = span.attributes.get("mcp.method.name").expect("every span has a method");
        assert!(span.name == *method || span.name.starts_with(&format!("{method} ")), "{span:#?}");
        assert_eq!(span.failed.is_some(), span.attributes.contains_key("error.type"), "{span:#?}");
    }
    for point in collector.points().await {
        assert_eq!((&*point.unit, &point.bounds[..]), ("s", &published::BUCKETS[..]), "{point:#?}");
        assert!(point.count > 0);
        for name in point.attributes.keys() {
            assert_eq!(published::metric_has(&point.metric, name), Some(true), "{name} of {point:#?}");
        }
    }
}

/// N7: over HTTP, the caller's span, the client's, the server's and the handler's are one trace, each the parent of the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_http_is_one_trace() {
    let collector = Collector::start().await;
    let (url, _stop) = serve(server(collector.telemetry())).await;
    let client = Client::http(&url).expect("a client").telemetry(collector.telemetry());
    let caller = Context::current_with_span(collector.traces.tracer("caller").start("agent"));
    let calling = client.call_tool("inside", json!({})).into_future().with_context(caller.clone());
    let result = calling.await.expect("a result");
    client.get_prompt("greeting").await.expect("a prompt");
    client.read_resource("app://motto").await.expect("a resource");
    caller.span().end();

    let spans = collector.spans().await;
    let agent = only(&spans, SpanKind::Internal, "agent");
    let sent = only(&spans, SpanKind::Client, "tools/call inside");
    let served = only(&spans, SpanKind::Server, "tools/call inside");
    assert_eq!((&sent.parent, &served.parent), (&agent.id, &sent.id));
    assert_eq!(text(&result), format!("{} {}", served.id.0, served.id.1), "the handler runs inside");
    let port = url.trim_end_matches("/mcp").rsplit(':').next().expect("a port");
    let shared = [
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2026-07-28"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "inside"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
    ];
    let of_client = [("server.address", "127.0.0.1"), ("server.port", port)];
    let of_server = [("client.address", "127.0.0.1"), ("network.protocol.version", "1.1")];
    has(sent, &[&shared[..], &of_client].concat());
    has(served, &[&shared[..], &of_server].concat());
    assert_eq!(sent.attributes.get("jsonrpc.request.id"), served.attributes.get("jsonrpc.request.id"));
    assert!(served.attributes.contains_key("jsonrpc.request.id") && served.failed.is_none());
    for kind in [SpanKind::Client, SpanKind::Server] {
        has(only(&spans, kind, "prompts/get greeting"), &[("gen_ai.prompt.name", "greeting")]);
        has(only(&spans, kind, "resources/read"), &[("mcp.resource.uri", "app://motto")]);
    }

    let points = collector.points().await;
    assert!(is_measured(&points, "mcp.client.operation.duration", &[&shared[..], &of_client].concat()));
    assert!(is_measured(&points, "mcp.server.operation.duration", &shared));
    assert_published(&collector).await;
}

/// N7: each round of a flow is linked to the one before, and all have the flow's id.
#[tokio::test(flavor = "multi_thread")]
async fn rounds_of_a_flow_are_linked() {
    let (collector, client) = in_process().await;
    client.call_tool("sure", json!({})).await.expect("a result");
    let spans = collector.spans().await;
    let mut rounds = named(&spans, SpanKind::Server, "tools/call sure");
    rounds.sort_by_key(|span| span.attributes.get("roundtrip.flow.round").cloned());
    let [first, second, third] = rounds[..] else { panic!("not three rounds: {spans:#?}") };
    for (number, round) in ["1", "2", "3"].into_iter().zip([first, second, third]) {
        has(round, &[("roundtrip.flow.round", number)]);
        assert_eq!(round.attributes.get("roundtrip.flow.id"), first.attributes.get("roundtrip.flow.id"));
        assert!(round.failed.is_none(), "a question is no failure");
    }
    assert_eq!(first.links, []);
    assert_eq!((&second.links, &third.links), (&vec![first.id.clone()], &vec![second.id.clone()]));
    assert_ne!(first.id.0, second.id.0, "without a caller's span each request is a trace of its own");
    assert_published(&collector).await;
}

/// N7: failures are told as the conventions have it: a tool's error, a code, and what a client runs into.
#[tokio::test(flavor = "multi_thread")]
async fn failures_have_a_type() {
    let (collector, client) = in_process().await;
    let result = client.call_tool("broken", json!({})).await.expect("a result");
    assert_eq!(result.is_error, Some(true));
    client.call_tool("refuses", json!({})).await.expect_err("an error");
    let hanging = client.call_tool("hang", json!({})).timeout(Duration::from_millis(20)).await;
    assert!(matches!(hanging, Err(Error::Timeout { .. })));

    let spans = collector.spans().await;
    let points = collector.points().await;
    for (kind, metric) in [
        (SpanKind::Client, "mcp.client.operation.duration"),
        (SpanKind::Server, "mcp.server.operation.duration"),
    ] {
        let broken = only(&spans, kind, "tools/call broken");
        has(broken, &[("error.type", "tool_error")]);
        assert!(!broken.attributes.contains_key("rpc.response.status_code"));
        let refused = only(&spans, kind, "tools/call refuses");
        has(refused, &[("error.type", "418"), ("rpc.response.status_code", "418")]);
        assert_eq!(refused.failed.as_deref(), Some("a teapot"));
        let named = [("gen_ai.tool.name", "broken"), ("error.type", "tool_error")];
        assert!(is_measured(&points, metric, &named), "{points:#?}");
    }
    has(only(&spans, SpanKind::Client, "tools/call hang"), &[("error.type", "timeout")]);
    has(only(&spans, SpanKind::Server, "tools/call hang"), &[("error.type", "cancelled")]);
    let (client, server) = ("mcp.client.operation.duration", "mcp.server.operation.duration");
    assert!(
        is_measured(&points, client, &[("error.type", "_OTHER")]),
        "a code of the peer's own: {points:#?}"
    );
    assert!(is_measured(&points, server, &[("gen_ai.tool.name", "refuses"), ("error.type", "418")]));
    assert_published(&collector).await;
}

/// N7: a name that a peer made up is no attribute of the server, and of no metric.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_are_not_told() {
    let (collector, client) = in_process().await;
    for number in 0..3 {
        client.call_tool(format!("made-up-{number}"), json!({})).await.expect_err("no such tool");
        client.get_prompt(format!("made-up-{number}")).await.expect_err("no such prompt");
    }
    let spans = collector.spans().await;
    let refused = named(&spans, SpanKind::Server, "tools/call");
    assert_eq!((refused.len(), named(&spans, SpanKind::Server, "prompts/get").len()), (3, 3));
    has(refused[0], &[("error.type", "-32602"), ("rpc.response.status_code", "-32602")]);
    assert_eq!(named(&spans, SpanKind::Client, "tools/call made-up-0").len(), 1);
    for span in named(&spans, SpanKind::Server, "tools/call") {
        assert!(!span.attributes.values().any(|value| value.contains("made-up")), "{span:#?}");
    }
    let points = collector.points().await;
    assert!(is_measured(&points, "mcp.client.operation.duration", &[("error.type", "-32602")]));
    assert!(points.iter().all(|point| !point.attributes.values().any(|value| value.contains("made-up"))));
    assert_published(&collector).await;
}

/// Sends requests to a server on a pair of streams, and waits for all answers.
async fn lines(server: Server, requests: &[Value]) {
    let (ours, theirs) = tokio::io::duplex(1024 * 1024);
    let endpoint = server.build().expect("a sound server");
    let served = tokio::spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        serve_lines(&endpoint, &Peer::default(), input, output).await
    });
    let (output, mut input) = tokio::io::split(ours);
    let mut answers = BufReader::new(output).lines();
    for request in requests {
        input.write_all(format!("{request}\n").as_bytes()).await.expect("written");
        answers.next_line().await.expect("read").expect("an answer");
    }
    input.shutdown().await.expect("an end");
    served.await.expect("no panic").expect("served");
}

fn call(id: &str, meta: &Value) -> Value {
    let mut meta = meta.clone();
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "inside", "_meta": meta } })
}

/// N7: on stdio, a foreign caller's trace context is the parent, with its trace state; one that is malformed is none.
#[tokio::test(flavor = "multi_thread")]
async fn the_trace_context_of_any_caller_is_the_parent() {
    let collector = Collector::start().await;
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
    let parent = format!("00-{trace}-{span}-01");
    let long = "x".repeat(100_000);
    let requests = [
        call("good", &json!({ "traceparent": parent, "tracestate": "rojo=1" })),
        call("bad", &json!({ "traceparent": parent.to_uppercase(), "tracestate": 7 })),
        call("long", &json!({ "traceparent": long, "tracestate": long })),
        call(&long, &json!({})),
    ];
    lines(server(collector.telemetry()), &requests).await;
    let spans = collector.spans().await;
    let of = |id: &str| {
        let found =
            spans.iter().find(|span| span.attributes.get("jsonrpc.request.id").is_some_and(|own| own == id));
        found.unwrap_or_else(|| panic!("no span of {id}"))
    };
    assert_eq!(of("good").parent, (trace.to_owned(), span.to_owned()));
    has(of("good"), &[("network.transport", "pipe")]);
    for id in ["bad", "long"] {
        assert_eq!(of(id).parent.1, "", "{id}");
    }
    let longest = spans.iter().flat_map(|span| span.attributes.values()).map(String::len).max();
    assert!(longest < Some(1_000), "{longest:?}");
    assert_published(&collector).await;
}

/// N7: a session of a handshake era is named in spans, and measured on both sides.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_named_and_measured() {
    let collector = Collector::start().await;
    let (url, _stop) = serve(server(collector.telemetry())).await;
    let old = roundtrip::wire::ProtocolVersion::V2025_11_25;
    let client = Client::http(&url).expect("a client").protocol(old).telemetry(collector.telemetry());
    client.call_tool("inside", json!({})).await.expect("a result");
    client.close().await;
    drop(client);

    let spans = collector.spans().await;
    let sent = only(&spans, SpanKind::Client, "tools/call inside");
    let served = only(&spans, SpanKind::Server, "tools/call inside");
    assert_eq!(served.parent, sent.id);
    let session = served.attributes.get("mcp.session.id").expect("a session");
    has(sent, &[("mcp.session.id", session), ("mcp.protocol.version", "2025-11-25")]);
    has(served, &[("mcp.protocol.version", "2025-11-25")]);
    let over = [("mcp.protocol.version", "2025-11-25"), ("network.transport", "tcp")];
    let measured = async {
        // Both sides let go of a session once its last stream has ended.
        loop {
            let points = collector.points().await;
            let sides = ["mcp.client.session.duration", "mcp.server.session.duration"];
            if sides.iter().all(|side| is_measured(&points, side, &over)) {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), measured).await.expect("both sessions end");
    assert_published(&collector).await;
}

/// Without telemetry nothing is exported, and no trace context is sent.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_without_telemetry() {
    let collector = Collector::start().await;
    let silent = Server::new("silent", "1.0.0").tool(Tool::new("inside", inside));
    let client = Client::in_process(silent).expect("a sound server");
    let result = client.call_tool("inside", json!({})).await.expect("a result");
    assert_eq!(text(&result), format!("{} {}", "0".repeat(32), "0".repeat(16)));
    assert!(collector.spans().await.is_empty() && collector.points().await.is_empty());
}
