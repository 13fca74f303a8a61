//! The examples run, and do what they say.

#![cfg(feature = "client")]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;

use roundtrip::Client;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// An example's program. `cargo test` builds those examples that have no test of their own before it runs any test;
/// the others it builds as tests, so that their programs may be missing.
fn program(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().expect("our own path");
    path.pop();
    path.pop();
    let path = path.join("examples").join(name);
    if !path.exists() {
        let mut build = std::process::Command::new(env!("CARGO"));
        let built = build.args(["build", "--quiet", "--workspace", "--examples"]).status().expect("cargo");
        assert!(built.success() && path.exists(), "{} cannot be built", path.display());
    }
    path
}

async fn output(name: &str, arguments: &[&str]) -> String {
    let said = Command::new(program(name)).args(arguments).output().await.expect("an example that runs");
    assert!(said.status.success(), "{name}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).expect("text")
}

/// An address nobody listens at just now.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

/// Starts a server and waits until it takes connections; it ends with the test.
async fn serve(name: &str, address: SocketAddr) -> Child {
    let mut command = Command::new(program(name));
    command.arg(address.to_string()).stdout(Stdio::null()).kill_on_drop(true);
    let mut server = command.spawn().expect("a server");
    while TcpStream::connect(address).await.is_err() {
        assert_eq!(server.try_wait().expect("a status"), None, "{name} has ended");
        tokio::task::yield_now().await;
    }
    server
}

#[tokio::test]
async fn hello_client_calls_hello_server() {
    let address = free_address();
    let _server = serve("hello-server", address).await;
    let said = output("hello-client", &[&format!("http://{address}/mcp")]).await;
    assert_eq!(said, "greet: Say hello\nHello, Ada!\n");
}

#[tokio::test]
async fn axum_mount_knows_who_is_calling() {
    let address = free_address();
    let _server = serve("axum-mount", address).await;
    let client = Client::http(format!("http://{address}/mcp")).expect("a URL").header("x-user", "ada");
    let result = client.call_tool("whoami", json!({})).await.expect("an answer");
    assert_eq!(result.content[0].as_text(), Some("ada, known as Some(\"ada\")"));
}

#[cfg(feature = "authorize")]
#[tokio::test]
async fn authorized_server_tells_what_each_caller_lacks() {
    let said = output("authorized-server", &[]).await;
    let expected = "nobody: 401, needs files:read
nobody: 401, needs files:read
alice: a file of alice
alice: 403, needs files:read files:write
bob: a file of bob
bob: 403, needs files:read files:write files:write:inbox
carol: a file of carol
carol: written to inbox
";
    assert_eq!(said, expected);
}

#[cfg(feature = "authorize")]
#[tokio::test]
async fn authorized_in_axum_publishes_its_metadata() {
    let said = output("authorized-in-axum", &[]).await;
    let expected =
        "metadata at /.well-known/oauth-protected-resource/mcp\nSome((Some(\"alice\"), Some(\"agent\")))\n";
    assert_eq!(said, expected);
}

/// A client that listens does not keep the example from stopping: its stream ends first.
#[cfg(unix)]
#[tokio::test]
async fn axum_mount_drains_at_ctrl_c() {
    let address = free_address();
    let mut server = serve("axum-mount", address).await;
    let client = Client::http(format!("http://{address}/mcp")).expect("a URL");
    let mut changes = client.listen().tools().await.expect("a stream");
    let id = server.id().expect("a process").to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().await.expect("a signal");
    assert!(sent.success());
    assert!(changes.next().await.is_none(), "the stream ends with its result");
    assert!(server.wait().await.expect("a status").success());
}

#[tokio::test]
async fn stdio_adds_in_a_child_process() {
    assert_eq!(output("stdio", &[]).await, "40 + 2 = 42\n");
}

/// The manual shows this output.
#[tokio::test]
async fn parts_are_shown_as_they_come() {
    let said = output("streaming", &[]).await;
    let manual = include_str!("../../../docs/manual/streaming.md");
    assert!(said.starts_with("part: \"A crate \"\n"), "{said}");
    assert!(manual.contains(&format!("--example streaming\n{said}```")), "{said}");
}

#[tokio::test]
async fn notifications_are_shown_as_they_come() {
    let said = output("notifications", &[]).await;
    assert_eq!(said.lines().count(), 6, "{said}");
    assert!(
        said.contains("2 of Some(3.0): rising\n") && said.contains("changed: Tools\n3 tools now\n"),
        "{said}"
    );
}

#[tokio::test]
async fn structured_output_is_a_type_again() {
    let said = output("structured-output", &[]).await;
    assert!(said.starts_with("Weather { temperature: -3.5, conditions: \"snow\" }\n"), "{said}");
    assert!(said.contains("no weather station in Atlantis"), "{said}");
}

#[tokio::test]
async fn asking_examples_end_with_their_answers() {
    for (name, last_line) in [
        ("ask-inline", "Nopa for 2 on 2026-12-24"),
        ("ask-as-parameter", "Nopa for 4, anywhere"),
        ("ask-if-needed", "RT2: Aisle, no meal"),
        ("ask-together", "Hello, Ada! You work on 1 folder."),
        ("ask-reentrant", "Nopa for 2 in round 2"),
        ("round-kinds", "next of file:///projects: all better, in round 3"),
        ("client-by-hand", "a table for 2"),
        ("resume-elsewhere", "answered by another process: published"),
        ("once-and-ledger", "with a ledger: 1 payment"),
        ("task-elsewhere", "42 rows archived"),
        ("test-your-tool", "careful: \"ada sent one\""),
        ("work-item", "by_hand: bug 4522: duplicate of bug 4301"),
        ("long-task", "result: 42 rows published"),
        ("rounds-then-task", "in one call: 42 rows as csv in the archive"),
    ] {
        let said = output(name, &[]).await;
        assert_eq!(said.lines().last(), Some(last_line), "{name}: {said}");
    }
}

#[tokio::test]
async fn audit_log_has_a_line_for_every_round() {
    let said = output("audit-log", &[]).await;
    let calls: Vec<&str> = said.lines().filter(|line| line.starts_with("anonymous tools/call")).collect();
    assert_eq!(calls.len(), 3, "{said}");
    assert!(calls[0].contains("asked [\"sure\"]") && calls[1].contains("completed"), "{said}");
}

#[tokio::test]
async fn keys_are_rotated_under_a_flow() {
    let said = output("key-rotation", &[]).await;
    assert_eq!(said.lines().filter(|line| line.ends_with(": deleted")).count(), 3, "{said}");
}
