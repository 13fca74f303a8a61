//! Streamable HTTP: headers, streams, limits and shutdown (transports, "Streamable HTTP").

use std::sync::Arc;
use std::time::{Duration, Instant};

use roundtrip::http::HttpLimits;
use roundtrip::{Args, Extension, Principal, Progress, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower_service::Service as _;

use crate::support::{Answer, Connection, Running, changed, headers, message, meta};

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    #[schemars(extend("x-mcp-header" = "Limit"))]
    limit: i64,
}

fn server() -> Server {
    Server::new("spec-server", "1")
        .tool(Tool::new("echo", async |Args(Text { text })| text))
        .tool(Tool::new("query", async |Args(Query { region, limit })| format!("{limit} in {region}")))
        .tool(Tool::new("steps", async |progress: Progress| {
            progress.report((1, 2));
            tokio::task::yield_now().await;
            progress.report((2, 2, "done"));
            "finished"
        }))
}

fn echo(text: &str) -> Value {
    message(1, "tools/call", json!({ "name": "echo", "arguments": { "text": text } }))
}

fn steps() -> Value {
    let mut meta = meta();
    meta["progressToken"] = json!("token");
    message(1, "tools/call", json!({ "name": "steps", "_meta": meta }))
}

async fn post(connection: &mut Connection, headers: &[(String, String)], message: &Value) -> Answer {
    connection.post(headers, message.to_string().as_bytes()).await
}

/// H1: one endpoint that takes POST; GET and DELETE are 405, and a session id is ignored.
#[tokio::test]
async fn only_post_is_taken() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for verb in ["GET", "DELETE", "PUT"] {
        connection.send(verb, &[("Accept".into(), "text/event-stream".into())], b"").await;
        let mut answer = connection.head().await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{verb}");
        let length = answer.header("content-length").expect("a length").parse().expect("a number");
        answer.body = connection.exactly(length).await;
        assert_eq!(answer.refusal(), (405, -32600));
    }
    let mut with_session = headers(&echo("x"));
    with_session.push(("Mcp-Session-Id".into(), "anything".into()));
    with_session.push(("Last-Event-ID".into(), "7".into()));
    let answer = post(&mut connection, &with_session, &echo("x")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), None);
}

/// H2: version, method and name headers are required and must equal the body, else -32020 and 400.
#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for name in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
        for value in [None, Some("something else"), Some("ECHO"), Some("2025-11-25")] {
            let answer = post(&mut connection, &changed(&echo("x"), name, value), &echo("x")).await;
            let (status, code) = answer.refusal();
            assert_eq!(status, 400, "{name}: {value:?}");
            assert_eq!(code, -32020, "{name}: {value:?}: {}", answer.error_message());
            assert_eq!(answer.json()["id"], 1);
        }
    }
    let list = message(1, "tools/list", json!({}));
    assert_eq!(post(&mut connection, &headers(&list), &list).await.status, 200, "a list has no name");
}

/// H2: header names are read in any case, values exactly, blanks around them trimmed, and Base64 decoded.
#[tokio::test]
async fn header_names_in_any_case_and_values_decoded() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    let shouting: Vec<_> =
        headers(&echo("x")).into_iter().map(|(name, value)| (name.to_uppercase(), value)).collect();
    assert_eq!(post(&mut connection, &shouting, &echo("x")).await.status, 200);
    for (value, status) in [
        ("  echo\t", 200),
        ("=?base64?ZWNobw==?=", 200),
        ("=?base64?ZWNobw?=", 400),
        ("=?BASE64?ZWNobw==?=", 400),
        ("=?base64?ZWNobw==", 400),
        ("=?base64?Z W N?=", 400),
    ] {
        let answer = post(&mut connection, &changed(&echo("x"), "Mcp-Name", Some(value)), &echo("x")).await;
        assert_eq!(answer.status, status, "{value}");
    }
}

/// H3: an annotated argument and its header must agree; a value without a header and a header without a value are
/// refused.
#[tokio::test]
async fn mirrored_arguments_are_held_against_their_headers() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    let cases = [
        (json!({ "region": "eu" }), vec![("Region", "eu")], true),
        (json!({ "region": "eu" }), vec![("region", "=?base64?ZXU=?=")], true),
        (json!({ "region": "Grüße" }), vec![("Region", "=?base64?R3LDvMOfZQ==?=")], true),
        (json!({ "limit": 42 }), vec![("Limit", "42")], true),
        (json!({ "limit": 42 }), vec![("Limit", "42.0")], true),
        (json!({ "region": null }), vec![], true),
        (json!({}), vec![], true),
        (json!({ "region": "eu" }), vec![], false),
        (json!({ "region": "eu" }), vec![("Region", "us")], false),
        (json!({}), vec![("Region", "eu")], false),
        (json!({ "limit": 42 }), vec![("Limit", "43")], false),
        (json!({ "limit": 42 }), vec![("Limit", "forty-two")], false),
    ];
    for (arguments, mirrored, fine) in cases {
        let call = message(1, "tools/call", json!({ "name": "query", "arguments": arguments }));
        let mut all = headers(&call);
        all.extend(mirrored.iter().map(|(name, value)| (format!("Mcp-Param-{name}"), (*value).to_owned())));
        let answer = post(&mut connection, &all, &call).await;
        if fine {
            assert_eq!(answer.status, 200, "{arguments} {mirrored:?}: {}", answer.body);
        } else {
            assert_eq!(answer.refusal(), (400, -32020), "{arguments} {mirrored:?}");
        }
    }
}

/// H3: a broken annotation is a mistake at start-up that names the tool.
#[cfg(feature = "validation")]
#[test]
fn broken_annotations_do_not_start() {
    for annotation in [json!(""), json!("a b"), json!("é"), json!(7)] {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": annotation } } });
        let tool = Tool::new("annotated", async || "x").input_schema(schema);
        let refused = Server::new("s", "1").tool(tool).build().expect_err("refused");
        assert!(refused.to_string().contains("`annotated`"), "{refused}");
    }
}

/// H4: the answer is JSON unless a notification comes first; then it is a stream that proxies do not hold back.
#[tokio::test]
async fn a_stream_is_opened_only_for_notifications() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    let answer = post(&mut connection, &headers(&echo("x")), &echo("x")).await;
    assert_eq!(answer.result()["content"][0]["text"], "x");

    let silent = message(1, "tools/call", json!({ "name": "steps" }));
    let answer = post(&mut connection, &headers(&silent), &silent).await;
    assert_eq!(answer.result()["content"][0]["text"], "finished", "no token: nothing to stream");

    let answer = post(&mut connection, &headers(&steps()), &steps()).await;
    assert_eq!((answer.status, answer.header("x-accel-buffering")), (200, Some("no")));
    let events = answer.events();
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["params"], json!({ "progressToken": "token", "progress": 1, "total": 2 }));
    assert_eq!(events[1]["params"]["message"], "done");
    assert_eq!((&events[2]["id"], &events[2]["result"]["resultType"]), (&json!(1), &json!("complete")));
}

/// H4: a call that takes long turns into a stream with keep-alive comments.
#[tokio::test]
async fn a_long_call_is_kept_alive() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let tool = Tool::new("wait", move || {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            "released"
        }
    });
    let mut limits = HttpLimits::default();
    limits.keep_alive = Duration::from_millis(20);
    let running = Running::start_with(Server::new("s", "1").tool(tool), limits).await;
    let mut connection = running.connect().await;
    let call = message(1, "tools/call", json!({ "name": "wait" }));
    connection.send("POST", &headers(&call), call.to_string().as_bytes()).await;
    assert_eq!(connection.head().await.header("content-type"), Some("text/event-stream"));
    assert_eq!(connection.chunk().await.as_deref(), Some(":\n\n"));
    release.notify_one();
    let result = connection.event().await.expect("the result");
    assert_eq!(result["result"]["content"][0]["text"], "released");
    assert_eq!(connection.chunk().await, None, "the response ends the stream");
}

/// H5: closing the connection cancels the handler.
#[tokio::test]
async fn hanging_up_cancels_the_handler() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (starting, dropping) = (Arc::clone(&started), Arc::clone(&dropped));
    let tool = Tool::new("forever", move || {
        let (started, guard) = (Arc::clone(&starting), Dropped(Arc::clone(&dropping)));
        async move {
            let _guard = guard;
            started.notify_one();
            std::future::pending::<String>().await
        }
    });
    let running = Running::start(Server::new("s", "1").tool(tool)).await;
    let mut connection = running.connect().await;
    let call = message(1, "tools/call", json!({ "name": "forever" }));
    connection.send("POST", &headers(&call), call.to_string().as_bytes()).await;
    started.notified().await;
    drop(connection);
    dropped.notified().await;
}

/// H6: a foreign origin, and on loopback a foreign host, is 403 with a JSON-RPC body.
#[tokio::test]
async fn foreign_origins_and_hosts_are_refused() {
    let http = server().into_http().expect("a server").allow_origin("https://app.example");
    let running = Running::start_http(http).await;
    let mut connection = running.connect().await;
    for (name, value, status) in [
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Host", "evil.example", 403),
        ("Origin", "https://app.example", 200),
        ("Origin", "http://localhost:5173", 200),
        ("Host", "localhost:8000", 200),
    ] {
        let answer = post(&mut connection, &changed(&echo("x"), name, Some(value)), &echo("x")).await;
        assert_eq!(answer.status, status, "{name}: {value}");
        assert_eq!(answer.json().get("error").is_some(), status == 403);
    }
}

/// H6: a mounted service checks `Host` once it is told that it is on loopback.
#[tokio::test]
async fn a_mounted_service_can_check_the_host() {
    let http = server().into_http().expect("a server").allow_host("tools.example");
    for (host, anywhere, loopback) in
        [("evil.example", 200, 403), ("localhost:8000", 200, 200), ("tools.example", 200, 200)]
    {
        for (http, status) in [(http.clone(), anywhere), (http.clone().loopback_only(), loopback)] {
            let sent = changed(&echo("x"), "Host", Some(host));
            let request = sent.iter().fold(http::Request::post("/mcp"), |request, (name, value)| {
                request.header(name.as_str(), value.as_str())
            });
            let request = request.body(echo("x").to_string()).expect("a request");
            let response = http.clone().call(request).await.expect("an answer");
            assert_eq!(response.status(), status, "{host}");
        }
    }
}

/// H7: a body past the limit is 413, announced or not, and nothing of it is kept.
#[tokio::test]
async fn large_bodies_are_refused() {
    let mut limits = HttpLimits::default();
    limits.body_bytes = 2_000;
    let running = Running::start_with(server(), limits).await;
    let fits = echo(&"x".repeat(1_000));
    assert_eq!(post(&mut running.connect().await, &headers(&fits), &fits).await.status, 200);
    let large = echo(&"x".repeat(3_000));
    assert_eq!(post(&mut running.connect().await, &headers(&large), &large).await.refusal(), (413, -32600));

    let mut connection = running.connect().await;
    let mut head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n".to_owned();
    for (name, value) in headers(&large) {
        head += &format!("{name}: {value}\r\n");
    }
    connection.raw(format!("{head}\r\n").as_bytes()).await;
    for _ in 0..3 {
        connection.raw(format!("3e8\r\n{}\r\n", "x".repeat(1_000)).as_bytes()).await;
    }
    assert_eq!(connection.head().await.status, 413);
}

/// H7: a body or a head that does not come in time ends the request, an idle connection is closed.
#[tokio::test]
async fn slow_and_idle_connections_time_out() {
    let mut limits = HttpLimits::default();
    limits.body_timeout = Duration::from_millis(50);
    limits.head_timeout = Duration::from_millis(50);
    let running = Running::start_with(server(), limits).await;

    let mut slow_body = running.connect().await;
    let mut head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n".to_owned();
    for (name, value) in headers(&echo("x")) {
        head += &format!("{name}: {value}\r\n");
    }
    slow_body.raw(format!("{head}\r\n{{").as_bytes()).await;
    assert_eq!(slow_body.head().await.status, 408);

    let mut slow_head = running.connect().await;
    slow_head.raw(b"POST /mcp HTTP/1.1\r\nHost:").await;
    assert!(slow_head.closed().await);

    let mut idle = running.connect().await;
    assert_eq!(post(&mut idle, &headers(&echo("x")), &echo("x")).await.status, 200);
    assert!(idle.closed().await);
}

/// H7: the time for a head counts between requests: neither a call that takes longer, nor the age of a connection ends it. A head that
/// comes bit by bit has no more time than one that comes at once.
#[tokio::test]
async fn the_time_for_a_head_is_no_time_for_a_call() {
    let mut limits = HttpLimits::default();
    limits.head_timeout = Duration::from_millis(300);
    let late = 3 * limits.head_timeout;
    let slow = move || async move {
        tokio::time::sleep(late).await;
        "late"
    };
    let slow = Tool::new("slow", slow);
    let running = Running::start_with(server().tool(slow), limits).await;
    let mut connection = running.connect().await;
    let call = message(1, "tools/call", json!({ "name": "slow" }));
    assert_eq!(post(&mut connection, &headers(&call), &call).await.result()["content"][0]["text"], "late");
    for _ in 0..4 {
        assert_eq!(post(&mut connection, &headers(&echo("x")), &echo("x")).await.status, 200);
        tokio::time::sleep(limits.head_timeout / 3).await;
    }
    assert_eq!(post(&mut connection, &headers(&call), &call).await.result()["content"][0]["text"], "late");
    let (begun, mut bits) = (Instant::now(), running.connect().await);
    bits.raw(b"POST /mcp HTTP/1.1\r\n").await;
    tokio::time::sleep(limits.head_timeout / 2).await;
    bits.raw(b"Host: localhost\r\n").await;
    assert!(bits.closed().await && connection.closed().await);
    assert!(begun.elapsed() >= limits.head_timeout, "{:?}", begun.elapsed());
}

/// H8: no Accept or any counts as both, JSON only gets JSON without notifications, stream only gets a stream, and
/// what rules out both is 406.
#[tokio::test]
async fn the_answer_is_of_a_kind_the_client_accepts() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for accept in
        [None, Some("*/*"), Some("application/json;q=0.9, text/event-stream"), Some("text/*, application/*")]
    {
        let answer = post(&mut connection, &changed(&steps(), "Accept", accept), &steps()).await;
        assert_eq!(answer.events().len(), 3, "{accept:?}");
    }
    for accept in
        ["application/json", "application/json, text/html", "application/json, text/event-stream;q=0"]
    {
        let answer = post(&mut connection, &changed(&steps(), "Accept", Some(accept)), &steps()).await;
        assert_eq!(answer.result()["content"][0]["text"], "finished", "{accept}");
    }
    let answer =
        post(&mut connection, &changed(&echo("x"), "Accept", Some("text/event-stream")), &echo("x")).await;
    assert_eq!(answer.events().len(), 1);
    for accept in ["text/html", "image/*", "application/json;q=0"] {
        let answer = post(&mut connection, &changed(&echo("x"), "Accept", Some(accept)), &echo("x")).await;
        assert_eq!(answer.refusal(), (406, -32600), "{accept}");
    }
}

/// H8: a body that is not declared as JSON is 415.
#[tokio::test]
async fn the_body_must_be_declared_as_json() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for (kind, status) in [
        (Some("application/json; charset=utf-8"), 200),
        (Some("Application/JSON"), 200),
        (Some("text/plain"), 415),
        (Some("application/jsonp"), 415),
        (None, 415),
    ] {
        let answer = post(&mut connection, &changed(&echo("x"), "Content-Type", kind), &echo("x")).await;
        assert_eq!(answer.status, status, "{kind:?}");
        answer.json();
    }
}

/// H9: shutting down ends listening streams with their result, lets running calls finish, and takes no new ones.
#[tokio::test]
async fn shutdown_is_graceful() {
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (starting, held) = (Arc::clone(&started), Arc::clone(&release));
    let tool = Tool::new("wait", move || {
        let (started, held) = (Arc::clone(&starting), Arc::clone(&held));
        async move {
            started.notify_one();
            held.notified().await;
            "finished"
        }
    });
    let mut running = Running::start(Server::new("s", "1").tool(tool)).await;

    let mut listening = running.connect().await;
    let listen =
        message("listener", "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    listening.send("POST", &headers(&listen), listen.to_string().as_bytes()).await;
    assert_eq!(listening.head().await.status, 200);
    let acknowledged = listening.event().await.expect("an acknowledgement");
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");

    let mut calling = running.connect().await;
    let call = message(1, "tools/call", json!({ "name": "wait" }));
    calling.send("POST", &headers(&call), call.to_string().as_bytes()).await;
    started.notified().await;

    running.begin_stop();
    let ended = listening.event().await.expect("a result");
    assert_eq!(ended["id"], "listener");
    assert_eq!(ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "listener");
    assert_eq!(listening.chunk().await, None);

    release.notify_one();
    let answer = calling.head().await;
    assert_eq!(answer.status, 200, "the call was let finish");
    let address = running.address;
    running.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

/// H10: a notification is answered 202 without a body, whatever it is about.
#[tokio::test]
async fn notifications_are_accepted() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for method in ["notifications/cancelled", "notifications/initialized", "notifications/unheard-of"] {
        let notification = json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": 1 } });
        let answer = post(&mut connection, &headers(&notification), &notification).await;
        assert_eq!((answer.status, answer.body.as_str()), (202, ""), "{method}");
    }
}

/// The principal and the extensions of the HTTP stack in front reach the handler.
#[tokio::test]
async fn the_stack_in_front_says_who_is_calling() {
    let tool = Tool::new("whoami", async |caller: roundtrip::Caller| {
        caller.principal.map(|name| name.to_string()).unwrap_or_default()
    });
    let http = Server::new("s", "1")
        .tool(tool)
        .into_http()
        .expect("a server")
        .principal(|parts| parts.headers.get("x-user")?.to_str().ok().map(Principal::new));
    let running = Running::start_http(http).await;
    let call = message(1, "tools/call", json!({ "name": "whoami" }));
    let mut all = headers(&call);
    all.push(("X-User".into(), "ada".into()));
    let answer = post(&mut running.connect().await, &all, &call).await;
    assert_eq!(answer.result()["content"][0]["text"], "ada");
    let anonymous = post(&mut running.connect().await, &headers(&call), &call).await;
    assert_eq!(anonymous.result()["content"][0]["text"], "");

    let wants = Tool::new("wants", async |Extension(number): Extension<u32>| number.to_string());
    let running = Running::start(Server::new("s", "1").tool(wants)).await;
    let answer = running.call("tools/call", json!({ "name": "wants" })).await;
    assert_eq!(answer.refusal().1, -32603, "nobody in front has set it");
}
