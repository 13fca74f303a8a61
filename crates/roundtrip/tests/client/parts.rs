//! Results in parts.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_core::Stream;
use roundtrip::client::Started;
use roundtrip::client::{PeerMisbehaved, Resend, StreamedCall};
use roundtrip::{
    Ask, Client, Error, FormRequest, MemoryTasks, Parts, Server, Task, Tasks, Tool, ToolError, When,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fixture::serve;
use crate::peer::{events, next, peer};

const CHILD: &str = "ROUNDTRIP_TEST_CHILD";
const SEEN: &str = "ROUNDTRIP_TEST_SEEN";

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

/// Ends its process behind two parts, once the client has seen them, unless it was so before: `SEEN` names the file that says so.
async fn falls_once(mut out: Parts) -> Parts {
    let seen = PathBuf::from(std::env::var_os(SEEN).expect("a file"));
    let first = !seen.exists();
    out.text("a").await;
    out.text("b").await;
    if first {
        while !seen.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::process::exit(1);
    }
    out.text("c").await;
    out
}

/// Becomes a task between its parts.
async fn later(ask: Ask, mut out: Parts) -> Result<Parts, ToolError> {
    out.text("Once ").await;
    ask.detach("the rest takes a while").await?;
    out.text("upon ").await;
    ask.confirm("go_on", "Go on?").await?;
    out.text("a time").await;
    Ok(out)
}

fn server() -> Server {
    let tasks = Tasks::new(MemoryTasks::new()).sep_2322();
    Server::new("parts", "1")
        .tool(Tool::new("story", story))
        .tool(Tool::new("many", many))
        .tool(Tool::new("falls_once", falls_once))
        .tool(Tool::new("task", story).task(When::Required))
        .tool(Tool::new("later", later).task(When::After(Duration::from_secs(3600))))
        .tasks(tasks)
}

/// Not a test of its own: the server that another one starts.
#[tokio::test]
async fn serves_parts_when_started_as_a_child() {
    if std::env::var_os(CHILD).is_some() {
        server().serve_stdio().await.expect("served to the end");
    }
}

/// This binary once more, as a server.
fn child() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command
        .args(["--quiet", "--nocapture", "--exact", "parts::serves_parts_when_started_as_a_child"])
        .env(CHILD, "1");
    command
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
    for client in [consenting(client), consenting(Client::stdio(child()))] {
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

/// G6: on a pipe too: the server that has ended behind some parts is started again, and every part is seen once.
#[tokio::test]
async fn a_server_that_ends_loses_nothing() {
    let file = std::env::temp_dir().join(format!("roundtrip-parts-{}", std::process::id()));
    let mut server = child();
    server.env(SEEN, &file);
    let (texts, seen) = (Arc::new(Mutex::new(String::new())), file.clone());
    let collected = Arc::clone(&texts);
    let call =
        Client::stdio(server).call_tool("falls_once", ()).resend(Resend::Always).on_part(move |part| {
            let mut texts = collected.lock().expect("a lock");
            texts.push_str(part.as_text().expect("text"));
            if *texts == "ab" {
                std::fs::write(&seen, "").expect("a file");
            }
        });
    let whole = call.await;
    std::fs::remove_file(&file).expect("the file");
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

async fn texts(mut parts: StreamedCall) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(part) = parts.next().await {
        texts.push(part.as_text().expect("text").to_owned());
    }
    assert_eq!(parts.result().await.expect("a result").text(), texts.concat());
    texts
}

/// G5: over HTTP and on a pipe, the parts of a call that is a task, or becomes one on the way, are the same stream; those of a task can be read after the
/// fact, by another client, and by the task's identifier alone.
#[tokio::test]
async fn parts_of_tasks_are_a_stream() {
    let (client, _stop) = serve(server()).await;
    for client in [consenting(client), consenting(Client::stdio(child()))] {
        assert_eq!(texts(client.call_tool("task", ()).parts()).await, ["Once ", "upon ", "a ", "time"]);
        assert_eq!(texts(client.call_tool("later", ()).parts()).await, ["Once ", "upon ", "a time"]);
        let started = client.call_tool("task", ()).on_part(|_| {}).into_task().await.expect("a task");
        let Started::Task(task) = started else { panic!("no task") };
        let stored = serde_json::to_string(&task).expect("a task serialises");
        client.task(task.clone()).wait().await.expect("a result");
        let again: Task = serde_json::from_str(&stored).expect("a task");
        assert_eq!(texts(client.task(again).parts()).await.len(), 4);
        assert_eq!(texts(client.task(Task::new("task", task.id())).parts()).await.len(), 4);
    }
}
