//! Robustness: hostile JSON, limits.

use std::sync::Arc;

use roundtrip::http::HttpLimits;
use roundtrip::server::{Limits, Peer};
use roundtrip::stdio::serve_lines;
use roundtrip::{Args, Principal, Resource, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;

use crate::support::{Running, headers, message};

#[derive(Deserialize, JsonSchema)]
struct Any {
    #[expect(dead_code, reason = "it only has to be parsed")]
    value: Option<Value>,
}

/// Z2: deep, duplicate-keyed, truncated and ill-encoded JSON gets an error, and the connection goes on.
#[tokio::test]
async fn hostile_json_is_refused() {
    let running =
        Running::start(Server::new("s", "1").tool(Tool::new("any", async |Args(Any { .. })| "ok"))).await;
    let mut connection = running.connect().await;
    let call = message(1, "tools/call", json!({ "name": "any", "arguments": { "value": 0 } }));
    let whole = call.to_string();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let duplicate = whole.replace("\"name\":\"any\"", "\"name\":\"other\",\"name\":\"any\"");
    let hostile = [
        whole.replace("\"value\":0", &format!("\"value\":{deep}")),
        whole.replace("\"value\":0", "\"value\":1e999999"),
        whole.replace("\"value\":0", "\"value\":\"\\ud800\""),
        whole.replace("\"jsonrpc\":\"2.0\"", "\"jsonrpc\":\"2.0\",\"id\":2"),
        duplicate,
        whole[..whole.len() / 2].to_owned(),
        whole
            .replace("\"_meta\":{", "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","),
        deep.clone(),
    ];
    for text in &hostile {
        let answer = connection.post(&headers(&call), text.as_bytes()).await;
        let message = answer.json();
        let refused = message.get("error").is_some() || message["result"]["isError"] == true;
        assert!(refused, "{}: {message}", &text[..text.len().min(300)]);
    }
    let mut broken = whole.clone().into_bytes();
    let place = whole.find("any").expect("the name");
    broken[place] = 0xff;
    assert_eq!(connection.post(&headers(&call), &broken).await.status, 400);
    assert_eq!(connection.post(&headers(&call), whole.as_bytes()).await.status, 200, "as good as new");
}

/// Z2: header games get an HTTP error and never reach a handler.
#[tokio::test]
async fn header_games_are_refused() {
    let running = Running::start(Server::new("s", "1").tool(Tool::new("any", async || "ok"))).await;
    let call = message(1, "tools/call", json!({ "name": "any" }));
    let mut connection = running.connect().await;
    let mut twice = headers(&call);
    twice.push(("Mcp-Name".into(), "other".into()));
    let answer = connection.post(&twice, call.to_string().as_bytes()).await;
    assert_eq!(answer.refusal(), (400, -32020), "two values are not one");
    let mut binary = headers(&call);
    binary.retain(|(name, _)| name != "Mcp-Name");
    binary.push(("Mcp-Name".into(), "\u{e9}".into()));
    let answer = connection.post(&binary, call.to_string().as_bytes()).await;
    assert_eq!(answer.refusal(), (400, -32020));
    let mut huge = headers(&call);
    huge.push(("X-Filler".into(), "x".repeat(200_000)));
    let mut other = running.connect().await;
    other.send("POST", &huge, call.to_string().as_bytes()).await;
    assert_eq!(other.head().await.status, 431);
}

/// Z3: past the limit of concurrent calls and of subscriptions there is a clear, cheap refusal, and a place that
/// becomes free is used again.
#[tokio::test]
async fn past_the_limits_calls_are_refused() {
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (starting, held) = (Arc::clone(&started), Arc::clone(&release));
    let tool = Tool::new("wait", move || {
        let (started, held) = (Arc::clone(&starting), Arc::clone(&held));
        async move {
            started.notify_one();
            held.notified().await;
            "waited"
        }
    });
    let mut limits = Limits::default();
    limits.concurrent_calls = 2;
    limits.subscriptions = 1;
    let http = Server::new("s", "1").tool(tool).limits(limits).into_http().expect("a server");
    // Two callers: one alone has its share.
    let running = Running::start_http(http.principal(|parts| {
        let listens = parts.headers.get("mcp-method").is_some_and(|method| method == "subscriptions/listen");
        Some(Principal::new(if listens { "ann" } else { "eve" }))
    }))
    .await;
    let call = message(1, "tools/call", json!({ "name": "wait" }));
    let mut waiting = running.connect().await;
    waiting.send("POST", &headers(&call), call.to_string().as_bytes()).await;
    started.notified().await;

    let listen = message(1, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let mut listening = running.connect().await;
    listening.send("POST", &headers(&listen), listen.to_string().as_bytes()).await;
    assert_eq!(listening.head().await.status, 200);

    let busy = running.call("tools/call", json!({ "name": "wait" })).await;
    assert_eq!((busy.refusal(), busy.header("retry-after")), ((503, 503), Some("1")));
    release.notify_one();
    assert_eq!(waiting.head().await.status, 200);

    let second =
        running.call("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })).await;
    assert_eq!(second.refusal(), (503, 503), "one listener is enough");
    let answer = running.call("tools/list", json!({})).await;
    assert_eq!(answer.status, 200, "a place has become free");
}

/// The head of a message that is to come.
fn announcing(length: usize, method: &str) -> String {
    let headers = headers(&message(1, method, json!({ "name": "wait" })));
    let head = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
    format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{head}\r\n")
}

/// Z3, H7: connections that announce large bodies and send them slowly are refused past what there is for all of them,
/// and whoever sends a message whole is served meanwhile.
#[tokio::test]
async fn many_connections_that_send_slowly_are_refused_past_the_budget() {
    let mut limits = HttpLimits::default();
    limits.body_bytes = 100_000;
    limits.total_body_bytes = 400_000;
    let running =
        Running::start_with(Server::new("s", "1").tool(Tool::new("wait", async || "done")), limits).await;
    let mut slow = Vec::new();
    let mut refused = 0;
    for _ in 0..20 {
        let mut connection = running.connect().await;
        connection.raw(announcing(100_000, "tools/call").as_bytes()).await;
        connection.raw(&[b' '; 50_000]).await;
        // It has been read, and waited for, when the server has had time to answer somebody else.
        for _ in 0..20 {
            assert_eq!(running.call("tools/call", json!({ "name": "wait" })).await.status, 200);
        }
        slow.push(connection);
    }
    for mut connection in slow {
        connection.raw(&[b' '; 50_000]).await;
        let head = connection.head().await;
        match head.status {
            // Nothing but spaces is no message.
            400 => {}
            503 => {
                assert_eq!(head.header("retry-after"), Some("1"));
                refused += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert!((15..20).contains(&refused), "{refused} of 20, where a caller may have 200,000 bytes");
}

/// Z3: while there is no place for a call, the large message of another is not read.
#[tokio::test]
async fn a_body_is_not_read_when_there_is_no_place_for_its_call() {
    let started = Arc::new(Notify::new());
    let starting = Arc::clone(&started);
    let tool = Tool::new("wait", move || {
        let started = Arc::clone(&starting);
        async move {
            started.notify_one();
            std::future::pending::<&str>().await
        }
    });
    let mut limits = Limits::default();
    limits.concurrent_calls = 1;
    let running = Running::start(Server::new("s", "1").tool(tool).limits(limits)).await;
    let call = message(1, "tools/call", json!({ "name": "wait" }));
    let mut waiting = running.connect().await;
    waiting.send("POST", &headers(&call), call.to_string().as_bytes()).await;
    started.notified().await;
    let mut large = running.connect().await;
    large.raw(announcing(1_000_000, "tools/call").as_bytes()).await;
    let refused = large.head().await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
}

/// Z3, N1: past what subscriptions may keep together there is a refusal that says what to do.
#[tokio::test]
async fn a_subscription_that_there_is_no_room_for_is_refused() {
    let mut limits = Limits::default();
    limits.subscription_bytes = 10_000;
    let server = Server::new("s", "1").resource(Resource::new("app://r", "r", async || "r")).limits(limits);
    let running = Running::start(server).await;
    let long = format!("app://{}", "x".repeat(6_000));
    let listen = json!({ "notifications": { "resourceSubscriptions": [long] } });
    let refused = running.call("subscriptions/listen", listen).await;
    assert_eq!((refused.refusal(), refused.header("retry-after")), ((503, 503), Some("1")));
    assert!(refused.error_message().contains("watch fewer"));
}

/// A tool that waits, told of every call that has begun.
fn waiting_tool() -> (Tool, Arc<Notify>) {
    let started = Arc::new(Notify::new());
    let starting = Arc::clone(&started);
    let tool = Tool::new("wait", move |Args(_): Args<Any>| {
        let started = Arc::clone(&starting);
        async move {
            started.notify_one();
            std::future::pending::<&str>().await
        }
    });
    (tool, started)
}

fn large_call() -> Value {
    json!({ "name": "wait", "arguments": { "value": "x".repeat(90_000) } })
}

/// Z3: large messages of calls that run are refused past what there is for all of them; small ones are not, and a call that
/// ends makes room.
#[tokio::test]
async fn large_calls_at_once_keep_no_more_than_the_budget() {
    let (tool, started) = waiting_tool();
    let mut limits = Limits::default();
    limits.call_bytes = 400_000;
    let server = Server::new("s", "1").tool(tool).tool(Tool::new("small", async || "small")).limits(limits);
    let running = Running::start(server).await;
    let call = message(1, "tools/call", large_call());
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut connection = running.connect().await;
        connection.send("POST", &headers(&call), call.to_string().as_bytes()).await;
        started.notified().await;
        waiting.push(connection);
    }
    let refused = running.call("tools/call", large_call()).await;
    assert_eq!((refused.refusal(), refused.header("retry-after")), ((503, 503), Some("1")));
    assert_eq!(refused.json()["id"], 1);
    assert_eq!(running.call("tools/call", json!({ "name": "small" })).await.status, 200);
    drop(waiting.pop());
    // Hanging up is noticed when the server gets to it.
    let mut connection = running.connect().await;
    let begun = async {
        loop {
            connection = running.connect().await;
            connection.send("POST", &headers(&call), call.to_string().as_bytes()).await;
            tokio::select! {
                () = started.notified() => return,
                refused = connection.head() => assert_eq!(refused.status, 503),
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), begun).await.expect("room again");
}

/// Z3: the same on a pipe, where one peer sends all there is.
#[tokio::test]
async fn large_calls_at_once_keep_no_more_than_the_budget_on_a_pipe() {
    let (tool, _started) = waiting_tool();
    let mut limits = Limits::default();
    limits.call_bytes = 400_000;
    let endpoint = Server::new("s", "1").tool(tool).limits(limits).build().expect("a server");
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let served = tokio::spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        serve_lines(&endpoint, &Peer::default(), input, output).await
    });
    let (output, mut input) = tokio::io::split(ours);
    for id in 1..=3 {
        let line = format!("{}\n", message(id, "tools/call", large_call()));
        input.write_all(line.as_bytes()).await.expect("written");
    }
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).await.expect("a line");
    let refused: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(503)));
    served.abort();
}
