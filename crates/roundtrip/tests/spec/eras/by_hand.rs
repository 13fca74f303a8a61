//! Rounds by hand in a session: every kind of question goes out as a request of its own.

use roundtrip::{Server, Tool};
use serde_json::{Value, json};

use crate::by_hand::kinds;
use crate::peers::{Pipe, V2025_11_25, accept, answer, everything, text, tool};

async fn pipe(version: &str) -> Pipe {
    let server = Server::new("rounds", "1").tool(Tool::new("kinds", kinds));
    Pipe::agreed(server, version, &everything()).await
}

/// Returns the answer of a client to any of the questions of `kinds`.
fn fitting(asked: &Value) -> Value {
    match asked["method"].as_str() {
        Some("roots/list") => answer(asked, json!({ "roots": [{ "uri": "file:///a" }] })),
        Some("sampling/createMessage") => {
            let hello = json!({ "type": "text", "text": "hello" });
            answer(asked, json!({ "role": "assistant", "model": "m", "content": hello }))
        }
        _ if asked["params"]["url"].is_string() => answer(asked, json!({ "action": "accept" })),
        _ if asked["params"]["message"] == "Sure?" => accept(asked, json!({ "confirm": true })),
        _ => accept(asked, json!({ "name": "Ada" })),
    }
}

/// L3: by hand, every kind of question goes out, and the handler is entered again with all answers.
#[tokio::test]
async fn every_kind_of_question_goes_out() {
    let mut pipe = pipe(V2025_11_25).await;
    pipe.send(&tool(1, "kinds")).await;
    let mut methods = Vec::new();
    for _ in 0..5 {
        let asked = pipe.receive().await;
        methods.push(asked["method"].as_str().expect("a request").to_owned());
        pipe.send(&fitting(&asked)).await;
    }
    methods.sort();
    let elicit = "elicitation/create";
    assert_eq!(methods, [elicit, elicit, elicit, "roots/list", "sampling/createMessage"]);
    assert_eq!(text(&pipe.receive().await), "\"Ada\" 2 true hello 1");
}

/// L3: by hand, an answer that does not fit is asked for again, alone.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_alone() {
    let mut pipe = pipe(V2025_11_25).await;
    pipe.send(&tool(1, "kinds")).await;
    for _ in 0..5 {
        let asked = pipe.receive().await;
        let wrong = match asked["method"].as_str() {
            Some("elicitation/create") if asked["params"]["message"] == "Which table?" => {
                accept(&asked, json!({ "name": "A" }))
            }
            Some("roots/list") => answer(&asked, json!({ "folders": [] })),
            _ => fitting(&asked),
        };
        pipe.send(&wrong).await;
    }
    for _ in 0..2 {
        let again = pipe.receive().await;
        if again["method"] == "elicitation/create" {
            let told = again["params"]["message"].as_str().expect("a message");
            assert!(told.starts_with("Which table?") && told.contains("at least 2 characters"), "{told}");
        } else {
            assert_eq!(again["method"], "roots/list");
        }
        pipe.send(&fitting(&again)).await;
    }
    assert_eq!(text(&pipe.receive().await), "\"Ada\" 2 true hello 1");
}

/// L2: by hand, a client of a revision without web pages is told so, and is asked nothing.
#[tokio::test]
async fn a_revision_without_web_pages_is_not_asked_for_one() {
    let mut pipe = pipe("2025-06-18").await;
    let refused = pipe.call(&tool(1, "kinds")).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
}
