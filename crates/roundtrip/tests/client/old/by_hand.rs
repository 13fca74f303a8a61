//! Calls at old servers, taken one request at a time.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::wire::GetPrompt;
use roundtrip::{Error, Pending, Turn};
use serde_json::json;

use super::server::{Old, Reply, Seen, form, stream};
use crate::fixture::text;

/// Asks who is there, and greets whoever it is.
fn greets(old: &Arc<Old>, seen: &Seen) -> Option<Reply> {
    ["tools/call", "prompts/get"].contains(&seen.method()).then(|| {
        let (sender, reply) = stream();
        let (old, seen) = (Arc::clone(old), seen.clone());
        tokio::spawn(async move {
            sender.message(&form(format!("q{}", seen.body["id"]), "Who?"));
            let answer = old.response(&json!(format!("q{}", seen.body["id"]))).await;
            let name = answer["result"]["content"]["name"].as_str().unwrap_or("nobody").to_owned();
            sender.message(&match seen.method() {
                "tools/call" => seen.says(&name),
                _ => seen.result(&json!({ "messages": [
                    { "role": "user", "content": { "type": "text", "text": name } }] })),
            });
        });
        reply
    })
}

fn asked<M: roundtrip::wire::Method>(turn: Turn<M>) -> Pending<M> {
    match turn {
        Turn::Asked(pending) => pending,
        done => panic!("a question, not {done:?}"),
    }
}

/// L7: `once` and `resume` work at old servers as at modern ones, for tools and prompts, also by way of storage.
#[tokio::test]
async fn a_call_is_taken_turn_by_turn() {
    let (client, old) = Old::start(greets).await;
    let pending = asked(client.call_tool("greet", ()).once().await.expect("a question"));
    let question = pending.open().next().expect("a question");
    assert_eq!((question.key(), question.message()), ("elicitation-1", Some("Who?")));
    let stored = serde_json::to_string(&pending).expect("it can be stored");
    let pending: Pending = serde_json::from_str(&stored).expect("and read");
    let pending = pending.answer("elicitation-1", json!({ "name": "Ada" })).expect("it fits");
    match client.resume(pending).await.expect("an answer") {
        Turn::Done(result) => assert_eq!(text(&result), "Ada"),
        other => panic!("a result, not {other:?}"),
    }
    let pending: Pending<GetPrompt> = asked(client.get_prompt("p").once().await.expect("a question"));
    let turn = client.resume(pending.decline("elicitation-1").expect("it fits")).await.expect("an answer");
    assert!(matches!(turn, Turn::Done(result) if result.messages.len() == 1));
    let greeted = old.wait(|seen| seen.method() == "initialize").await;
    assert_eq!(greeted.body["params"]["capabilities"]["elicitation"], json!({ "form": {}, "url": {} }));
}

/// L7: a session that cannot be asked makes way for one that can, with everything that either needs.
#[tokio::test]
async fn a_session_is_widened_for_whoever_can_do_more() {
    let (client, old) = Old::start(greets).await;
    let client = client.roots(["file:///x"]);
    client.list_tools().await.expect("tools");
    asked(client.call_tool("greet", ()).once().await.expect("a question"));
    client.list_tools().await.expect("tools");
    let seen = old.seen();
    let greetings: Vec<_> = seen.iter().filter(|seen| seen.method() == "initialize").collect();
    assert_eq!(greetings.len(), 2);
    let capabilities = &greetings[1].body["params"]["capabilities"];
    assert_eq!(*capabilities, json!({ "roots": {}, "elicitation": { "form": {}, "url": {} } }));
    let last = seen.iter().rfind(|seen| seen.method() == "tools/list").expect("a list");
    assert_eq!(last.header("mcp-session-id"), Some("session-1"), "the wider one serves both");
}

/// L7: an open call can be gone on with by the client that began it, once; anything else is an error that says so.
#[tokio::test]
async fn an_open_call_is_gone_on_with_here_and_once() {
    let (client, _old) = Old::start(greets).await;
    let (elsewhere, _other) = Old::start(greets).await;
    let pending = asked(client.call_tool("greet", ()).once().await.expect("a question"));
    let pending = pending.answer("elicitation-1", json!({ "name": "Ada" })).expect("it fits");
    let error = elsewhere.resume(pending.clone()).await.expect_err("another client");
    assert!(
        matches!(&error, Error::ApiMisuse(why) if why.to_string().contains("make the call anew")),
        "{error:?}"
    );
    let turn = client.resume(pending.clone()).await.expect("an answer");
    assert!(matches!(turn, Turn::Done(_)));
    let error = client.resume(pending).await.expect_err("it is over");
    assert!(matches!(&error, Error::ApiMisuse(_)), "{error:?}");
}

/// L7: a call that nobody goes on with is given up after a while, and the server is told.
#[tokio::test]
async fn a_call_nobody_goes_on_with_is_given_up() {
    let (client, old) = Old::start(greets).await;
    let pending = asked(client.call_tool("greet", ()).once().await.expect("a question"));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(601)).await;
    tokio::time::resume();
    old.wait(|seen| seen.method() == "notifications/cancelled").await;
    let pending = pending.answer("elicitation-1", json!({ "name": "Ada" })).expect("it fits");
    assert!(matches!(client.resume(pending).await, Err(Error::ApiMisuse(_))));
}

/// L7: a round that is refused by hand is given up at the server at once.
#[tokio::test]
async fn a_round_that_is_refused_is_cancelled() {
    let (client, old) = Old::start(greets).await;
    let call = client.call_tool("greet", ()).once().on_round(|_| Err(std::io::Error::other("not today")));
    let error = call.await.expect_err("refused");
    assert!(matches!(error, Error::Handler(_)), "{error}");
    old.wait(|seen| seen.method() == "notifications/cancelled").await;
}
