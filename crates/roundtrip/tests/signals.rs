//! A server that is told to stop, as a process of its own.

#![cfg(all(unix, feature = "client"))]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

use std::process::Stdio;

use roundtrip::{Client, Server, Tool};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// Variable that makes a test the server that another process of the same test talks to.
const ROLE: &str = "ROUNDTRIP_TEST_SERVES";

/// Serves a tool that never ends, until it is told to stop.
async fn serve() {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let tool = Tool::new("hang", async || {
        tracing::info!("the tool hangs");
        std::future::pending::<&str>().await
    });
    Server::new("s", "1").tool(tool).serve_http("127.0.0.1:0").await.expect("an end in good order");
}

struct Running {
    process: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Running {
    /// Starts the named test as a server.
    fn start(test: &str) -> Self {
        let program = std::env::current_exe().expect("our own path");
        let mut process = Command::new(program)
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let log = BufReader::new(process.stderr.take().expect("its log")).lines();
        Self { process, log }
    }

    /// Reads the log up to a line that contains some words; returns that line.
    async fn line(&mut self, words: &str) -> String {
        loop {
            let line = self.log.next_line().await.expect("a log");
            let line = line.unwrap_or_else(|| panic!("the log ended without {words:?}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    fn interrupt(&self) {
        let id = self.process.id().expect("a process that runs").to_string();
        let sent = std::process::Command::new("kill").args(["-INT", &id]).status().expect("`kill`");
        assert!(sent.success());
    }
}

/// A server says where it listens; the first ctrl-c waits for the calls that run and says so, the second stops at once.
#[tokio::test]
async fn a_second_ctrl_c_stops_at_once() {
    if std::env::var_os(ROLE).is_some() {
        return serve().await;
    }
    let mut server = Running::start("a_second_ctrl_c_stops_at_once");
    let said = server.line("serving MCP at ").await;
    let url = said.split_once("serving MCP at ").expect("a URL").1.trim().to_owned();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{url}");

    let client = Client::http(&url).expect("a URL");
    let calling = tokio::spawn(async move { client.call_tool("hang", json!({})).await });
    server.line("the tool hangs").await;

    server.interrupt();
    let said = server.line("waiting for ").await;
    assert!(
        said.contains("waiting for running calls (1)") && said.contains("a second signal stops at once"),
        "{said}"
    );
    assert_eq!(server.process.try_wait().expect("a status"), None, "it waits");

    server.interrupt();
    server.line("stopped before all calls had ended (running: 1)").await;
    let ended = server.process.wait().await.expect("a status");
    assert!(ended.success(), "{ended}");
    calling.await.expect("no panic").expect_err("the call was cut off");
}

/// An address that cannot be bound is in the error.
#[tokio::test]
async fn a_bind_error_names_the_address() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = taken.local_addr().expect("its address").to_string();
    let error = Server::new("s", "1").serve_http(address.as_str()).await.expect_err("it is taken");
    let text = error.to_string();
    assert!(text.contains(&address) && text.starts_with("cannot bind"), "{text}");
    let error = Server::new("s", "1").serve_http("no such host:1").await.expect_err("there is none");
    assert!(error.to_string().contains("no such host:1"), "{error}");
}
