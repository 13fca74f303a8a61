//! Results in parts: the extension `dev.roundtrip/stream`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::http::HttpLimits;
use roundtrip::server::{Limits, Peer};
use roundtrip::testing::{ReplayError, SentParts, play, replay};
use roundtrip::wire::ContentBlock;
use roundtrip::{Ask, MemoryLedger, Parts, Prompt, Server, State, Tool, ToolError};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::asking::yes;
use crate::peers::Pipe;
use crate::support::{Call, Running, Turn, everything, headers, message, messages_of, meta};

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(20);
const PART: &str = "notifications/dev.roundtrip/part";

async fn story(mut out: Parts) -> Parts {
    out.text("Once ").await;
    out.text("upon a time").await;
    out.push(ContentBlock::image(b"hi", "image/png")).await;
    out.text("The end.").await;
    out
}

/// Sends parts before and behind each of its questions.
async fn chapters(ask: Ask, mut out: Parts) -> Result<Parts, ToolError> {
    out.text("one ").await;
    out.text("two ").await;
    ask.confirm("a", "A?").await?;
    out.text("three ").await;
    ask.confirm("b", "B?").await?;
    out.text("four").await;
    Ok(out)
}

fn server() -> Server {
    Server::new("s", "1").tool(Tool::new("story", story)).tool(Tool::new("chapters", chapters))
}

/// The `_meta` of a client that takes parts.
fn taking_parts() -> Value {
    let mut capabilities = everything();
    capabilities["extensions"] = json!({ "dev.roundtrip/stream": {} });
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    meta
}

/// A call that wants its result in parts.
fn streamed(id: u64, tool: &str) -> Value {
    message(id, "tools/call", json!({ "name": tool, "stream": {}, "_meta": taking_parts() }))
}

/// The numbers and texts of the parts among messages that are all of request `id`.
fn parts(messages: &[Value], id: u64) -> Vec<(u64, String)> {
    let parts = messages.iter().filter(|message| message["method"] == PART).map(|part| &part["params"]);
    let parts = parts.map(|part| {
        assert_eq!(part["requestId"], id, "{part}");
        let content = &part["content"];
        let text = content["text"].as_str().or(content["mimeType"].as_str()).expect("text or an image");
        (part["part"].as_u64().expect("a number"), text.to_owned())
    });
    parts.collect()
}

fn numbered(parts: &[&str]) -> Vec<(u64, String)> {
    (0..).zip(parts.iter().map(|part| (*part).to_owned())).collect()
}

/// Every message of one request over HTTP, the response last.
async fn over_http(running: &Running, request: &Value) -> Vec<Value> {
    let mut connection = running.connect().await;
    let answer = connection.post(&headers(request), request.to_string().as_bytes()).await;
    match answer.header("content-type") {
        Some("text/event-stream") => answer.events(),
        _ => vec![answer.json()],
    }
}

/// Every message of one request on a pipe, the response last.
async fn on_pipe(pipe: &mut Pipe, request: &Value) -> Vec<Value> {
    pipe.send(request).await;
    let mut messages = vec![pipe.receive().await];
    while messages.last().is_some_and(|last| last.get("method").is_some()) {
        messages.push(pipe.receive().await);
    }
    messages
}

/// G1, G2: a request that asks for parts gets them before the whole result; every other gets the same result alone. Over HTTP
/// and on a pipe.
#[tokio::test]
async fn parts_come_before_the_same_result() {
    let running = Running::start(server()).await;
    let mut pipe = Pipe::open(server());
    let content = json!([
        { "type": "text", "text": "Once upon a time" },
        { "type": "image", "data": "aGk=", "mimeType": "image/png" },
        { "type": "text", "text": "The end." },
    ]);
    let sent = numbered(&["Once ", "upon a time", "image/png", "The end."]);
    let request = streamed(1, "story");
    for messages in [over_http(&running, &request).await, on_pipe(&mut pipe, &request).await] {
        assert_eq!(parts(&messages, 1), sent);
        assert_eq!(messages.last().expect("a response")["result"]["content"], content);
    }
    let undeclared = message(2, "tools/call", json!({ "name": "story", "stream": {} }));
    let unasked = message(2, "tools/call", json!({ "name": "story", "_meta": taking_parts() }));
    let unread = message(2, "tools/call", json!({ "name": "story", "stream": true }));
    for request in [undeclared, unasked, unread] {
        for messages in [over_http(&running, &request).await, on_pipe(&mut pipe, &request).await] {
            let [only] = &messages[..] else { panic!("{messages:?}") };
            assert_eq!(only["result"]["content"], content);
        }
    }
}

/// G1: with `stream_undeclared` the request of the note among the founding documents is enough: `stream: {}` from a client that
/// declares nothing, over HTTP and on a pipe. Who does not ask is sent none.
#[tokio::test]
async fn parts_for_clients_that_declare_nothing() {
    let running = Running::start(server().stream_undeclared()).await;
    let mut pipe = Pipe::open(server().stream_undeclared());
    let sent = numbered(&["Once ", "upon a time", "image/png", "The end."]);
    let request = message(1, "tools/call", json!({ "name": "story", "stream": {} }));
    let unasked = message(1, "tools/call", json!({ "name": "story" }));
    for (request, sent) in [(request, sent), (unasked, Vec::new())] {
        for messages in [over_http(&running, &request).await, on_pipe(&mut pipe, &request).await] {
            assert_eq!(parts(&messages, 1), sent);
            let whole = &messages.last().expect("a response")["result"]["content"];
            assert_eq!(whole[0]["text"], "Once upon a time");
        }
    }
    let wrong = running.call("tools/call", json!({ "name": "story", "stream": true })).await;
    assert_eq!(wrong.refusal().1, -32602);
}

/// G1: `stream` is an object; a server with a tool that sends parts declares the extension; a client that takes JSON alone, and
/// one of a handshake era, are sent none.
#[tokio::test]
async fn parts_are_negotiated() {
    let running = Running::start(server()).await;
    for wrong in [json!(true), json!("x"), json!([]), json!(1)] {
        let params = json!({ "name": "story", "stream": wrong, "_meta": taking_parts() });
        let answer = running.call("tools/call", params).await;
        assert_eq!(answer.refusal().1, -32602);
        assert!(answer.error_message().contains("params.stream"), "{answer:?}");
    }
    let discovered = running.call("server/discover", json!({})).await.result();
    assert_eq!(discovered["capabilities"]["extensions"]["dev.roundtrip/stream"], json!({}));
    let plain = Running::start(Server::new("s", "1").tool(Tool::new("t", async || "ok"))).await;
    let discovered = plain.call("server/discover", json!({})).await.result();
    assert_eq!(discovered["capabilities"].get("extensions"), None);

    let request = streamed(1, "story");
    let only_json = crate::support::changed(&request, "Accept", Some("application/json"));
    let answer = running.connect().await.post(&only_json, request.to_string().as_bytes()).await;
    assert_eq!(answer.result()["content"][0]["text"], "Once upon a time");
}

/// G1: a session of a handshake era has no parts.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn older_clients_are_sent_no_parts() {
    let capabilities = json!({ "extensions": { "dev.roundtrip/stream": {} } });
    let mut pipe = Pipe::agreed(server(), "2025-11-25", &capabilities).await;
    let call = json!({
        "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": { "name": "story", "stream": {} },
    });
    let answer = pipe.call(&call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Once upon a time", "{answer}");
}

/// G3: parts are numbered over the rounds of a flow, and a round sends those alone that no round before it has sent. A round
/// that is sent again sends its own again.
#[tokio::test]
async fn a_round_sends_new_parts() {
    let endpoint = server().build().expect("a server");
    let call = |state: Option<&str>, answers: Option<Value>| {
        let mut request = Call::tool("chapters").request(state, answers);
        request["params"]["stream"] = json!({});
        request["params"]["_meta"] = taking_parts();
        request
    };
    let peer = Peer::default();
    let first = messages_of(&endpoint, &peer, &call(None, None)).await;
    assert_eq!(parts(&first, 7), numbered(&["one ", "two "]));
    let turn = Turn(first.last().expect("a response").clone());
    let retry = call(turn.state(), Some(yes("a")));
    for _ in 0..2 {
        let second = messages_of(&endpoint, &peer, &retry).await;
        assert_eq!(parts(&second, 7), [(2, "three ".to_owned())]);
    }
    let second = messages_of(&endpoint, &peer, &retry).await;
    let turn = Turn(second.last().expect("a response").clone());
    let third = messages_of(&endpoint, &peer, &call(turn.state(), Some(yes("b")))).await;
    assert_eq!(parts(&third, 7), [(3, "four".to_owned())]);
    assert_eq!(Turn(third.last().expect("a response").clone()).text(), "one two three four");
    // A question that is declined ends the call, and what was sent stays as it is.
    let declined = json!({ "a": { "action": "decline" } });
    let turn = Turn(first.last().expect("a response").clone());
    let ended = messages_of(&endpoint, &peer, &call(turn.state(), Some(declined))).await;
    assert!(parts(&ended, 7).is_empty());
    assert!(Turn(ended.last().expect("a response").clone()).failure().contains("decline"));
}

/// G3: a client that begins to take parts in a later round is sent all of them.
#[tokio::test]
async fn parts_that_were_not_sent_are_not_left_out() {
    let endpoint = server().build().expect("a server");
    let silent = Call::tool("chapters").begin(&endpoint).await;
    let mut request = Call::tool("chapters").request(silent.state(), Some(yes("a")));
    request["params"]["stream"] = json!({});
    request["params"]["_meta"] = taking_parts();
    let messages = messages_of(&endpoint, &Peer::default(), &request).await;
    assert_eq!(parts(&messages, 7), numbered(&["one ", "two ", "three "]));
}

/// G6: a round that is answered from the ledger has the whole result, and no parts.
#[tokio::test]
async fn a_recorded_round_is_answered_without_parts() {
    async fn once(ask: Ask, mut out: Parts) -> Result<Parts, ToolError> {
        ask.confirm("a", "A?").await?;
        out.text("done").await;
        Ok(out)
    }
    let server = Server::new("s", "1").ledger(MemoryLedger::new()).tool(Tool::new("once", once));
    let endpoint = server.build().expect("a server");
    let asked = Call::tool("once").begin(&endpoint).await;
    let mut request = Call::tool("once").request(asked.state(), Some(yes("a")));
    request["params"]["stream"] = json!({});
    request["params"]["_meta"] = taking_parts();
    let peer = Peer::default();
    let first = messages_of(&endpoint, &peer, &request).await;
    assert_eq!(parts(&first, 7), numbered(&["done"]));
    let again = messages_of(&endpoint, &peer, &request).await;
    assert_eq!(again, first[1..], "the result, and nothing before it");
}

/// A part is on its way before the handler goes on, even if that lets nothing else run on its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_handler_holds_no_part_back() {
    let (seen, wait) = std::sync::mpsc::channel();
    let wait = Arc::new(std::sync::Mutex::new(wait));
    let busy = move |mut out: Parts| {
        let wait = Arc::clone(&wait);
        async move {
            out.text("first").await;
            let seen = wait.lock().unwrap().recv_timeout(PATIENCE);
            out.text(if seen.is_ok() { " seen" } else { " held back" }).await;
            out
        }
    };
    let running = Running::start(Server::new("s", "1").tool(Tool::new("busy", busy))).await;
    let mut connection = running.connect().await;
    let request = streamed(1, "busy");
    connection.send("POST", &headers(&request), request.to_string().as_bytes()).await;
    connection.head().await;
    assert_eq!(connection.event().await.expect("a part")["params"]["content"]["text"], "first");
    seen.send(()).unwrap();
    let rest = connection.chunk().await.expect("the rest");
    assert!(rest.contains(r#""text":" seen""#), "{rest}");
}

/// Sends parts of 1 KiB as long as it is let, and counts them.
async fn endless(State(sent): State<Arc<AtomicUsize>>, mut out: Parts) -> Parts {
    let part = "x".repeat(1024);
    loop {
        out.text(&part).await;
        if out.content()[0].as_text().is_some_and(|text| text.len() >= 64 * 1024 * 1024) {
            return out;
        }
        sent.fetch_add(1, Ordering::SeqCst);
    }
}

fn flood(dropped: &Arc<Notify>, sent: &Arc<AtomicUsize>) -> Server {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let dropped = Arc::clone(dropped);
    let mut limits = Limits::default();
    limits.streamed_bytes = usize::MAX;
    let tool = move |state: State<Arc<AtomicUsize>>, out: Parts| {
        let guard = Dropped(Arc::clone(&dropped));
        async move {
            let _guard = guard;
            endless(state, out).await
        }
    };
    Server::new("s", "1").state(Arc::clone(sent)).limits(limits).tool(Tool::new("endless", tool))
}

/// Waits until a count no longer grows; returns it.
async fn settled(count: &AtomicUsize) -> usize {
    let mut last = usize::MAX;
    timeout(PATIENCE, async {
        loop {
            let now = count.load(Ordering::SeqCst);
            if now > 0 && now == last {
                return now;
            }
            last = now;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .expect("it comes to a halt")
}

/// G4: a client over HTTP that does not read holds up the handler, which ends with the connection.
#[tokio::test]
async fn a_slow_reader_slows_the_handler() {
    let (dropped, sent) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let mut limits = HttpLimits::default();
    limits.write_timeout = Duration::from_secs(2);
    let running = Running::start_with(flood(&dropped, &sent), limits).await;
    let mut silent = running.connect().await;
    let request = streamed(1, "endless");
    silent.send("POST", &headers(&request), request.to_string().as_bytes()).await;
    let kept = settled(&sent).await;
    assert!(kept < 32 * 1024, "{kept} parts of 1 KiB were sent, and none was read");
    timeout(PATIENCE, dropped.notified()).await.expect("the handler ends with the connection");
}

/// G4: on a pipe too. No part is left out once the client reads.
#[tokio::test]
async fn a_slow_pipe_slows_the_handler() {
    let (dropped, sent) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let mut pipe = Pipe::open(flood(&dropped, &sent));
    pipe.send(&streamed(1, "endless")).await;
    let kept = settled(&sent).await;
    assert!(kept < 8 * 1024, "{kept} parts of 1 KiB were sent, and none was read");
    for number in 0..2 * kept {
        assert_eq!(pipe.receive().await["params"]["part"], number);
    }
    assert!(sent.load(Ordering::SeqCst) > kept, "it goes on");
}

/// G2: parts may be many and small, or one may be huge; past a bound the call fails, and the parts beyond it are not kept.
#[tokio::test]
async fn a_result_in_parts_is_bounded() {
    async fn tiny(mut out: Parts) -> Parts {
        for _ in 0..100_000 {
            out.text("x").await;
        }
        out
    }
    async fn huge(mut out: Parts) -> Parts {
        out.text("x".repeat(2 * 1024 * 1024)).await;
        out.text("y").await;
        assert!(out.content().is_empty(), "nothing is kept behind what did not fit");
        out
    }
    let mut limits = Limits::default();
    limits.streamed_bytes = 1024 * 1024;
    let server = Server::new("s", "1").limits(limits);
    let server = server.tool(Tool::new("tiny", tiny)).tool(Tool::new("huge", huge));
    let endpoint = server.build().expect("a server");
    let peer = Peer::default();
    let messages = messages_of(&endpoint, &peer, &streamed(1, "tiny")).await;
    let sent = parts(&messages, 1);
    assert_eq!((sent.len(), sent.last().map(|part| part.0)), (100_000, Some(99_999)));
    let whole = Turn(messages.last().expect("a response").clone());
    assert_eq!(whole.text().len(), 100_000);
    let messages = messages_of(&endpoint, &peer, &streamed(1, "huge")).await;
    let [failed] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(failed["error"]["code"], -32603);
}

/// Z1: a panic behind parts is the call's internal error, and nothing is sent after it.
#[tokio::test]
async fn a_panic_behind_parts_ends_the_call() {
    async fn falls(mut out: Parts) -> Parts {
        out.text("so far").await;
        panic!("no further")
    }
    let endpoint = Server::new("s", "1").tool(Tool::new("falls", falls)).build().expect("a server");
    let messages = messages_of(&endpoint, &Peer::default(), &streamed(1, "falls")).await;
    assert_eq!(parts(&messages, 1), numbered(&["so far"]));
    assert_eq!(messages.last().expect("a response")["error"]["code"], -32603);
}

/// A handler that could not send its parts is found when the server is put together.
#[test]
fn parts_are_of_tools_alone() {
    let problem = |server: Server| server.build().expect_err("a mistake").to_string();
    let prompt = Prompt::new("p", async |_: Parts| "x");
    let said = problem(Server::new("s", "1").prompt(prompt));
    assert!(said.contains("`Parts`, which tools alone have"), "{said}");
    let twice = Tool::new("t", async |_: Parts, out: Parts| out);
    let said = problem(Server::new("s", "1").tool(twice));
    assert!(said.contains("takes `Parts` twice"), "{said}");
}

/// Parts of calls that run side by side on one pipe are told apart by the request's id.
#[tokio::test]
async fn parallel_calls_are_told_apart() {
    let mut pipe = Pipe::open(server());
    for id in 1..=4 {
        pipe.send(&streamed(id, "story")).await;
    }
    let (mut messages, mut ended) = (Vec::new(), 0);
    while ended < 4 {
        let message = pipe.receive().await;
        ended += usize::from(message.get("method").is_none());
        messages.push(message);
    }
    for id in 1..=4 {
        let own = |message: &&Value| message["params"]["requestId"] == id || message["id"] == id;
        let own: Vec<Value> = messages.iter().filter(own).cloned().collect();
        assert_eq!(parts(&own, id), numbered(&["Once ", "upon a time", "image/png", "The end."]));
        assert!(own.last().expect("a response").get("result").is_some(), "parts come before the result");
    }
}

/// A script sees the parts; the replay harness finds parts that are not the result: a handler that sends something else when it
/// runs again, and one that returns something else.
#[tokio::test]
async fn the_harness_compares_parts_with_the_result() {
    async fn moody(
        ask: Ask,
        State(runs): State<Arc<AtomicUsize>>,
        mut out: Parts,
    ) -> Result<Parts, ToolError> {
        out.text(format!("run {} ", runs.fetch_add(1, Ordering::SeqCst))).await;
        ask.confirm("a", "A?").await?;
        out.text("end").await;
        Ok(out)
    }
    async fn other(mut out: Parts) -> String {
        out.text("this").await;
        "that".to_owned()
    }
    let sent = SentParts::new();
    let confirm = json!({ "confirm": true });
    let call = replay(server()).tool("chapters", json!({})).accept("a", &confirm).accept("b", &confirm);
    call.parts(&sent).await.expect("a handler that sends the same each time");
    assert_eq!(sent.texts(), ["one ", "two ", "three ", "four"]);
    assert_eq!(sent.all().len(), 4);

    let moody = Server::new("s", "1").state(Arc::new(AtomicUsize::new(0))).tool(Tool::new("moody", moody));
    let error = play(moody).tool("moody", json!({})).accept("a", &confirm).await.expect_err("other parts");
    assert!(matches!(&error, ReplayError::ChangedParts { place, .. } if place == "/0/text"), "{error}");
    assert!(error.to_string().contains("run 0") && error.to_string().contains("run 1"), "{error}");
    let other = Server::new("s", "1").tool(Tool::new("other", other));
    let error = replay(other).tool("other", json!({})).await.expect_err("another result");
    assert!(matches!(error, ReplayError::ChangedParts { .. }), "{error}");
}
