//! stdio: one message a line (transports, "stdio").

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use roundtrip::server::{Limits, Peer};
use roundtrip::stdio::serve_lines;
use roundtrip::wire::CreateMessageRequestParams;
use roundtrip::{Args, Ask, Progress, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::Instant;

use crate::support::{message, meta};

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// Both ends of a served pair of streams.
struct Pipe {
    input: WriteHalf<DuplexStream>,
    output: BufReader<ReadHalf<DuplexStream>>,
    served: JoinHandle<io::Result<()>>,
}

impl Pipe {
    fn open(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let endpoint = server.build().expect("a server");
        let served = tokio::spawn(async move {
            let (input, output) = tokio::io::split(theirs);
            serve_lines(&endpoint, &Peer::default(), input, output).await
        });
        let (output, input) = tokio::io::split(ours);
        Self { input, output: BufReader::new(output), served }
    }

    async fn send(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.expect("written");
        self.input.write_all(b"\n").await.expect("written");
    }

    async fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).await.expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(&message(id, method, params).to_string()).await;
    }
}

fn server() -> Server {
    Server::new("s", "1").tool(Tool::new("echo", async |Args(Text { text })| text))
}

/// A tool that waits, and what it waits for.
fn waiting(name: &str) -> (Tool, Arc<Notify>, Arc<Notify>) {
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (starting, held) = (Arc::clone(&started), Arc::clone(&release));
    let tool = Tool::new(name, move |progress: Progress| {
        let (started, held) = (Arc::clone(&starting), Arc::clone(&held));
        async move {
            progress.report((1, 2));
            started.notify_one();
            held.notified().await;
            progress.report((2, 2));
            "waited"
        }
    });
    (tool, started, release)
}

/// I1: one message a line and no line break within one; blank lines are passed over, and nonsense gets an error that
/// the stream survives.
#[tokio::test]
async fn one_message_a_line() {
    let mut pipe = Pipe::open(server());
    pipe.send("").await;
    pipe.send("nonsense").await;
    assert_eq!(pipe.receive().await["error"]["code"], -32700);
    pipe.request(1, "no/such", json!({})).await;
    assert_eq!(pipe.receive().await["error"]["code"], -32601);
    let text = "line one\nline two\r\n\u{2028}";
    pipe.request("a", "tools/call", json!({ "name": "echo", "arguments": { "text": text } })).await;
    let answer = pipe.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!("a"), &json!(text)));
    let mut old = message(2, "tools/list", json!({}));
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2024-11-05");
    pipe.send(&old.to_string()).await;
    assert_eq!(pipe.receive().await["error"]["code"], -32022);
    pipe.send(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/whatever"}"#).await;
    pipe.request(3, "tools/list", json!({})).await;
    assert_eq!(pipe.receive().await["id"], 3, "responses and notifications are not answered");
}

/// I1: a line past the cap gets a clear error, and the stream goes on.
#[tokio::test]
async fn an_endless_line_is_refused() {
    let mut pipe = Pipe::open(server());
    let megabyte = vec![b'x'; 1024 * 1024];
    for _ in 0..17 {
        pipe.input.write_all(&megabyte).await.expect("written");
    }
    let refused = pipe.receive().await;
    assert_eq!(refused["error"]["code"], -32600);
    assert!(refused["error"]["message"].as_str().expect("text").contains("16777216"), "{refused}");
    pipe.send("").await;
    pipe.request(1, "tools/list", json!({})).await;
    assert_eq!(pipe.receive().await["id"], 1);
}

/// I2: requests run side by side: a quick one overtakes a slow one.
#[tokio::test]
async fn requests_run_side_by_side() {
    let (tool, started, release) = waiting("wait");
    let mut pipe = Pipe::open(server().tool(tool));
    pipe.request(1, "tools/call", json!({ "name": "wait" })).await;
    started.notified().await;
    pipe.request(2, "tools/call", json!({ "name": "echo", "arguments": { "text": "quick" } })).await;
    assert_eq!(pipe.receive().await["id"], 2);
    pipe.request(1, "tools/call", json!({ "name": "wait" })).await;
    assert_eq!(pipe.receive().await["error"]["code"], -32600, "an id is used once at a time");
    release.notify_waiters();
    release.notify_one();
    assert_eq!(pipe.receive().await["result"]["content"][0]["text"], "waited");
}

/// I2: `notifications/cancelled` stops a request, and nothing more is sent for it.
#[tokio::test]
async fn a_cancelled_request_is_silent() {
    let (tool, started, release) = waiting("wait");
    let mut pipe = Pipe::open(server().tool(tool));
    let mut meta = meta();
    meta["progressToken"] = json!("t");
    pipe.request("slow", "tools/call", json!({ "name": "wait", "_meta": meta })).await;
    started.notified().await;
    assert_eq!(pipe.receive().await["method"], "notifications/progress");
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                         "params": { "requestId": "slow", "reason": "no longer wanted" } });
    pipe.send(&cancel.to_string()).await;
    pipe.send(&cancel.to_string()).await;
    pipe.request(2, "tools/list", json!({})).await;
    assert_eq!(pipe.receive().await["id"], 2);
    release.notify_waiters();
    pipe.request(3, "tools/list", json!({})).await;
    assert_eq!(pipe.receive().await["id"], 3, "not a word of the cancelled one");
}

/// I3: the end of the input ends the server, subscriptions and all, once running calls have answered.
#[tokio::test]
async fn the_end_of_input_ends_the_server() {
    let (tool, started, release) = waiting("wait");
    let mut pipe = Pipe::open(server().tool(tool));
    pipe.request("sub", "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
        .await;
    assert_eq!(pipe.receive().await["method"], "notifications/subscriptions/acknowledged");
    pipe.request(1, "tools/call", json!({ "name": "wait" })).await;
    started.notified().await;
    pipe.input.shutdown().await.expect("closed");
    release.notify_one();
    assert_eq!(pipe.receive().await["id"], 1, "what was running gets its answer");
    pipe.served.await.expect("ended").expect("in good order");
}

/// I3: a call that never finishes does not keep the server alive.
#[tokio::test(start_paused = true)]
async fn a_stuck_call_does_not_keep_the_server() {
    let (tool, started, _release) = waiting("wait");
    let mut pipe = Pipe::open(server().tool(tool));
    pipe.request(1, "tools/call", json!({ "name": "wait" })).await;
    started.notified().await;
    pipe.input.shutdown().await.expect("closed");
    pipe.served.await.expect("ended").expect("in good order");
}

/// I4: everything the server writes is a response or a notification, never a request: a tool that asks for everything gets its
/// questions to the client inside of a result.
#[tokio::test]
async fn the_server_never_asks_on_the_stream() {
    async fn asks(ask: Ask, progress: Progress) -> Result<String, ToolError> {
        progress.report(1);
        let model = CreateMessageRequestParams::text("Which?", 9);
        let (sure, page, said, roots) = tokio::try_join!(
            ask.confirm("sure", "Sure?"),
            ask.url("page", "Sign in", "https://id.example"),
            ask.sample("model", model),
            ask.roots("roots"),
        )?;
        Ok(format!("{sure} {page:?} {} {}", said.text(), roots.len()))
    }
    let mut pipe = Pipe::open(server().tool(Tool::new("asks", asks)));
    let mut meta = meta();
    meta["progressToken"] = json!("t");
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "sampling": {}, "roots": {}, "elicitation": { "form": {}, "url": {} } });
    pipe.request(1, "tools/call", json!({ "name": "asks", "_meta": meta })).await;
    pipe.request(2, "prompts/get", json!({ "name": "none" })).await;
    pipe.input.shutdown().await.expect("closed");
    let mut written = Vec::new();
    loop {
        let mut line = String::new();
        if pipe.output.read_line(&mut line).await.expect("a line") == 0 {
            break;
        }
        let message: Value = serde_json::from_str(&line).expect("JSON");
        assert!(message.get("method").is_none() || message.get("id").is_none(), "{message}");
        written.push(message);
    }
    let asked = written.iter().find(|message| message["id"] == 1).expect("a result");
    let questions = asked["result"]["inputRequests"].as_object().expect("questions");
    assert_eq!(questions.keys().collect::<Vec<_>>(), ["sure", "page", "model", "roots"], "{asked}");
    assert!(written.iter().any(|message| message["method"] == "notifications/progress"), "{written:?}");
}

/// Sends more than a pipe and the server's buffer hold, without reading any of the answers.
async fn fill(pipe: &mut Pipe) {
    let text = "x".repeat(2 * 1024 * 1024);
    for id in 1..=2 {
        pipe.request(id, "tools/call", json!({ "name": "echo", "arguments": { "text": text } })).await;
    }
}

/// I3: an output that breaks while much is waiting for it ends the server, though the input stays open.
#[tokio::test]
async fn an_output_that_breaks_ends_the_server() {
    let (input, theirs) = tokio::io::duplex(64 * 1024);
    let (output, ours) = tokio::io::duplex(64 * 1024);
    let endpoint = server().build().expect("a server");
    let served = tokio::spawn(async move { serve_lines(&endpoint, &Peer::default(), theirs, output).await });
    let (unread, input) = tokio::io::split(input);
    let (output, _unused) = tokio::io::split(ours);
    let mut pipe = Pipe { input, output: BufReader::new(unread), served };
    fill(&mut pipe).await;
    drop((output, _unused));
    let ended = tokio::time::timeout(Duration::from_secs(20), pipe.served).await;
    ended.expect("it ends").expect("no panic").expect("hanging up is no error");
}

/// I3: an output that nobody reads ends the server after a while, with an error that says so.
#[tokio::test(start_paused = true)]
async fn an_output_nobody_reads_ends_the_server() {
    let mut pipe = Pipe::open(server());
    fill(&mut pipe).await;
    let begun = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(120), &mut pipe.served).await;
    let error = ended.expect("it ends").expect("no panic").expect_err("nobody reads");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("30s"), "{error}");
    assert!(begun.elapsed() >= Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// I3: the end of the input ends the server promptly, also where nobody reads what there is to write.
#[tokio::test(start_paused = true)]
async fn the_end_of_input_ends_a_server_whose_output_nobody_reads() {
    let mut pipe = Pipe::open(server());
    fill(&mut pipe).await;
    pipe.request(3, "tools/list", json!({})).await;
    pipe.input.shutdown().await.expect("closed");
    let begun = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(120), &mut pipe.served).await;
    ended.expect("it ends").expect("no panic").expect_err("what was written got nowhere");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// I3: a reader that is slow and reads all the same gets everything, also after the end of the input.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_everything() {
    let mut pipe = Pipe::open(server());
    fill(&mut pipe).await;
    let mut all = vec![0; 64 * 1024];
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        pipe.output.read_exact(&mut all).await.expect("more");
    }
    pipe.request(3, "tools/list", json!({})).await;
    pipe.input.shutdown().await.expect("closed");
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        pipe.output.read_exact(&mut all).await.expect("more");
    }
    let mut rest = Vec::new();
    pipe.output.read_to_end(&mut rest).await.expect("the rest");
    assert!(String::from_utf8_lossy(&rest).lines().last().is_some_and(|line| line.contains("\"id\":3")));
    pipe.served.await.expect("ended").expect("in good order");
}

/// Z2: requests that arrive in one piece are answered as fast as their answers are read, and not all at once.
#[tokio::test(start_paused = true)]
async fn answers_nobody_reads_do_not_pile_up() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let large = Tool::new("large", move || {
        counter.fetch_add(1, Ordering::Relaxed);
        async { "x".repeat(1024 * 1024) }
    });
    let mut pipe = Pipe::open(Server::new("s", "1").tool(large));
    let requests: Vec<String> =
        (0..100).map(|id| message(id, "tools/call", json!({ "name": "large" })).to_string()).collect();
    pipe.send(&requests.join("\n")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = runs.load(Ordering::Relaxed);
    assert!((1..=5).contains(&begun), "{begun} answers wait");
    for id in 0..100 {
        assert_eq!(pipe.receive().await["id"], id);
    }
}

/// I2: a request whose id is in use is refused before anything of it runs.
#[tokio::test]
async fn a_request_of_an_id_in_use_is_not_run() {
    let (tool, started, release) = waiting("wait");
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let pay = Tool::new("pay", move || {
        counter.fetch_add(1, Ordering::Relaxed);
        async { "paid" }
    });
    let mut pipe = Pipe::open(server().tool(tool).tool(pay));
    pipe.request(1, "tools/call", json!({ "name": "wait" })).await;
    started.notified().await;
    pipe.request(1, "tools/call", json!({ "name": "pay" })).await;
    assert_eq!(pipe.receive().await["error"]["code"], -32600);
    assert_eq!(runs.load(Ordering::Relaxed), 0, "nothing was paid");
    release.notify_one();
    assert_eq!(pipe.receive().await["result"]["content"][0]["text"], "waited");
    pipe.request(1, "tools/call", json!({ "name": "pay" })).await;
    assert_eq!(pipe.receive().await["result"]["content"][0]["text"], "paid", "the id is free again");
}

/// A tool that blocks its thread until it is released, the moment it is polled for the first time or the second.
fn blocking(name: &str, at_once: bool) -> (Tool, Arc<Notify>, mpsc::Sender<()>) {
    let started = Arc::new(Notify::new());
    let (release, released) = mpsc::channel();
    let (starting, released) = (Arc::clone(&started), Arc::new(Mutex::new(released)));
    let tool = Tool::new(name, move || {
        let (started, released) = (Arc::clone(&starting), Arc::clone(&released));
        async move {
            if !at_once {
                tokio::task::yield_now().await;
            }
            started.notify_one();
            let patience = Duration::from_secs(20);
            block_in_place(|| released.lock().expect("one at a time").recv_timeout(patience))
                .expect("released in time");
            "blocked"
        }
    });
    (tool, started, release)
}

/// N2: progress comes before the result of its call, also where the call goes on while the lines after it are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn progress_never_follows_the_result() {
    let (block, _, release) = blocking("block", true);
    let quick = Tool::new("quick", async |progress: Progress| {
        progress.report((1, 2));
        // Twice: it is polled once more where it has something to say.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        progress.report((2, 2));
        "quick"
    });
    let mut pipe = Pipe::open(Server::new("s", "1").tool(block).tool(quick));
    let mut meta = meta();
    meta["progressToken"] = json!("t");
    let first = message(1, "tools/call", json!({ "name": "quick", "_meta": meta }));
    let second = message(2, "tools/call", json!({ "name": "block" }));
    // In one piece: the second keeps the reading of lines from going on while the first one runs to its end.
    pipe.input.write_all(format!("{first}\n{second}\n").as_bytes()).await.expect("written");
    assert_eq!(pipe.receive().await["params"]["progress"], 1);
    assert_eq!(pipe.receive().await["params"]["progress"], 2);
    assert_eq!(pipe.receive().await["id"], 1);
    release.send(()).expect("it waits");
    assert_eq!(pipe.receive().await["id"], 2);
}

/// I2: a call that was cancelled and cannot stop at once does not answer a later one of the same id.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancelled_call_does_not_answer_for_the_next_of_its_id() {
    let (block, blocked, unblock) = blocking("block", false);
    let (wait, waits, release) = waiting("wait");
    let mut pipe = Pipe::open(server().tool(block).tool(wait));
    pipe.request(1, "tools/call", json!({ "name": "block" })).await;
    blocked.notified().await;
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    pipe.send(&cancel.to_string()).await;
    pipe.request(1, "tools/call", json!({ "name": "wait" })).await;
    waits.notified().await;
    // The next request shows that the second call of this id is registered.
    pipe.request(2, "tools/list", json!({})).await;
    assert_eq!(pipe.receive().await["id"], 2);
    unblock.send(()).expect("it waits");
    for id in 3..100 {
        pipe.request(id, "tools/list", json!({})).await;
        assert_eq!(pipe.receive().await["id"], id, "not a word of the cancelled one");
    }
    release.notify_one();
    let answer = pipe.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(1), &json!("waited")));
}

/// I2: a call that blocks its thread from its first poll on does not hold up the others. Here it waits for one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_that_blocks_does_not_hold_up_the_others() {
    let (release, released) = mpsc::channel();
    let released = Arc::new(Mutex::new(released));
    let block = Tool::new("block", move || {
        let released = Arc::clone(&released);
        async move {
            let released = released.lock().expect("one at a time");
            released.recv_timeout(Duration::from_secs(20)).expect("released by the other call");
            "blocked"
        }
    });
    let release = Tool::new("release", move || {
        release.send(()).expect("it waits");
        async { "released" }
    });
    let mut pipe = Pipe::open(Server::new("s", "1").tool(block).tool(release));
    let first = message(1, "tools/call", json!({ "name": "block" }));
    let second = message(2, "tools/call", json!({ "name": "release" }));
    pipe.send(&format!("{first}\n{second}")).await;
    let mut answers = [pipe.receive().await, pipe.receive().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let texts = answers.map(|answer| answer["result"]["content"][0]["text"].clone());
    assert_eq!(texts, ["blocked", "released"]);
}

/// Z3: quick calls that arrive in one piece are not too many calls at once, however many they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn quick_calls_in_one_piece_are_not_refused() {
    let mut limits = Limits::default();
    limits.concurrent_calls = 2;
    let (tool, started, release) = waiting("wait");
    let mut pipe = Pipe::open(server().limits(limits).tool(tool));
    pipe.request("slow", "tools/call", json!({ "name": "wait" })).await;
    started.notified().await;
    let quick = |id| message(id, "tools/call", json!({ "name": "echo", "arguments": { "text": "quick" } }));
    let requests: Vec<String> = (0..200).map(|id| quick(id).to_string()).collect();
    pipe.send(&requests.join("\n")).await;
    let mut answered = HashSet::new();
    for _ in 0..200 {
        let answer = pipe.receive().await;
        assert_eq!(answer["result"]["content"][0]["text"], "quick", "{answer}");
        answered.insert(answer["id"].as_u64());
    }
    assert_eq!(answered.len(), 200);
    release.notify_one();
    assert_eq!(pipe.receive().await["id"], "slow");
}

/// Z2: calls that run side by side do not pile up either: they begin as their answers are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_of_calls_side_by_side_do_not_pile_up() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let large = Tool::new("large", move || {
        counter.fetch_add(1, Ordering::Relaxed);
        async { "x".repeat(256 * 1024) }
    });
    let mut pipe = Pipe::open(Server::new("s", "1").tool(large));
    let requests: Vec<String> =
        (0..200).map(|id| message(id, "tools/call", json!({ "name": "large" })).to_string()).collect();
    pipe.send(&requests.join("\n")).await;
    for answered in 1..=200 {
        pipe.receive().await;
        let waiting = runs.load(Ordering::Relaxed) - answered;
        // Four fill the queue, and 64 may have begun before it was full; the same again is being written.
        assert!(waiting <= 2 * (4 + 64), "{waiting} wait, {answered} were read");
    }
}
