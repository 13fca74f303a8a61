//! stdio: one message a line (transports, "stdio").

use std::sync::Arc;

use roundtrip::server::Peer;
use roundtrip::stdio::serve_lines;
use roundtrip::{Args, Progress, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::support::{message, meta};

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// Both ends of a served pair of streams.
struct Pipe {
    input: WriteHalf<DuplexStream>,
    output: BufReader<ReadHalf<DuplexStream>>,
    served: JoinHandle<std::io::Result<()>>,
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

/// I4: everything the server writes is a response or a notification, never a request.
#[tokio::test]
async fn the_server_never_asks_on_the_stream() {
    let (tool, _, release) = waiting("wait");
    let mut pipe = Pipe::open(server().tool(tool));
    release.notify_one();
    let mut meta = meta();
    meta["progressToken"] = json!("t");
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "sampling": {}, "roots": {}, "elicitation": {} });
    pipe.request(1, "tools/call", json!({ "name": "wait", "_meta": meta })).await;
    pipe.request(2, "prompts/get", json!({ "name": "none" })).await;
    pipe.input.shutdown().await.expect("closed");
    let mut lines = 0;
    loop {
        let mut line = String::new();
        if pipe.output.read_line(&mut line).await.expect("a line") == 0 {
            break;
        }
        let message: Value = serde_json::from_str(&line).expect("JSON");
        assert!(message.get("method").is_none() || message.get("id").is_none(), "{message}");
        lines += 1;
    }
    assert!(lines >= 4, "{lines}");
}
