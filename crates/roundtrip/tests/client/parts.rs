//! Results in parts.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_core::Stream;
use roundtrip::client::{PeerMisbehaved, Resend};
use roundtrip::{Ask, Client, Error, FormRequest, Parts, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fixture::serve;
use crate::peer::{events, next, peer};

const CHILD: &str = "ROUNDTRIP_TEST_CHILD";

/// Sends its result in parts, with a question between them.
async fn story(ask: Ask, mut out: Parts) -> Result<Parts, ToolError> {
    out.text("Once ").await;
    out.text("upon ").await;
    ask.confirm("go_on", "Go on?").await?;
    out.text("a ").await;
    out.text("time").await;
    Ok(out)
}

/// More parts than a mailbox of notifications has room for.
async fn many(mut out: Parts) -> Parts {
    for number in 0..5_000 {
        out.text(format!("{number} ")).await;
    }
    out
}

fn server() -> Server {
    Server::new("parts", "1").tool(Tool::new("story", story)).tool(Tool::new("many", many))
}

/// Not a test of its own: the server that another one starts.
#[tokio::test]
async fn serves_parts_when_started_as_a_child() {
    if std::env::var_os(CHILD).is_some() {
        server().serve_stdio().await.expect("served to the end");
    }
}

fn consenting(client: Client) -> Client {
    client.on_form(async |form: FormRequest| form.accept(json!({ "confirm": true })))
}

/// Plays both tools, and returns the texts of the parts of the first, and the number of those of the second.
async fn played(client: &Client) -> (Vec<String>, usize) {
    let mut parts = client.call_tool("story", ()).parts();
    let mut texts = Vec::new();
    while let Some(part) = parts.next().await {
        texts.push(part.as_text().expect("text").to_owned());
    }
    let whole = parts.result().await.expect("a result");
    assert_eq!(whole.text(), texts.concat(), "the parts make up the result");
    let (mut parts, mut count) = (client.call_tool("many", ()).parts(), 0);
    while let Some(part) = poll_fn(|cx| Pin::new(&mut parts).poll_next(cx)).await {
        assert_eq!(part.as_text().expect("text"), format!("{count} "));
        count += 1;
    }
    parts.result().await.expect("a result");
    (texts, count)
}

/// G2, G3: over HTTP and on a pipe, parts come as a stream, through rounds, each once and in order; then the whole result.
#[tokio::test]
async fn parts_are_a_stream() {
    let (client, _stop) = serve(server()).await;
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command
        .args(["--quiet", "--nocapture", "--exact", "parts::serves_parts_when_started_as_a_child"])
        .env(CHILD, "1");
    for client in [consenting(client), consenting(Client::stdio(command))] {
        let (texts, count) = played(&client).await;
        assert_eq!(texts, ["Once ", "upon ", "a ", "time"]);
        assert_eq!(count, 5_000);
    }
}

/// G1: a call that does not ask for parts does not declare the extension, and is sent none.
#[tokio::test]
async fn parts_are_asked_for() {
    let (client, mut seen) = peer(|_, request| request.result(&json!({ "content": [] }))).await;
    client.call_tool("x", ()).await.expect("a result");
    let plain = next(&mut seen).await.body;
    let capabilities =
        |body: &Value| body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
    assert_eq!(plain["params"].get("stream"), None);
    assert_eq!(capabilities(&plain)["extensions"].get("dev.roundtrip/stream"), None);
    client.call_tool("x", ()).on_part(|_| panic!("there are none")).await.expect("a result");
    let asking = next(&mut seen).await.body;
    assert_eq!(asking["params"]["stream"], json!({}));
    assert_eq!(capabilities(&asking)["extensions"]["dev.roundtrip/stream"], json!({}));
}

/// An event with a part.
fn part(request: &Value, number: u32, text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    let params = json!({ "requestId": request, "part": number, "content": content });
    let part = json!({ "jsonrpc": "2.0", "method": "notifications/dev.roundtrip/part", "params": params });
    format!("data: {part}\n\n")
}

fn done(request: &Value) -> String {
    let result = json!({ "resultType": "complete", "content": [{ "type": "text", "text": "abc" }] });
    format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": request, "result": result }))
}

/// G3: a part that comes twice, or too early, or for another request is the server's mistake.
#[tokio::test]
async fn parts_out_of_order_are_refused() {
    for numbers in [&[0, 0][..], &[0, 2], &[1], &[0, 1, 0]] {
        let (client, _seen) = peer(move |_, request| {
            let id = &request.body["id"];
            let parts: String = numbers.iter().map(|number| part(id, *number, "a")).collect();
            events(&(parts + &done(id)))
        })
        .await;
        let error = client.call_tool("x", ()).parts().result().await.expect_err("out of order");
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::PartOutOfOrder(_))), "{error:?}");
        client.call_tool("x", ()).await.expect("a call that asked for no parts leaves them out");
    }
    let (client, _seen) =
        peer(|_, request| events(&(part(&json!(77), 0, "a") + &done(&request.body["id"])))).await;
    let error = client.call_tool("x", ()).parts().result().await.expect_err("another's");
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::WrongId(_))), "{error:?}");
    let (client, _seen) = peer(|_, request| {
        let rubbish = json!({ "requestId": request.body["id"], "part": -1, "content": "x" });
        let rubbish =
            json!({ "jsonrpc": "2.0", "method": "notifications/dev.roundtrip/part", "params": rubbish });
        events(&format!("data: {rubbish}\n\n{}", done(&request.body["id"])))
    })
    .await;
    let error = client.call_tool("x", ()).parts().result().await.expect_err("rubbish");
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::MalformedMessage(_))), "{error:?}");
}

/// G6: a connection that breaks behind some parts costs nothing: the request is sent again, and every part is seen once.
#[tokio::test]
async fn a_broken_connection_loses_nothing() {
    let (client, _seen) = peer(|number, request| {
        let id = &request.body["id"];
        let parts: String = [part(id, 0, "a"), part(id, 1, "b")].concat();
        match number {
            0 => events(&parts),
            _ => events(&(parts + &part(id, 2, "c") + &done(id))),
        }
    })
    .await;
    let texts = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&texts);
    let call = client.call_tool("x", ()).resend(Resend::Always);
    let whole =
        call.on_part(move |part| seen.lock().expect("a lock").push_str(part.as_text().expect("text"))).await;
    assert_eq!(whole.expect("a result").text(), "abc");
    assert_eq!(*texts.lock().expect("a lock"), "abc");
}

/// A stream that is dropped cancels its call; one of which nothing is read still has its result.
#[tokio::test]
async fn a_stream_may_be_left() {
    let (client, _stop) = serve(server()).await;
    let mut parts = client.call_tool("many", ()).parts();
    assert!(parts.next().await.is_some());
    drop(parts);
    let whole = client.call_tool("many", ()).parts().result().await.expect("a result");
    assert!(whole.text().ends_with("4999 "));
}
