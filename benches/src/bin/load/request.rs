//! Complete requests, laid out once and renumbered in place.

use serde_json::{Value, json};

use crate::{
    Fail, flow,
    part::{PART, PARTS},
};

/// Numbers have seven digits, so that a request can be renumbered without moving a byte.
pub(crate) const FIRST_NUMBER: usize = 1_000_000;
pub(crate) const NUMBERS: usize = 9_000_000;
pub(crate) const DIGITS: usize = 7;

/// Text before the number in the text to be echoed.
pub(crate) const TEXT: &str = "a short text, number ";

/// Wish for a task, for servers that do not decide it by the extension.
pub(crate) const TASK: &str = r#""task":{"ttl":3600000}"#;

/// Kind of request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask {
    /// `tools/call` of `echo`.
    Echo,
    /// `tools/call` of `deploy`, which asks this many questions, each of which is answered.
    Flow(usize),
    /// `tools/call` of `deploy`, whose question is never answered.
    Abandoned,
    /// `tools/call` of `parts`, whose result is sent in parts.
    Parts,
    /// `tools/list`, which must name this many tools or a few more.
    List(usize),
    /// `tools/call` of `echo` that becomes a task.
    Task,
    /// `tools/call` of `deploy` that becomes a task, and waits for an answer.
    WaitingTask,
    /// `tasks/get` of a task with this status.
    Get(&'static str),
    /// `tasks/get` in the dialect of SEP-2322, which shows no result.
    GetBare,
}

impl Ask {
    /// Returns the number of plain calls that one of these stands for, where many are made.
    pub(crate) fn weight(self) -> usize {
        if matches!(self, Self::Parts) { 500 } else { 1 }
    }
}

/// A request that can be sent again under another number.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    numbers: Vec<usize>,
    /// Place of the access token.
    token: Option<usize>,
}

impl Request {
    /// Returns the request as an HTTP/1.1 POST, with an access token if there is one.
    pub(crate) fn http(ask: Ask, host: &str, token: Option<&str>) -> Self {
        let body = body(ask);
        let (head, length) = (head(ask, host), body.len());
        let Some(token) = token else { return Self::numbered(format!("{head}{length}\r\n\r\n{body}")) };
        let before = format!("{head}{length}\r\nauthorization: Bearer ");
        let place = Some(before.len());
        Self { token: place, ..Self::numbered(format!("{before}{token}\r\n\r\n{body}")) }
    }

    /// Returns the request as a line.
    pub(crate) fn line(ask: Ask) -> Self {
        Self::numbered(format!("{}\n", body(ask)))
    }

    fn numbered(text: String) -> Self {
        let number = FIRST_NUMBER.to_string();
        let numbers = text.match_indices(&number).map(|(place, _)| place).collect();
        Self { bytes: text.into_bytes(), numbers, token: None }
    }

    /// Returns the bytes under the given number, with an access token as long as the one before.
    pub(crate) fn number(&mut self, number: usize, token: Option<&str>) -> &[u8] {
        let digits = digits(number);
        for &place in &self.numbers {
            self.bytes[place..place + DIGITS].copy_from_slice(&digits);
        }
        if let (Some(place), Some(token)) = (self.token, token) {
            self.bytes[place..place + token.len()].copy_from_slice(token.as_bytes());
        }
        &self.bytes
    }
}

/// Returns the head of a request, up to the length of its body.
pub(crate) fn head(ask: Ask, host: &str) -> String {
    match ask {
        Ask::Echo | Ask::Task => head_of("tools/call", Some("echo"), host),
        Ask::Flow(_) | Ask::Abandoned | Ask::WaitingTask => head_of("tools/call", Some("deploy"), host),
        Ask::Parts => head_of("tools/call", Some("parts"), host),
        Ask::List(_) => head_of("tools/list", None, host),
        // Each has the task's name in its head.
        Ask::Get(_) | Ask::GetBare => String::new(),
    }
}

/// Returns the head of a request of this method, up to the length of its body.
pub(crate) fn head_of(method: &str, name: Option<&str>, host: &str) -> String {
    let name = name.map_or(String::new(), |name| format!("mcp-name: {name}\r\n"));
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: {method}\r\n{name}content-length: "
    )
}

/// Returns the `_meta` of a request.
pub(crate) fn meta(ask: Ask) -> String {
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    let capabilities = match ask {
        Ask::Flow(_) | Ask::Abandoned => json!({ "elicitation": { "form": {} } }),
        Ask::Echo | Ask::List(_) => json!({}),
        Ask::Parts => json!({ "extensions": { "dev.roundtrip/stream": {} } }),
        Ask::Task | Ask::Get(_) => json!({ "extensions": extensions }),
        Ask::GetBare => json!({ "extensions": { "dev.roundtrip/tasks-sep-2322": {} } }),
        Ask::WaitingTask => json!({ "elicitation": { "form": {} }, "extensions": extensions }),
    };
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "load", "version": env!("CARGO_PKG_VERSION") },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    meta.to_string()
}

/// Returns the digits of a request's number.
pub(crate) fn digits(number: usize) -> [u8; DIGITS] {
    let mut digits = [0; DIGITS];
    let mut rest = FIRST_NUMBER + number % NUMBERS;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// Checks the answer to a single request in full.
pub(crate) fn check(ask: Ask, number: usize, answer: &[u8]) -> Result<(), Fail> {
    let shown = || String::from_utf8_lossy(&answer[..answer.len().min(400)]).into_owned();
    let value: Value = serde_json::from_slice(answer).map_err(|error| format!("{error}: {}", shown()))?;
    let number = FIRST_NUMBER + number % NUMBERS;
    let result = &value["result"];
    let right = match ask {
        Ask::Echo => result["content"][0]["text"] == format!("{TEXT}{number}"),
        // These are checked round by round, and task by task.
        Ask::Flow(_) | Ask::Abandoned | Ask::Task | Ask::WaitingTask | Ask::Get(_) | Ask::GetBare => false,
        Ask::List(tools) => result["tools"].as_array().is_some_and(|listed| listed.len() >= tools),
        Ask::Parts => result["content"][0]["text"] == PART.repeat(PARTS as usize),
    };
    if right && value["jsonrpc"] == "2.0" && value["id"] == number && result["resultType"] == "complete" {
        Ok(())
    } else {
        Err(format!("a wrong answer to {ask:?} number {number}: {}", shown()).into())
    }
}

fn body(ask: Ask) -> String {
    let meta = meta(ask);
    // Laid out by hand to have the keys in the order that clients usually send them in.
    match ask {
        Ask::Echo => format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_NUMBER},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{TEXT}{FIRST_NUMBER}"}},"_meta":{meta}}}}}"#
        ),
        Ask::Task => format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_NUMBER},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{TEXT}{FIRST_NUMBER}"}},{TASK},"_meta":{meta}}}}}"#
        ),
        Ask::WaitingTask => format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_NUMBER},"method":"tools/call","params":{{"name":"deploy","arguments":{{"service":"service-{FIRST_NUMBER}","env":"prod","rounds":1}},{TASK},"_meta":{meta}}}}}"#
        ),
        Ask::Get(_) | Ask::GetBare => String::new(),
        Ask::Parts => format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_NUMBER},"method":"tools/call","params":{{"name":"parts","arguments":{{}},"stream":{{}},"_meta":{meta}}}}}"#
        ),
        Ask::Flow(rounds) => flow::body(&FIRST_NUMBER.to_string(), rounds, None, &meta),
        Ask::Abandoned => flow::body(&FIRST_NUMBER.to_string(), 1, None, &meta),
        Ask::List(_) => format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_NUMBER},"method":"tools/list","params":{{"_meta":{meta}}}}}"#
        ),
    }
}
