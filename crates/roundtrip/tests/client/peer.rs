//! HTTP peers that say whatever a test wants them to say.

use std::time::Duration;

use roundtrip::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A request as it came in.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Seen {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// A successful answer to it.
    pub(crate) fn result(&self, result: &Value) -> Vec<u8> {
        json_reply("200 OK", &json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }))
    }

    /// An error answer to it.
    pub(crate) fn error(&self, status: &str, error: &Value) -> Vec<u8> {
        json_reply(status, &json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": error }))
    }
}

pub(crate) fn json_reply(status: &str, message: &Value) -> Vec<u8> {
    reply(status, "application/json", &message.to_string())
}

pub(crate) fn reply(status: &str, kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A stream of events that ends with the connection.
pub(crate) fn events(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// The answer of a modern server to the question about its era.
pub(crate) fn modern(request: &Seen) -> Vec<u8> {
    let versions = json!(["2026-07-28"]);
    request.result(&json!({ "resultType": "complete", "supportedVersions": versions, "capabilities": {} }))
}

/// A modern peer that answers each request with what `answer` makes of it and its number, and then hangs up. What it
/// has seen can be asked for.
pub(crate) async fn peer<F>(answer: F) -> (Client, mpsc::UnboundedReceiver<Seen>)
where
    F: Fn(usize, &Seen) -> Vec<u8> + Send + 'static,
{
    start(answer, true).await
}

/// A peer that is asked about its era like everything else.
pub(crate) async fn peer_of_any_era<F>(answer: F) -> (Client, mpsc::UnboundedReceiver<Seen>)
where
    F: Fn(usize, &Seen) -> Vec<u8> + Send + 'static,
{
    start(answer, false).await
}

async fn start<F>(answer: F, is_modern: bool) -> (Client, mpsc::UnboundedReceiver<Seen>)
where
    F: Fn(usize, &Seen) -> Vec<u8> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let (send, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut number = 0;
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let request = read(&mut stream).await;
            if is_modern && request.body["id"] == "discover" {
                let _ = stream.write_all(&modern(&request)).await;
                continue;
            }
            // The client may hang up first, and some tests want it to.
            let _ = stream.write_all(&answer(number, &request)).await;
            let _ = send.send(request);
            number += 1;
        }
    });
    (Client::http(url).expect("a client"), seen)
}

/// The next request that a peer has seen.
pub(crate) async fn next(seen: &mut mpsc::UnboundedReceiver<Seen>) -> Seen {
    let request = tokio::time::timeout(Duration::from_secs(10), seen.recv()).await;
    request.expect("a request in time").expect("a peer that lives")
}

/// Reads one request.
pub(crate) async fn read(stream: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let size = stream.read(&mut chunk).await.expect("a request");
        assert_ne!(size, 0, "the client hung up");
        bytes.extend_from_slice(&chunk[..size]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let seen = Seen { head: head.to_owned(), body: Value::Null };
        let length: usize = seen.header("content-length").expect("a length").parse().expect("a number");
        if body.len() >= length {
            return Seen { body: serde_json::from_str(body).expect("json"), ..seen };
        }
    }
}
