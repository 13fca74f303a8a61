//! What goes over the wire, on real connections too.

use std::collections::HashSet;

use roundtrip::{Client, Error, FormRequest};
use serde_json::{Value, json};

use super::script::{Answer, again, asks, done, party, replies, scripted};
use crate::peer::{next, peer};

fn declining(client: Client) -> Client {
    client.on_form(async |form: FormRequest| form.decline())
}

/// C2, C3: over HTTP, a retry has the same method, headers and parameters, a new id, the answers, and the state as it
/// came; and no state where there was none.
#[tokio::test]
async fn a_retry_is_the_same_request_with_the_answers() {
    let state = "ey\u{7f}J \"\\\u{1}✓/+=";
    let (client, mut seen) = peer(move |number, request| {
        request.result(&match number {
            0 => asks([("party", party())], Some(state)),
            1 => asks([("party", party())], None),
            _ => done(),
        })
    })
    .await;
    let client = client.on_form(async |form: FormRequest| form.accept(json!({ "people": 2 })));
    client.call_tool("book", json!({ "at": "Nopa" })).await.expect("a result");
    let mut ids = HashSet::new();
    for number in 0..3 {
        let request = next(&mut seen).await;
        assert!(ids.insert(request.body["id"].to_string()), "a new id");
        assert_eq!(request.body["method"], "tools/call");
        assert_eq!(request.header("mcp-name"), Some("book"));
        let params = &request.body["params"];
        assert_eq!((&params["name"], &params["arguments"]), (&json!("book"), &json!({ "at": "Nopa" })));
        assert_eq!(params.get("requestState"), (number == 1).then(|| json!(state)).as_ref());
        let answers = json!({ "party": { "action": "accept", "content": { "people": 2, "window": true } } });
        assert_eq!(params.get("inputResponses"), (number > 0).then_some(answers).as_ref());
        assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    }
}

/// C4: with many calls side by side, each gets its own state and its own answers back, and requests that ask nothing
/// get none.
#[tokio::test]
async fn calls_side_by_side_do_not_mix() {
    let (client, log) = scripted(|_, request| {
        let params = &request["params"];
        let name = params["name"].as_str().unwrap_or("none");
        if request["method"] == "tools/list" {
            assert!(params.get("requestState").is_none() && params.get("inputResponses").is_none());
            return Answer::Result(json!({ "tools": [] }));
        }
        let rounds = params["requestState"].as_str().map_or(0, |state| {
            let (owner, round) = state.split_once('/').expect("a state of ours");
            assert_eq!(owner, name, "somebody else's state");
            assert_eq!(
                params["inputResponses"].as_object().map(|answers| answers.keys().next().cloned()),
                Some(Some(name.to_owned()))
            );
            assert_eq!(
                params["inputResponses"][name]["content"]["people"],
                round.parse::<u64>().expect("a round")
            );
            round.parse::<u64>().expect("a round")
        });
        Answer::Result(match rounds {
            3 => done(),
            asked => asks([(name, party())], Some(&format!("{name}/{}", asked + 1))),
        })
    });
    let client = client.on_form(async |form: FormRequest| {
        tokio::task::yield_now().await;
        assert_eq!(form.origin.target.as_deref(), Some(&*form.origin.key));
        form.accept(json!({ "people": form.origin.round }))
    });
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                client.call_tool(format!("tool{number}"), ()).await.expect("a result");
                client.list_tools().await.expect("a list");
            })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic");
    }
    assert_eq!(log.len(), 50 * 5);
}

/// C4: what a retry came to is never kept, what asks is no result to keep, and a kept result does not stand in for a
/// retry.
#[tokio::test(start_paused = true)]
async fn results_of_retries_are_not_kept() {
    let read = json!({ "contents": [{ "uri": "app://x", "text": "t" }], "ttlMs": 60_000 });
    let mut first = asks([("party", party())], Some("s"));
    first["ttlMs"] = json!(60_000);
    let (client, log) = replies([first.clone(), read.clone(), first, read.clone(), read]);
    let client = declining(client);
    client.read_resource("app://x").await.expect("a resource");
    client.read_resource("app://x").await.expect("a resource");
    assert_eq!(log.len(), 4, "asked anew both times");
    client.read_resource("app://x").await.expect("a resource");
    client.read_resource("app://x").await.expect("a resource");
    assert_eq!(log.len(), 5, "an answer without questions is kept");
}

/// C15: an `input_required` with nothing in it, or on a method that may not have it, is a named error and nothing is
/// sent again. W8: so is an unknown type.
#[tokio::test]
async fn replies_that_break_the_rules_are_named() {
    let cases: [(Value, &str); 5] = [
        (json!({ "resultType": "input_required" }), "neither questions nor a state"),
        (json!({ "resultType": "input_required", "inputRequests": {}, "requestState": null }), "neither"),
        (json!({ "resultType": "riddle", "content": [] }), "`riddle`"),
        (json!({ "resultType": "task", "content": [] }), "`taskId`"),
        (asks([("q", json!({ "method": "magic/do" }))], None), "result.inputRequests.q"),
    ];
    for (result, what) in cases {
        let (client, log) = replies([result]);
        let error = declining(client).call_tool("book", ()).await.expect_err("broken rules");
        assert!(matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains(what)), "{error:?}");
        assert_eq!(log.len(), 1);
    }
    let (client, log) = replies([again("s"), again("s")]);
    let error = client.discover().await.expect_err("may not ask");
    assert!(
        matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("`server/discover`")),
        "{error:?}"
    );
    let error = client.list_tools().await.expect_err("may not ask");
    assert!(
        matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("`tools/list`")),
        "{error:?}"
    );
    assert_eq!(log.len(), 2);
}

/// I1: a transport of the user's own is given messages of one line, whatever was put into them.
#[tokio::test]
async fn any_transport_is_given_one_line_for_a_message() {
    let raw = serde_json::value::RawValue::from_string("{\n\"a\":\r\n1}".to_owned()).expect("JSON");
    let (client, log) = replies([done()]);
    client.call_tool("book", &raw).meta("com.example/m", &raw).await.expect("an answer");
    assert_eq!(log.params(0)["arguments"], json!({ "a": 1 }));
}
