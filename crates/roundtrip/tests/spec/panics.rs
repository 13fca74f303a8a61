//! Panics of user code: each costs one call.

use std::future::{Ready, ready};
use std::task::{Context, Waker};

use roundtrip::seal::{BoxFuture, Codec, CodecError, Sealer};
use roundtrip::server::{CallInfo, Next, Partial, Peer};
use roundtrip::stdio::serve_lines;
use roundtrip::wire::Message;
use roundtrip::{Args, Ask, Principal, Prompt, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{Running, changed, headers, message};

/// Z1: a panicking handler costs its own call an internal error, and neither its connection nor anybody else.
#[tokio::test]
async fn a_panic_costs_one_call() {
    let server = Server::new("s", "1")
        .tool(Tool::new("at_once", async || -> String { panic!("boom") }))
        .tool(Tool::new("later", async || -> String {
            tokio::task::yield_now().await;
            panic!("boom")
        }))
        .tool(Tool::new("while_starting", || -> Ready<String> { panic!("boom") }))
        .tool(Tool::new("fine", async || "fine"));
    let running = Running::start(server).await;
    let mut connection = running.connect().await;
    for name in ["at_once", "later", "while_starting"] {
        let answer = connection.request("tools/call", json!({ "name": name })).await;
        assert_eq!(answer.refusal().1, -32603, "{name}");
        assert!(!answer.body.contains("boom"), "what went wrong is for the log");
    }
    assert_eq!(connection.request("tools/call", json!({ "name": "fine" })).await.status, 200);
}

/// A codec that takes the length of what it opens for granted.
struct Careless;

impl Codec for Careless {
    fn seal<'a>(&'a self, plain: &'a [u8], _: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, CodecError>> {
        Box::pin(ready(Ok([&[0; 12], plain].concat())))
    }

    fn open<'a>(&'a self, sealed: &'a [u8], _: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, CodecError>> {
        let plain = sealed[12..].to_vec();
        Box::pin(ready(Ok(plain)))
    }
}

/// Panics before there is anything to poll, in every piece of user code that a server calls.
fn careless() -> Server {
    let boom = |_: Partial| -> Ready<Vec<String>> { panic!("boom") };
    Server::new("s", "1")
        .tool(Tool::new("fine", async || "fine"))
        .tool(Tool::new("asks", async |ask: Ask| ask.confirm("sure", "?").await.map(|sure| sure.to_string())))
        .prompt(Prompt::new("greet", async |Args(Greet { .. })| "hello").complete("name", boom))
        .seal(Sealer::with_codec(Careless))
        .around(|call: CallInfo, next: Next| {
            assert_ne!(call.target.as_deref(), Some("app://hook"), "boom");
            next.run()
        })
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    #[expect(dead_code, reason = "it only has to be there")]
    name: String,
}

/// Requests that make user code panic before it is polled.
fn careless_requests() -> Vec<Value> {
    let argument = json!({ "name": "name", "value": "" });
    vec![
        message(
            1,
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": argument }),
        ),
        message(2, "resources/read", json!({ "uri": "app://hook" })),
        // A token of the codec's, cut short: its version byte alone.
        message(3, "tools/call", json!({ "name": "asks", "requestState": "Ag" })),
    ]
}

/// Z1: a completer, a hook or a codec that panics when it is called costs one call on HTTP, and the connection goes on.
#[tokio::test]
async fn a_panic_before_the_first_poll_costs_one_call_on_http() {
    let running = Running::start(careless()).await;
    let mut connection = running.connect().await;
    for request in careless_requests() {
        let answer = connection.post(&headers(&request), request.to_string().as_bytes()).await;
        assert_eq!(answer.refusal().1, -32603, "{request}");
    }
    assert_eq!(connection.request("tools/call", json!({ "name": "fine" })).await.status, 200);
}

/// Z1: and on stdio the server goes on.
#[tokio::test]
async fn a_panic_before_the_first_poll_does_not_end_a_stdio_server() {
    let endpoint = careless().build().expect("a server");
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(server);
    let serving = tokio::spawn(async move { serve_lines(&endpoint, &Peer::default(), input, output).await });
    let fine = message(4, "tools/call", json!({ "name": "fine" }));
    let mut lines = BufReader::new(&mut client);
    for request in careless_requests().into_iter().chain([fine]) {
        lines.get_mut().write_all(format!("{request}\n").as_bytes()).await.expect("written");
        let mut line = String::new();
        lines.read_line(&mut line).await.expect("a line");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["id"], request["id"], "{answer}");
        assert_eq!(answer["error"]["code"] == -32603, request["id"] != 4, "{answer}");
    }
    drop(client);
    serving.await.expect("no panic").expect("served");
}

/// Z1: a `principal` function that panics costs the request a 500, in both eras, and is never taken for nobody.
#[tokio::test]
async fn a_panicking_principal_costs_one_request() {
    let http = Server::new("s", "1").tool(Tool::new("fine", async || "fine")).into_http().expect("a server");
    let http = http.principal(|parts| {
        assert!(!parts.headers.contains_key("x-boom"), "boom");
        Some(Principal::new("ada"))
    });
    let running = Running::start_http(http).await;
    let mut connection = running.connect().await;
    let call = message(1, "tools/call", json!({ "name": "fine" }));
    let boom = changed(&call, "x-boom", Some("1"));
    let answer = connection.post(&boom, call.to_string().as_bytes()).await;
    assert_eq!(answer.refusal(), (500, -32603));
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "old", "version": "1" },
        },
    });
    let old = ["Content-Type", "Accept", "x-boom"]
        .into_iter()
        .zip(["application/json", "application/json, text/event-stream", "1"])
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect::<Vec<_>>();
    let answer = connection.post(&old, initialize.to_string().as_bytes()).await;
    assert_eq!(answer.refusal(), (500, -32603));
    assert_eq!(connection.post(&headers(&call), call.to_string().as_bytes()).await.status, 200);
}

/// Z1: a handler whose destructor panics when its call is cancelled costs that call alone.
#[tokio::test]
async fn a_panic_while_a_call_is_cancelled_goes_no_further() {
    struct Explosive;
    impl Drop for Explosive {
        fn drop(&mut self) {
            panic!("boom");
        }
    }
    async fn wait() -> &'static str {
        let _explosive = Explosive;
        std::future::pending::<()>().await;
        "never"
    }
    let endpoint = Server::new("s", "1").tool(Tool::new("wait", wait)).build().expect("a server");
    let text = message(1, "tools/call", json!({ "name": "wait" })).to_string();
    let Ok(Message::Request(request)) = Message::decode(text.as_bytes()) else { panic!("a request") };
    let decoded = endpoint.decode(&request).expect("a call");
    let mut call = endpoint.begin(request.id, &decoded, &Peer::default());
    assert!(call.poll_event(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(call);
}
