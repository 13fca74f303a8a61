//! What sessions of the handshake eras cost a server, measured at a process of its own.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const SESSIONS: usize = 1_000;
const MOST: usize = 60 * 1024 * 1024;

/// A server in a process of its own; it ends with the test.
struct Instance {
    process: Child,
    address: String,
}

impl Instance {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_conformance-server"))
            .env("PORT", "0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on http://").expect("an address");
        Self { address: url.trim_end_matches("/mcp").to_owned(), process }
    }

    /// How much memory the process has in use.
    fn resident(&self) -> usize {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok());
        kib.expect("a number") * 1024
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One client, on one connection.
struct Session {
    stream: BufReader<TcpStream>,
    id: Option<String>,
}

impl Session {
    fn post(&mut self, message: &Value) {
        let body = message.to_string();
        let session = self.id.as_ref().map_or_else(String::new, |id| format!("mcp-session-id: {id}\r\n"));
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{session}\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("written");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Reads a head: the length of its body, and a session's id if it has one.
    fn head(&mut self) -> usize {
        let mut length = 0;
        loop {
            let line = self.line();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().expect("a length"),
                Some(("mcp-session-id", id)) => self.id = Some(id.to_owned()),
                None if line.is_empty() => return length,
                _ => {}
            }
        }
    }

    /// Begins a session, calls a tool in it, and reads as far as its question.
    fn ask(address: &str) -> Self {
        let stream = BufReader::new(TcpStream::connect(address).expect("a connection"));
        let mut session = Self { stream, id: None };
        session.post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "many", "version": "1" },
        } }));
        let mut body = vec![0; session.head()];
        session.stream.read_exact(&mut body).expect("a body");
        assert!(session.id.is_some(), "{}", String::from_utf8_lossy(&body));
        session.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "test_elicitation", "arguments": { "message": "Who are you?" },
        } }));
        session.head();
        loop {
            if let Some(data) = session.line().strip_prefix("data: ")
                && data.contains("elicitation/create")
            {
                return session;
            }
        }
    }
}

/// L8: a thousand sessions, each with a connection and an open question, and the server has under 60 MiB in use.
#[test]
fn a_thousand_open_questions_cost_little_memory() {
    let server = Instance::start();
    let sessions: Vec<Session> = (0..SESSIONS).map(|_| Session::ask(&server.address)).collect();
    let resident = server.resident();
    assert!(resident < MOST, "{} KiB with {} sessions", resident / 1024, sessions.len());
}
