//! A server of the handshake eras on HTTP, small enough to misbehave on demand.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response};
use futures_core::Stream;
use roundtrip::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

/// A request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) http: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// What a tool is called.
    pub(crate) fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn result(&self, result: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result })
    }

    pub(crate) fn error(&self, code: i64, message: &str) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": { "code": code, "message": message } })
    }

    pub(crate) fn says(&self, text: &str) -> Value {
        self.result(&json!({ "content": [{ "type": "text", "text": text }] }))
    }
}

pub(crate) type Reply = Response<Body>;

pub(crate) fn json_reply(status: u16, message: &Value) -> Reply {
    let reply = Response::builder().status(status).header("content-type", "application/json");
    reply.body(message.to_string().into()).expect("a response")
}

pub(crate) fn empty(status: u16) -> Reply {
    Response::builder().status(status).body(Body::empty()).expect("a response")
}

/// One message, whose first byte comes when it is known.
pub(crate) fn slow_json(message: impl Future<Output = Value> + Send + 'static) -> Reply {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let message = message.await;
        let _ = sender.send(message.to_string());
    });
    let reply = Response::builder().status(200).header("content-type", "application/json");
    reply.body(Body::from_stream(Chunks(receiver))).expect("a response")
}

/// Messages as they are sent, until the sender is dropped.
pub(crate) fn stream() -> (Sender, Reply) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let reply = Response::builder().status(200).header("content-type", "text/event-stream");
    (Sender(sender), reply.body(Body::from_stream(Chunks(receiver))).expect("a response"))
}

#[derive(Clone)]
pub(crate) struct Sender(pub(crate) mpsc::UnboundedSender<String>);

impl Sender {
    pub(crate) fn message(&self, message: &Value) {
        self.raw(&format!("event: message\ndata: {message}\n\n"));
    }

    pub(crate) fn raw(&self, text: &str) {
        let _ = self.0.send(text.to_owned());
    }
}

struct Chunks(mpsc::UnboundedReceiver<String>);

impl Stream for Chunks {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(chunk.into())))
    }
}

type Respond = Box<dyn Fn(&Arc<Old>, &Seen) -> Option<Reply> + Send + Sync>;

/// The server: what it has seen, and what it says.
pub(crate) struct Old {
    pub(crate) version: &'static str,
    respond: Respond,
    seen: watch::Sender<Vec<Seen>>,
    sessions: AtomicUsize,
    /// The stream of what belongs to no call.
    pub(crate) general: Mutex<Option<Sender>>,
}

impl Old {
    /// Starts one. What `respond` has no reply for is answered as usual.
    pub(crate) async fn start(
        respond: impl Fn(&Arc<Self>, &Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> (Client, Arc<Self>) {
        Self::speaking("2025-11-25", respond).await
    }

    pub(crate) async fn speaking(
        version: &'static str,
        respond: impl Fn(&Arc<Self>, &Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> (Client, Arc<Self>) {
        let old = Arc::new(Self {
            version,
            respond: Box::new(respond),
            seen: watch::Sender::new(Vec::new()),
            sessions: AtomicUsize::new(0),
            general: Mutex::default(),
        });
        let app = Router::new().fallback(serve).with_state(Arc::clone(&old));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        (Client::http(url).expect("a client"), old)
    }

    /// What a server does that does not misbehave.
    fn usual(self: &Arc<Self>, seen: &Seen) -> Reply {
        match (seen.http.as_str(), seen.method()) {
            ("GET", _) => {
                let (sender, reply) = stream();
                sender.raw(": here\n\n");
                *self.general.lock().expect("general") = Some(sender);
                reply
            }
            ("DELETE", _) => empty(200),
            ("POST", "initialize") => {
                let session = self.sessions.fetch_add(1, Ordering::SeqCst);
                let mut reply = json_reply(200, &seen.result(&greeting(self.version)));
                let id = format!("session-{session}").parse().expect("a header");
                reply.headers_mut().insert("mcp-session-id", id);
                reply
            }
            ("POST", _) if seen.header("mcp-session-id").is_none() => {
                json_reply(400, &seen.error(-32000, "Bad Request: Server not initialized"))
            }
            ("POST", "tools/call") => json_reply(200, &seen.says("done")),
            ("POST", "tools/list") => json_reply(200, &seen.result(&json!({ "tools": [] }))),
            ("POST", "") => empty(202),
            ("POST", method) if method.starts_with("notifications/") => empty(202),
            ("POST", "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe") => {
                json_reply(200, &seen.result(&json!({})))
            }
            _ => json_reply(200, &seen.error(-32601, "Method not found")),
        }
    }

    /// Everything seen so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// The methods of everything posted so far; responses have none.
    pub(crate) fn posted(&self) -> Vec<String> {
        let posts = self.seen().into_iter().filter(|seen| seen.http == Method::POST);
        posts.map(|seen| seen.method().to_owned()).collect()
    }

    /// Waits for a request, and gives it.
    pub(crate) async fn wait(&self, is: impl Fn(&Seen) -> bool) -> Seen {
        let mut seen = self.seen.subscribe();
        let found = seen.wait_for(|all| all.iter().any(&is));
        let all =
            tokio::time::timeout(Duration::from_secs(10), found).await.expect("in time").expect("a server");
        all.iter().find(|seen| is(seen)).cloned().expect("found")
    }

    /// Waits for what the client says to a request of the server's own.
    pub(crate) async fn response(&self, id: &Value) -> Value {
        self.wait(|seen| seen.method().is_empty() && seen.body["id"] == *id).await.body
    }
}

pub(crate) fn greeting(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {
            "logging": {}, "tools": { "listChanged": true }, "resources": { "subscribe": true }, "prompts": {},
        },
        "serverInfo": { "name": "old", "version": "1.0" },
        "instructions": "be gentle",
    })
}

async fn serve(State(old): State<Arc<Old>>, http: Method, headers: HeaderMap, body: Bytes) -> Reply {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let seen = Seen { http, headers, body };
    old.seen.send_modify(|all| all.push(seen.clone()));
    (old.respond)(&old, &seen).unwrap_or_else(|| old.usual(&seen))
}

/// A form to be asked for, as a request of the server's own.
pub(crate) fn form(id: impl Into<Value>, message: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "size": { "type": "string", "default": "small" } },
        "required": ["name"],
    });
    json!({
        "jsonrpc": "2.0", "id": id.into(), "method": "elicitation/create",
        "params": { "message": message, "requestedSchema": schema },
    })
}
