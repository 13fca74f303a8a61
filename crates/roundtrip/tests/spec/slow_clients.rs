//! Clients over HTTP that do not read, and clients that hang up with more to say.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::http::HttpLimits;
use roundtrip::server::Limits;
use roundtrip::{Log, Server, Tool};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::{Connection, Running, headers, message, meta};

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

fn impatient() -> HttpLimits {
    let mut limits = HttpLimits::default();
    limits.write_timeout = Duration::from_millis(200);
    limits
}

async fn send(connection: &mut Connection, call: &Value) {
    connection.send("POST", &headers(call), call.to_string().as_bytes()).await;
}

/// H7: a client that never reads its stream loses its connection, and its call the place among those that may run.
#[tokio::test]
async fn a_client_that_never_reads_its_stream_loses_its_place() {
    let dropped = Arc::new(Notify::new());
    let dropping = Arc::clone(&dropped);
    let flood = Tool::new("flood", move |log: Log| {
        let guard = Dropped(Arc::clone(&dropping));
        async move {
            let _guard = guard;
            let text = "x".repeat(64 * 1024);
            loop {
                log.error(&text);
                tokio::task::yield_now().await;
            }
            #[expect(unreachable_code, reason = "it says what the loop would return")]
            ""
        }
    });
    let mut limits = Limits::default();
    limits.concurrent_calls = 1;
    let server = Server::new("s", "1").tool(flood).tool(Tool::new("quick", async || "ok")).limits(limits);
    let running = Running::start_with(server, impatient()).await;
    let mut meta = meta();
    meta["io.modelcontextprotocol/logLevel"] = json!("debug");
    let mut silent = running.connect().await;
    send(&mut silent, &message(1, "tools/call", json!({ "name": "flood", "_meta": meta }))).await;
    timeout(PATIENCE, dropped.notified()).await.expect("the call ends with its connection");
    assert_eq!(running.call("tools/call", json!({ "name": "quick" })).await.status, 200);
}

/// H7: a client that never reads its answer loses its connection, and makes room for another one.
#[tokio::test]
async fn a_client_that_never_reads_its_answer_loses_its_connection() {
    let server = Server::new("s", "1")
        .tool(Tool::new("large", async || "x".repeat(32 * 1024 * 1024)))
        .tool(Tool::new("quick", async || "ok"));
    let mut limits = impatient();
    limits.connections = 1;
    let running = Running::start_with(server, limits).await;
    let mut silent = running.connect().await;
    send(&mut silent, &message(1, "tools/call", json!({ "name": "large" }))).await;
    let next = timeout(PATIENCE, running.call("tools/call", json!({ "name": "quick" }))).await;
    assert_eq!(next.expect("there is room").status, 200);
}

/// H7: the time for the next head does not run while the client reads the answer before it.
#[tokio::test]
async fn a_client_that_reads_slowly_has_its_whole_answer() {
    const SIZE: usize = 32 * 1024 * 1024;
    let server = Server::new("s", "1").tool(Tool::new("large", async || "x".repeat(SIZE)));
    let mut limits = HttpLimits::default();
    limits.head_timeout = Duration::from_millis(400);
    let running = Running::start_with(server, limits).await;
    let mut slow = running.connect().await;
    send(&mut slow, &message(1, "tools/call", json!({ "name": "large" }))).await;
    assert_eq!(slow.head().await.status, 200);
    let (mut read, mut piece) = (0, vec![0; SIZE / 8]);
    while read < SIZE {
        tokio::time::sleep(limits.head_timeout / 2).await;
        assert_eq!(slow.bytes(&mut piece).await, piece.len(), "closed after {read} bytes");
        read += piece.len();
    }
}

/// H7: a stream on which there is nothing to say is not cut, however long that takes: only blocked writes count.
#[tokio::test]
async fn an_idle_stream_is_not_cut() {
    let server = Server::new("s", "1").tool(Tool::new("t", async || "ok"));
    let catalog = server.catalog();
    let mut limits = HttpLimits::default();
    limits.write_timeout = Duration::from_millis(20);
    limits.keep_alive = Duration::from_millis(100);
    let running = Running::start_with(server, limits).await;
    let mut listening = running.connect().await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    send(&mut listening, &message(1, "subscriptions/listen", filter)).await;
    assert_eq!(listening.head().await.status, 200);
    listening.event().await.expect("an acknowledgement");
    for _ in 0..2 {
        assert_eq!(listening.chunk().await.as_deref(), Some(":\n\n"), "a sign of life, much later");
    }
    catalog.add(Tool::new("another", async || "ok")).expect("a new tool");
    let changed = listening.event().await.expect("a change");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
}

/// A tool that never ends, with what tells that it has started, and what tells that it was dropped.
fn forever() -> (Tool, Arc<Notify>, Arc<Notify>) {
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (starting, dropping) = (Arc::clone(&started), Arc::clone(&dropped));
    let tool = Tool::new("forever", move |log: Log| {
        let (started, guard) = (Arc::clone(&starting), Dropped(Arc::clone(&dropping)));
        async move {
            let _guard = guard;
            log.error("begun");
            started.notify_one();
            std::future::pending::<String>().await
        }
    });
    (tool, started, dropped)
}

/// H5: hanging up cancels the handler, also where the client has begun to send its next request.
#[tokio::test]
async fn hanging_up_after_a_pipelined_byte_cancels_the_handler() {
    let (tool, started, dropped) = forever();
    let running = Running::start(Server::new("s", "1").tool(tool)).await;
    for (level, pipelined) in [("emergency", 1), ("emergency", 40_000), ("debug", 1), ("debug", 40_000)] {
        let mut meta = meta();
        meta["io.modelcontextprotocol/logLevel"] = json!(level);
        let mut connection = running.connect().await;
        send(&mut connection, &message(1, "tools/call", json!({ "name": "forever", "_meta": meta }))).await;
        started.notified().await;
        if level == "debug" {
            assert_eq!(connection.head().await.header("content-type"), Some("text/event-stream"));
            connection.event().await.expect("a message");
        }
        connection.raw(&vec![b'P'; pipelined]).await;
        drop(connection);
        let cancelled = timeout(PATIENCE, dropped.notified()).await;
        assert!(cancelled.is_ok(), "{pipelined} bytes, {level}");
    }
}

/// H5: what is read ahead while a call runs is not lost: pipelined requests get their answers, in order.
#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::new("s", "1").tool(Tool::new("slow", async || {
        tokio::task::yield_now().await;
        "ok"
    }));
    let running = Running::start(server).await;
    let mut connection = running.connect().await;
    // More than is read ahead, so that some of it has to wait.
    let padding = "x".repeat(10_000);
    for id in 0..20 {
        let params = json!({ "name": "slow", "arguments": { "padding": padding } });
        send(&mut connection, &message(id, "tools/call", params)).await;
    }
    for id in 0..20 {
        let head = connection.head().await;
        let length = head.header("content-length").expect("a length").parse().expect("a number");
        let body: Value = serde_json::from_str(&connection.exactly(length).await).expect("JSON");
        assert_eq!(body["id"], id);
    }
}
