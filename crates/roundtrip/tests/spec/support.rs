//! A server on loopback, and a client so plain that it can break every rule.

use std::net::SocketAddr;
use std::time::Duration;

use roundtrip::http::{Http, HttpLimits};
use roundtrip::server::{Endpoint, Event, Peer};
use roundtrip::wire::{Message, encode_error};
use roundtrip::{Principal, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const VERSION: &str = "2026-07-28";

/// A server that runs until it is dropped or stopped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(server: Server) -> Self {
        Self::start_http(server.into_http().expect("a server")).await
    }

    pub(crate) async fn start_with(server: Server, limits: HttpLimits) -> Self {
        Self::start_http(server.into_http().expect("a server").limits(limits)).await
    }

    pub(crate) async fn start_http(http: Http) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let bound = http.bind("127.0.0.1:0").await.expect("a port");
        let address = bound.local_addr().expect("an address");
        let until = async move { drop(stopped.await) };
        let task = tokio::spawn(async move { bound.until(until).await.expect("serving") });
        Self { address, stop: Some(stop), task }
    }

    pub(crate) async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        Connection(BufReader::new(stream))
    }

    /// One well-formed request on a connection of its own.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Answer {
        self.connect().await.request(method, params).await
    }

    /// Asks the server to stop, and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.begin_stop();
        self.task.await.expect("the server's end");
    }

    pub(crate) fn begin_stop(&mut self) {
        self.stop.take();
    }
}

/// An HTTP/1.1 connection, kept alive.
pub(crate) struct Connection(BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn result(&self) -> Value {
        let message = self.json();
        assert_eq!(self.status, 200, "{message}");
        assert!(message.get("error").is_none(), "{message}");
        message["result"].clone()
    }

    /// Status and code of an error answer.
    pub(crate) fn refusal(&self) -> (u16, i64) {
        let message = self.json();
        (self.status, message["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {message}")))
    }

    pub(crate) fn error_message(&self) -> String {
        self.json()["error"]["message"].as_str().expect("a message").to_owned()
    }

    /// The messages of an event stream that has ended.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"), "{self:?}");
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
    }
}

/// The `_meta` every request needs.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "spec", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A whole request; `params` get the `_meta` they lack.
pub(crate) fn message(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    let members = params.as_object_mut().expect("an object");
    members.entry("_meta").or_insert_with(meta);
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// The headers that go with a message.
pub(crate) fn headers(message: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let params = &message["params"];
    let version =
        text(&params["_meta"]["io.modelcontextprotocol/protocolVersion"]).unwrap_or_else(|| VERSION.into());
    let method = text(&message["method"]).unwrap_or_default();
    let mut headers = vec![
        ("Content-Type".to_owned(), "application/json".to_owned()),
        ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ("MCP-Protocol-Version".to_owned(), version),
    ];
    let target = match method.as_str() {
        "tools/call" | "prompts/get" => text(&params["name"]),
        "resources/read" => text(&params["uri"]),
        "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" => text(&params["taskId"]),
        "tasks/input_response" => text(&params["_meta"]["io.modelcontextprotocol/related-task"]["taskId"]),
        _ => None,
    };
    headers.push(("Mcp-Method".to_owned(), method));
    headers.extend(target.map(|target| ("Mcp-Name".to_owned(), target)));
    headers
}

/// The same headers with one of them changed, or left out.
pub(crate) fn changed(message: &Value, name: &str, value: Option<&str>) -> Vec<(String, String)> {
    let mut all = headers(message);
    all.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    all.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    all
}

impl Connection {
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Answer {
        let message = message(1, method, params);
        self.post(&headers(&message), message.to_string().as_bytes()).await
    }

    pub(crate) async fn post(&mut self, headers: &[(String, String)], body: &[u8]) -> Answer {
        self.send("POST", headers, body).await;
        self.read().await
    }

    pub(crate) async fn send(&mut self, verb: &str, headers: &[(String, String)], body: &[u8]) {
        let mut head = format!("{verb} /mcp HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += "Host: localhost\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        self.raw(head.as_bytes()).await;
        self.raw(body).await;
    }

    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        // A server that has said no may have hung up already; what it said is still to be read.
        let _ = self.0.get_mut().write_all(bytes).await;
    }

    /// Fills a buffer as far as the server sends, and returns the number of bytes.
    pub(crate) async fn bytes(&mut self, buffer: &mut [u8]) -> usize {
        let mut size = 0;
        while size < buffer.len() {
            match self.0.read(&mut buffer[size..]).await {
                Ok(0) | Err(_) => break,
                Ok(more) => size += more,
            }
        }
        size
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.expect("a line");
        line.trim_end().to_owned()
    }

    /// The head of an answer.
    pub(crate) async fn head(&mut self) -> Answer {
        let status = self.line().await;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Answer { status: status.expect("a status"), headers, body: String::new() }
    }

    pub(crate) async fn read(&mut self) -> Answer {
        let mut answer = self.head().await;
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                answer.body += &chunk;
            }
        } else {
            let length =
                answer.header("content-length").map_or(0, |length| length.parse().expect("a length"));
            let mut body = vec![0; length];
            self.0.read_exact(&mut body).await.expect("a body");
            answer.body = String::from_utf8(body).expect("UTF-8");
        }
        answer
    }

    /// The next chunk of a stream, or `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let size = usize::from_str_radix(&self.line().await, 16).expect("a chunk's size");
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk).await.expect("a chunk");
        chunk.truncate(size);
        (size > 0).then(|| String::from_utf8(chunk).expect("UTF-8"))
    }

    /// The next message of an event stream, keep-alives passed over.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        loop {
            let chunk = self.chunk().await?;
            if let Some(data) = chunk.strip_prefix("data: ") {
                return Some(serde_json::from_str(data.trim_end()).expect("one message a chunk"));
            }
        }
    }

    /// Whether the other end has hung up.
    pub(crate) async fn closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0; 64]).await, Ok(0) | Err(_))
    }
}

impl Connection {
    /// So many bytes, as text.
    pub(crate) async fn exactly(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await.expect("that many bytes");
        String::from_utf8(bytes).expect("UTF-8")
    }
}

/// One request straight to an endpoint, with no transport between: everything it answers with, the response last.
pub(crate) async fn messages_of(endpoint: &Endpoint, peer: &Peer, request: &Value) -> Vec<Value> {
    let text = request.to_string();
    let Ok(Message::Request(request)) = Message::decode(text.as_bytes()) else {
        panic!("not a request: {text}")
    };
    let mut out = Vec::new();
    let mut said = Vec::new();
    match endpoint.decode(&request) {
        Err(error) => encode_error(&mut out, Some(&request.id), &error),
        Ok(decoded) => {
            let mut call = endpoint.begin(request.id, &decoded, peer);
            loop {
                match call.event().await {
                    Event::Notification(bytes) => said.push(serde_json::from_slice(&bytes).expect("JSON")),
                    Event::Response(outcome) => {
                        endpoint.encode(&mut out, call.id(), outcome);
                        break;
                    }
                }
            }
        }
    }
    said.push(serde_json::from_slice(&out).expect("JSON"));
    said
}

/// A call and all its rounds: what stays the same from one to the next. Each round says what it brings along.
#[derive(Clone)]
pub(crate) struct Call {
    method: &'static str,
    params: Value,
    peer: Peer,
}

impl Call {
    /// A call of a tool, by a client that can be asked everything.
    pub(crate) fn tool(name: &str) -> Self {
        Self::new("tools/call", json!({ "name": name }))
    }

    pub(crate) fn prompt(name: &str) -> Self {
        Self::new("prompts/get", json!({ "name": name }))
    }

    pub(crate) fn resource(uri: &str) -> Self {
        Self::new("resources/read", json!({ "uri": uri }))
    }

    fn new(method: &'static str, params: Value) -> Self {
        Self { method, params, peer: Peer::default() }.declaring(&everything())
    }

    pub(crate) fn with(mut self, arguments: Value) -> Self {
        self.params["arguments"] = arguments;
        self
    }

    /// By a client that can be asked this much.
    pub(crate) fn declaring(mut self, capabilities: &Value) -> Self {
        let mut meta = meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
        self.params["_meta"] = meta;
        self
    }

    pub(crate) fn by(mut self, principal: &str) -> Self {
        self.peer.principal = Some(Principal::new(principal));
        self
    }

    /// The request of one round, as the wire has it.
    pub(crate) fn request(&self, state: Option<&str>, answers: Option<Value>) -> Value {
        let mut params = self.params.clone();
        if let Some(state) = state {
            params["requestState"] = state.into();
        }
        if let Some(answers) = answers {
            params["inputResponses"] = answers;
        }
        message(7, self.method, params)
    }

    /// The first round.
    pub(crate) async fn begin(&self, endpoint: &Endpoint) -> Turn {
        self.send(endpoint, None, None).await
    }

    /// The next round: the state of the last one, and answers.
    pub(crate) async fn answer(&self, endpoint: &Endpoint, last: &Turn, answers: Value) -> Turn {
        self.send(endpoint, last.state(), Some(answers)).await
    }

    pub(crate) async fn send(
        &self,
        endpoint: &Endpoint,
        state: Option<&str>,
        answers: Option<Value>,
    ) -> Turn {
        let request = self.request(state, answers);
        // In a task of its own, so that nothing but the call itself wakes the call.
        let (endpoint, peer) = (endpoint.clone(), self.peer.clone());
        let messages = tokio::spawn(async move { messages_of(&endpoint, &peer, &request).await });
        let messages =
            tokio::time::timeout(Duration::from_secs(10), messages).await.expect("an answer in time");
        let messages = messages.expect("a call that does not panic");
        Turn(messages.into_iter().last().expect("a response"))
    }
}

/// Every capability that asking can need.
pub(crate) fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} })
}

/// An accepted form.
pub(crate) fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// What one round came to: the whole message.
#[derive(Debug, Clone)]
pub(crate) struct Turn(pub(crate) Value);

impl Turn {
    pub(crate) fn of(answer: &Answer) -> Self {
        Self(answer.json())
    }

    pub(crate) fn result(&self) -> &Value {
        assert!(self.0.get("error").is_none(), "{}", self.0);
        &self.0["result"]
    }

    /// The keys of what is asked, in order; none where nothing is.
    pub(crate) fn keys(&self) -> Vec<&str> {
        assert_eq!(self.result()["resultType"], "input_required", "{}", self.0);
        let requests = self.0["result"].get("inputRequests");
        requests.map_or(Vec::new(), |asked| {
            asked.as_object().expect("a map").keys().map(String::as_str).collect()
        })
    }

    pub(crate) fn question(&self, key: &str) -> &Value {
        &self.result()["inputRequests"][key]
    }

    /// What the user is told with a question.
    pub(crate) fn told(&self, key: &str) -> &str {
        self.question(key)["params"]["message"].as_str().unwrap_or_else(|| panic!("{key}: {}", self.0))
    }

    pub(crate) fn state(&self) -> Option<&str> {
        self.result().get("requestState").map(|state| state.as_str().expect("text"))
    }

    /// The text of a complete result of a tool, a prompt or a resource that is no error.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        assert_ne!(self.result()["isError"], true, "{}", self.0);
        self.any_text()
    }

    /// The text of a tool error.
    #[track_caller]
    pub(crate) fn failure(&self) -> &str {
        assert_eq!(self.result()["isError"], true, "{}", self.0);
        self.any_text()
    }

    #[track_caller]
    fn any_text(&self) -> &str {
        assert_eq!(self.result()["resultType"], "complete", "{}", self.0);
        let result = self.result();
        let places = ["/content/0/text", "/messages/0/content/text", "/contents/0/text"];
        let text = places.into_iter().find_map(|place| result.pointer(place)?.as_str());
        text.unwrap_or_else(|| panic!("text: {result}"))
    }

    /// Code and message of an error.
    #[track_caller]
    pub(crate) fn error(&self) -> (i64, &str) {
        let error = &self.0["error"];
        (
            error["code"].as_i64().unwrap_or_else(|| panic!("an error: {}", self.0)),
            error["message"].as_str().expect("a message"),
        )
    }
}
