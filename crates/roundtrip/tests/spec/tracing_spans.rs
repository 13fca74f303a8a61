//! Spans around requests, and events inside them.

use roundtrip::testing::play;
use roundtrip::{Ask, Server, Tool};
use serde_json::json;

use crate::logged::logged;
use crate::support::{Running, meta};

/// N7: every request runs in a span with its method, target and era, and with the caller's trace context.
#[test]
fn every_request_runs_in_a_span() {
    let recorded = logged(async {
        let tool = Tool::new("inside", async || {
            tracing::Span::current().metadata().map(tracing::Metadata::name).unwrap_or("none")
        });
        let running = Running::start(Server::new("s", "1").tool(tool)).await;
        let mut meta = meta();
        meta["traceparent"] = json!("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
        let answer = running.call("tools/call", json!({ "name": "inside", "_meta": meta })).await;
        assert_eq!(answer.result()["content"][0]["text"], "mcp.request", "the handler runs inside");
    });
    let span = recorded.lines().find(|line| line.starts_with("mcp.request")).expect("a span");
    for part in
        ["method=\"tools/call\"", "target=\"inside\"", "era=Modern", "traceparent=\"00-0af7651916cd43dd"]
    {
        assert!(span.contains(part), "{span}");
    }
}

/// N7: the rounds of a flow are linked by its id, and each says which one it is.
#[test]
fn rounds_of_a_flow_are_linked() {
    let recorded = logged(async {
        let tool = Tool::new("sure", async |ask: Ask| {
            ask.confirm("sure", "Sure?").await.map(|sure| sure.to_string())
        });
        let script = play(Server::new("s", "1").tool(tool)).tool("sure", json!({}));
        script.accept("sure", json!({ "confirm": true })).await.expect("an answer");
    });
    let spans: Vec<&str> = recorded.lines().filter(|line| line.starts_with("mcp.request")).collect();
    let field = |span: &str, name: &str| {
        let value = span.split(' ').find_map(|field| field.strip_prefix(name)).expect("a field");
        value.to_owned()
    };
    assert_eq!(spans.len(), 2, "{recorded}");
    assert_eq!(field(spans[0], "flow="), field(spans[1], "flow="));
    assert_eq!((field(spans[0], "round="), field(spans[1], "round=")), ("1".into(), "2".into()));
}

/// A6, N7: a question that changed since it was answered is asked again, and the server's log says which and what to do.
#[test]
fn a_question_that_changes_is_logged() {
    let asked_with = |identity: Option<&'static str>| {
        let recorded = logged(async {
            let tool = Tool::new("sure", move |ask: Ask| async move {
                let asking = ask.confirm("sure", format!("Round {}. Sure?", ask.round()));
                match identity {
                    Some(identity) => asking.identity(identity).await.map(|sure| sure.to_string()),
                    None => asking.await.map(|sure| sure.to_string()),
                }
            });
            let script = play(Server::new("s", "1").tool(tool)).tool("sure", json!({}));
            let _ = script.accept("sure", json!({ "confirm": true })).await;
        });
        recorded.lines().filter(|line| line.starts_with("WARN")).map(str::to_owned).collect::<Vec<_>>()
    };
    let [warning]: [String; 1] = asked_with(None).try_into().expect("one warning");
    assert!(warning.contains("key=\"sure\"") && warning.contains(".identity(..)"), "{warning}");
    assert!(!warning.contains("Sure?"), "no text of the question: {warning}");
    assert_eq!(asked_with(Some("sure")), Vec::<String>::new());
}
