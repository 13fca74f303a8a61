//! Telemetry among other code: hooks, contexts around a call, providers that panic.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::context::FutureExt as _;
use opentelemetry::global;
use opentelemetry::trace::{TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};
use roundtrip::server::{Event, Peer};
use roundtrip::telemetry::Telemetry;
use roundtrip::wire::Message;
use roundtrip::{Client, Keyring, Server, Tool, Turn};
use serde_json::json;

use crate::collector::Collector;
use crate::{call, client_of, named, only, server, text};

/// N7: rounds are linked behind hooks that begin spans of their own, and the handler's spans are children of those.
#[tokio::test(flavor = "multi_thread")]
async fn rounds_are_linked_behind_hooks() {
    let collector = Collector::start().await;
    let tracer = collector.traces.tracer("caller");
    let hooked = server(collector.telemetry()).around(move |_, next| {
        let span = Context::current_with_span(tracer.start("hook"));
        async move { next.run().await }.with_context(span)
    });
    let client = client_of(hooked);
    client.call_tool("sure", json!({})).await.expect("a result");
    let result = client.call_tool("inside", json!({})).await.expect("a result");
    let spans = collector.spans().await;
    let rounds = named(&spans, SpanKind::Server, "tools/call sure");
    assert_eq!(rounds.len(), 3, "{spans:#?}");
    let ids: Vec<_> = rounds.iter().map(|span| span.id.clone()).collect();
    let mut links: Vec<_> = rounds.iter().flat_map(|span| span.links.clone()).collect();
    links.dedup();
    assert!(links.len() == 2 && links.iter().all(|link| ids.contains(link)), "{spans:#?}");
    let served = only(&spans, SpanKind::Server, "tools/call inside");
    let around = named(&spans, SpanKind::Internal, "hook").into_iter().find(|span| span.parent == served.id);
    let around = around.expect("the hook runs inside the server's span");
    assert_eq!(text(&result), format!("{} {}", around.id.0, around.id.1));
}

/// N7: an instance without telemetry passes on what the next one links to.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_without_telemetry_does_not_break_the_links() {
    let collector = Collector::start().await;
    let keys = Keyring::random().expect("a key");
    let told = server(collector.telemetry()).seal(keys.clone());
    let silent = Server::new("fixture", "1.0.0").tool(Tool::new("sure", crate::sure));
    let (told, silent) = (client_of(told), client_of(silent.seal(keys)));
    let mut turn = told.call_tool("sure", json!({})).one_round().await.expect("a question");
    for (client, key) in [(&silent, "first"), (&told, "second")] {
        let Turn::Asked(pending) = turn else { panic!("no question {key}") };
        let answered = pending.answer(key, json!({ "confirm": true })).expect("an answer");
        turn = client.resume(answered).await.expect("a round");
    }
    assert!(matches!(turn, Turn::Done(_)));
    let spans = collector.spans().await;
    let mut rounds = named(&spans, SpanKind::Server, "tools/call sure");
    rounds.sort_by_key(|span| span.attributes.get("roundtrip.flow.round").cloned());
    let [first, third] = rounds[..] else { panic!("not two rounds with telemetry: {spans:#?}") };
    assert_eq!(third.links, std::slice::from_ref(&first.id));
}

/// N7: a server without telemetry that a handler calls in process leaves the spans of the handler's server alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_inside_another_is_not_told() {
    let collector = Collector::start().await;
    let outer = Tool::new("outer", async || {
        let silent = Server::new("silent", "1.0.0").tool(Tool::new("sure", crate::sure));
        let result = client_of(silent).call_tool("sure", json!({})).await.expect("a result");
        text(&result).to_owned()
    });
    let client = client_of(server(collector.telemetry()).tool(outer));
    client.call_tool("outer", json!({})).await.expect("a result");
    let spans = collector.spans().await;
    let served = only(&spans, SpanKind::Server, "tools/call outer");
    assert!(served.links.is_empty() && !served.attributes.contains_key("roundtrip.flow.id"), "{served:#?}");
}

/// N7: the context around a transport is linked where the caller sends one of its own, and the parent where it does not. A
/// trace context that a call is given goes out as it is.
#[tokio::test(flavor = "multi_thread")]
async fn the_context_around_a_transport_is_kept() {
    let collector = Collector::start().await;
    let endpoint = server(collector.telemetry()).build().expect("a sound server");
    let around = Context::current_with_span(collector.traces.tracer("caller").start("http"));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    for request in [call("sent", &json!({ "traceparent": parent })), call("unsent", &json!({}))] {
        let bytes = request.to_string();
        let Ok(Message::Request(request)) = Message::decode(bytes.as_bytes()) else { panic!("a request") };
        let decoded = endpoint.decode(&request).expect("a modern request");
        let mut call = {
            let _attached = around.clone().attach();
            endpoint.begin(request.id.clone(), &decoded, &Peer::default())
        };
        assert!(matches!(call.event().await, Event::Response(Ok(_))));
    }
    let client = Client::in_process(server(collector.telemetry())).expect("a sound server");
    let client = client.telemetry(collector.telemetry());
    client.call_tool("inside", json!({})).meta("traceparent", parent).await.expect("a result");
    around.span().end();

    let spans = collector.spans().await;
    let transport = only(&spans, SpanKind::Internal, "http");
    let of = |id: &str| {
        let served = named(&spans, SpanKind::Server, "tools/call inside");
        let found = served.into_iter().find(|span| span.attributes["jsonrpc.request.id"] == id);
        found.unwrap_or_else(|| panic!("no span of {id}")).clone()
    };
    let given = ("0af7651916cd43dd8448eb211c80319c".to_owned(), "00f067aa0ba902b7".to_owned());
    assert_eq!((of("sent").parent, of("sent").links), (given.clone(), vec![transport.id.clone()]));
    assert_eq!((of("unsent").parent, of("unsent").links), (transport.id.clone(), vec![]));
    assert_eq!(of("1").parent, given);
}

/// The global providers are those that were set before.
#[tokio::test(flavor = "multi_thread")]
async fn global_providers_are_used() {
    let collector = Collector::start().await;
    global::set_tracer_provider(collector.traces.clone());
    client_of(server(Telemetry::global())).call_tool("inside", json!({})).await.expect("a result");
    assert_eq!(named(&collector.spans().await, SpanKind::Server, "tools/call inside").len(), 1);
}

/// Processor that panics at the start of a span, or at its end.
#[derive(Debug)]
struct Panics {
    at_start: bool,
}

impl SpanProcessor for Panics {
    fn on_start(&self, _: &mut Span, _: &Context) {
        assert!(!self.at_start, "a bug of the processor's");
    }
    fn on_end(&self, _: SpanData) {
        assert!(self.at_start, "a bug of the processor's");
    }
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }
    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Z1: a processor of the author's own that panics fails no call.
#[tokio::test]
async fn telemetry_that_panics_fails_no_call() {
    for at_start in [true, false] {
        let traces = SdkTracerProvider::builder().with_span_processor(Panics { at_start }).build();
        let telemetry = Telemetry::new(&traces, &SdkMeterProvider::builder().build());
        let client = client_of(server(telemetry.clone())).telemetry(telemetry);
        client.call_tool("inside", json!({})).await.expect("a result");
        client.call_tool("sure", json!({})).await.expect("a result");
    }
}
