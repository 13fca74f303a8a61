//! `ask.may()` for clients of the handshake eras: by revision, session, stream and declared capabilities.

use roundtrip::{Handshake, Server, Tool};
use serde_json::json;

use super::tools::{Diary, server};
use crate::may::{lines, may};
use crate::peers::{Pipe, V2025_11_25, Web, everything, initialize, initialized, text, tool};

const TOOLS: &str = "the client did not declare `sampling.tools`";

fn asking() -> Server {
    Server::new("s", "1").tool(Tool::new("may", may))
}

/// M7: in a session, a revision's own questions may be asked, and no others, whatever the client has declared.
#[tokio::test]
async fn a_revision_may_be_asked_what_it_has() {
    let mut all = everything();
    all["sampling"] = json!({ "tools": {} });
    for (version, reasons) in [
        (
            "2025-03-26",
            [
                "revision 2025-03-26 cannot ask for a form",
                "revision 2025-03-26 cannot ask for several choices at once",
                "revision 2025-03-26 cannot ask for a visit to a web page",
                "yes",
                "revision 2025-03-26 cannot ask the client's model with tools",
                "yes",
            ],
        ),
        (
            "2025-06-18",
            [
                "yes",
                "revision 2025-06-18 cannot ask for several choices at once",
                "revision 2025-06-18 cannot ask for a visit to a web page",
                "yes",
                "revision 2025-06-18 cannot ask the client's model with tools",
                "yes",
            ],
        ),
        (V2025_11_25, ["yes"; 6]),
    ] {
        let mut pipe = Pipe::agreed(asking(), version, &all).await;
        assert_eq!(text(&pipe.call(&tool(1, "may")).await), lines(reasons), "{version}");
    }
    let mut pipe = Pipe::agreed(asking(), V2025_11_25, &everything()).await;
    let declared = lines(["yes", "yes", "yes", "yes", TOOLS, "yes"]);
    assert_eq!(text(&pipe.call(&tool(1, "may")).await), declared);
}

/// M7: an old call without a stream, or without a session, may be asked nothing.
#[tokio::test]
async fn without_a_line_nothing_may_be_asked() {
    let client = Web::new(asking()).session(V2025_11_25, &everything()).await;
    let told = client.post(&tool(1, "may")).await.json().await;
    assert_eq!(text(&told), lines(["yes", "yes", "yes", "yes", TOOLS, "yes"]));
    let plain = client.with("accept", "application/json").post(&tool(2, "may")).await.json().await;
    let no_stream = "there is no stream to ask on: accept text/event-stream as well";
    assert_eq!(text(&plain), lines([no_stream; 6]));

    let web = Web::new(asking().handshake(Handshake::stateless()));
    let no_session = "there is no session to ask in: call with revision 2026-07-28, or in a session";
    for version in ["2025-06-18", V2025_11_25] {
        assert_eq!(web.post(&initialize(version, &everything())).await.status, 200);
        let client = web.with("mcp-protocol-version", version);
        assert_eq!(client.post(&initialized()).await.status, 202);
        assert_eq!(text(&client.post(&tool(1, "may")).await.json().await), lines([no_session; 6]));
    }
}

/// L5: a client that declared what its revision does not have is told that its revision has no such question, not that it
/// did not declare it.
#[tokio::test]
async fn a_revision_without_web_pages_is_named() {
    let mut pipe = Pipe::agreed(server(&Diary::default()), "2025-06-18", &everything()).await;
    let refused = pipe.call(&tool(1, "page")).await;
    assert_eq!(
        refused["error"],
        json!({
            "code": -32600,
            "message":
                "this question (`page`) cannot be asked: revision 2025-06-18 cannot ask for a visit to a web page",
        })
    );
}

/// L2: the question and the capability it needs are named to an old client too.
#[tokio::test]
async fn an_old_client_is_told_the_capability_that_a_question_needs() {
    for (name, key) in [("book", "party"), ("by_hand", "party")] {
        let mut pipe = Pipe::agreed(server(&Diary::default()), V2025_11_25, &json!({})).await;
        let refused = pipe.call(&tool(1, name)).await;
        let told =
            format!("this question (`{key}`) needs `elicitation.form`, which the client did not declare");
        assert_eq!(
            refused["error"],
            json!({
                "code": -32600,
                "message": told,
                "data": { "requiredCapabilities": { "elicitation": { "form": {} } } },
            })
        );
    }
    let client = Web::new(server(&Diary::default())).session(V2025_11_25, &everything()).await;
    let refused = client.with("accept", "application/json").post(&tool(1, "book")).await.json().await;
    let told = refused["error"]["message"].as_str().expect("a message");
    assert!(told.starts_with("this question (`party`) cannot be asked: there is no stream"), "{told}");
}
