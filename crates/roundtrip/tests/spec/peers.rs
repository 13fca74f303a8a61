//! Clients of the handshake eras, so plain that they can break every rule: on a pipe, and at an HTTP service with no
//! socket between, so that time can be moved.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body as _, Frame};
use roundtrip::Server;
use roundtrip::http::{Body, Http};
use roundtrip::server::Peer;
use roundtrip::stdio::serve_lines;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tower_service::Service as _;

pub(crate) const V2025_11_25: &str = "2025-11-25";

/// What a client declares that can be asked everything.
pub(crate) fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut request = json!({ "jsonrpc": "2.0", "id": id.into(), "method": method });
    request["params"] = params;
    request
}

pub(crate) fn tool(id: impl Into<Value>, name: &str) -> Value {
    request(id, "tools/call", json!({ "name": name, "arguments": {} }))
}

pub(crate) fn initialize(version: &str, capabilities: &Value) -> Value {
    let info = json!({ "name": "old", "version": "1" });
    request(
        0,
        "initialize",
        json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info }),
    )
}

pub(crate) fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

pub(crate) fn answer(to: &Value, result: Value) -> Value {
    let mut answer = json!({ "jsonrpc": "2.0", "id": to["id"] });
    answer["result"] = result;
    answer
}

pub(crate) fn accept(to: &Value, content: Value) -> Value {
    let mut result = json!({ "action": "accept" });
    result["content"] = content;
    answer(to, result)
}

/// The text of a tool's result.
pub(crate) fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("text: {message}"))
}

/// Both ends of a pipe, and the server at the other end of it.
pub(crate) struct Pipe {
    input: Option<WriteHalf<DuplexStream>>,
    output: BufReader<ReadHalf<DuplexStream>>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Pipe {
    pub(crate) fn open(server: Server) -> Self {
        Self::open_for(server, Peer::default())
    }

    /// A pipe with this peer at our end.
    pub(crate) fn open_for(server: Server, peer: Peer) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let endpoint = server.build().expect("a server");
        let served = tokio::spawn(async move {
            let (input, output) = tokio::io::split(theirs);
            serve_lines(&endpoint, &peer, input, output).await
        });
        let (output, input) = tokio::io::split(ours);
        Self { input: Some(input), output: BufReader::new(output), served }
    }

    /// A pipe on which both sides have agreed on a revision.
    pub(crate) async fn agreed(server: Server, version: &str, capabilities: &Value) -> Self {
        let mut pipe = Self::open(server);
        let agreed = pipe.call(&initialize(version, capabilities)).await;
        assert_eq!(agreed["result"]["protocolVersion"], version, "{agreed}");
        pipe.send(&initialized()).await;
        pipe
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("an open pipe");
        input.write_all(format!("{message}\n").as_bytes()).await.expect("written");
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).await.expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) async fn call(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.receive().await
    }

    /// Hangs up, and waits until the server has noticed.
    pub(crate) async fn hang_up(self) {
        let Self { input, output, served } = self;
        drop((input, output));
        served.await.expect("no panic").expect("served");
    }
}

/// A request's body.
pub(crate) struct Once(Option<Bytes>);

impl http_body::Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A client at an HTTP service.
#[derive(Clone)]
pub(crate) struct Web {
    http: Http,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// What an HTTP service answers.
pub(crate) struct Answered {
    pub(crate) status: u16,
    response: Response<Body>,
    ready: VecDeque<Event>,
    rest: String,
}

/// One event of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) retry: Option<u64>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Web {
    pub(crate) fn new(server: Server) -> Self {
        Self::at(server.into_http().expect("a server"))
    }

    pub(crate) fn at(http: Http) -> Self {
        Self { http, headers: Vec::new() }
    }

    /// A client in a session of its own at the same service.
    pub(crate) async fn session(&self, version: &str, capabilities: &Value) -> Self {
        let mut client = self.clone();
        let mut agreed = client.post(&initialize(version, capabilities)).await;
        assert_eq!(agreed.status, 200);
        let id = agreed.header("mcp-session-id").expect("a session").to_owned();
        assert_eq!(agreed.json().await["result"]["protocolVersion"], version);
        client.headers.push(("mcp-session-id", id));
        client.headers.push(("mcp-protocol-version", version.to_owned()));
        assert_eq!(client.post(&initialized()).await.status, 202);
        client
    }

    /// With one more header; an empty value takes it away.
    pub(crate) fn with(&self, name: &'static str, value: &str) -> Self {
        let mut changed = self.clone();
        changed.headers.retain(|(known, _)| *known != name);
        if !value.is_empty() {
            changed.headers.push((name, value.to_owned()));
        }
        changed
    }

    /// The same client, with its session, at this service.
    pub(crate) fn acting_as(&self, client: &Self) -> Self {
        Self { http: self.http.clone(), headers: client.headers.clone() }
    }

    /// A header that the client sends.
    pub(crate) fn header(&self, name: &str) -> &str {
        let sent = self.headers.iter().find(|(known, _)| *known == name);
        sent.map_or_else(|| panic!("no {name}"), |(_, value)| value)
    }

    pub(crate) async fn post(&self, message: &Value) -> Answered {
        self.send(Method::POST, &message.to_string()).await
    }

    pub(crate) async fn get(&self) -> Answered {
        self.send(Method::GET, "").await
    }

    pub(crate) async fn delete(&self) -> Answered {
        self.send(Method::DELETE, "").await
    }

    pub(crate) async fn send(&self, method: Method, body: &str) -> Answered {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json");
        if !self.headers.iter().any(|(name, _)| *name == "accept") {
            request = request.header("accept", "application/json, text/event-stream");
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Once(Some(Bytes::from(body.to_owned())))).expect("a request");
        let response = self.http.clone().call(request).await.unwrap_or_else(|never| match never {});
        Answered { status: response.status().as_u16(), response, ready: VecDeque::new(), rest: String::new() }
    }
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok())
    }

    async fn chunk(&mut self) -> Option<String> {
        let frame = poll_fn(|cx| Pin::new(self.response.body_mut()).poll_frame(cx)).await?;
        let data = frame.unwrap_or_else(|never| match never {}).into_data().expect("data");
        Some(String::from_utf8(data.to_vec()).expect("UTF-8"))
    }

    pub(crate) async fn json(&mut self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "HTTP {}", self.status);
        let mut body = String::new();
        while let Some(chunk) = self.chunk().await {
            body += &chunk;
        }
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body:?}"))
    }

    /// The next event of a stream; none at its end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"), "HTTP {}", self.status);
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let chunk = self.chunk().await?;
            self.rest += &chunk;
            while let Some((event, rest)) = self.rest.split_once("\n\n") {
                self.ready.extend(parse(event));
                self.rest = rest.to_owned();
            }
        }
    }

    /// Whether a comment comes before anything else that says something.
    pub(crate) async fn sign_of_life(&mut self) -> bool {
        loop {
            let chunk = self.chunk().await.expect("something");
            if chunk.starts_with(':') {
                return true;
            }
            if chunk.contains("jsonrpc") {
                return false;
            }
        }
    }

    /// The next message of a stream; none at its end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            if !event.data.is_empty() {
                return Some(event.json());
            }
        }
    }
}

fn parse(text: &str) -> Option<Event> {
    let mut event = Event::default();
    for line in text.lines() {
        match line.split_once(':').map(|(field, value)| (field, value.trim_start())) {
            Some(("id", id)) => event.id = id.to_owned(),
            Some(("data", data)) => event.data = data.to_owned(),
            Some(("retry", retry)) => event.retry = retry.parse().ok(),
            _ => {}
        }
    }
    (!event.id.is_empty() || !event.data.is_empty()).then_some(event)
}
