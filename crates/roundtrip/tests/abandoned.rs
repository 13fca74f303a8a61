//! What a server keeps of flows that nobody comes back to: nothing. This has a process of its own, whose memory no
//! other test disturbs.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

use roundtrip::server::{Endpoint, Event, Peer};
use roundtrip::wire::{Message, ServerResult};
use roundtrip::{Ask, Form, Server, Tool, ToolError};

#[derive(Form)]
struct Party {
    people: u8,
}

async fn book(ask: Ask) -> Result<String, ToolError> {
    let held: String = ask.once("held", async |_| Ok::<_, ToolError>("a table".to_owned())).await?;
    let party: Party = ask.form("party", "How many people?").await?;
    Ok(format!("{} {held}", party.people))
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"book","_meta":{
    "io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}"#;

async fn begin_and_go_away(endpoint: &Endpoint) {
    let Ok(Message::Request(request)) = Message::decode(CALL.as_bytes()) else { panic!("a request") };
    let decoded = endpoint.decode(&request).expect("a call");
    let mut call = endpoint.begin(request.id, &decoded, &Peer::default());
    match call.event().await {
        Event::Response(Ok(ServerResult::InputRequired(asked))) => assert!(asked.request_state.is_some()),
        other => panic!("{other:?}"),
    }
}

/// How much memory this process has in use.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages");
    // The smallest page there is: larger ones make the test stricter.
    pages * 4096
}

/// M8: a hundred thousand flows that were asked and never answered leave the server's memory where it was.
#[test]
fn abandoned_flows_leave_nothing_behind() {
    let endpoint = Server::new("rounds", "1").tool(Tool::new("book", book)).build().expect("a server");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        for _ in 0..1000 {
            begin_and_go_away(&endpoint).await;
        }
        let before = resident();
        for _ in 0..100_000 {
            begin_and_go_away(&endpoint).await;
        }
        let grown = resident().saturating_sub(before);
        assert!(grown <= 2 * 1024 * 1024, "{grown} bytes more");
    });
}
