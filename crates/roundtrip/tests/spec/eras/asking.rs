//! Asking an old client: real requests go out while the handler waits where it stands.

use std::time::Duration;

use roundtrip::Handshake;
use serde_json::{Value, json};

use super::tools::{Diary, server};
use crate::peers::{Pipe, V2025_11_25, accept, answer, everything, request, text, tool};

async fn pipe(diary: &Diary) -> Pipe {
    Pipe::agreed(server(diary), V2025_11_25, &everything()).await
}

fn error(to: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": to["id"], "error": { "code": code, "message": message } })
}

/// L2: a handler that asks works unchanged: its questions go out as requests, one after the other, and it waits where it
/// stands, so that what it did before them is done once.
#[tokio::test]
async fn questions_go_out_while_the_handler_waits() {
    let diary = Diary::default();
    let mut pipe = pipe(&diary).await;
    let party = pipe.call(&tool(1, "book")).await;
    assert_eq!(party["method"], "elicitation/create");
    assert_eq!(party["params"]["message"], "How many people?");
    assert_eq!(party["params"]["requestedSchema"]["properties"]["people"]["maximum"], 12);
    let day = pipe.call(&accept(&party, json!({ "people": 2 }))).await;
    assert_eq!(day["params"]["message"], "Which day?");
    assert_ne!(day["id"], party["id"]);
    assert_eq!(diary.read(), ["run"]);
    let booked = pipe.call(&accept(&day, json!({ "day": "Friday" }))).await;
    assert_eq!((text(&booked), &booked["id"]), ("2 on Friday, round 1", &json!(1)));
    assert_eq!(diary.read(), ["run", "dropped"]);
}

/// L2: questions asked together go out together, and may be answered in any order.
#[tokio::test]
async fn questions_asked_together_go_out_together() {
    let mut pipe = pipe(&Diary::default()).await;
    pipe.send(&tool(1, "together")).await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(pipe.receive().await);
    }
    let find = |method: &str| asked.iter().find(|one| one["method"] == method).expect(method).clone();
    pipe.send(&answer(
        &find("roots/list"),
        json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] }),
    ))
    .await;
    pipe.send(&answer(
        &find("sampling/createMessage"),
        json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "hello" } }),
    ))
    .await;
    let done = pipe.call(&accept(&find("elicitation/create"), json!({ "people": 3 }))).await;
    assert_eq!(text(&done), "3, hello, 2 roots");
}

/// L2: an answer that does not fit is asked for again, and the user is told what was wrong; what was answered stays.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let diary = Diary::default();
    let mut pipe = pipe(&diary).await;
    let mut party = pipe.call(&tool(1, "book")).await;
    for misfit in [json!({ "people": 99 }), json!({ "people": "2" }), json!({})] {
        party = pipe.call(&accept(&party, misfit)).await;
        assert_eq!(party["method"], "elicitation/create");
        let told = party["params"]["message"].as_str().expect("a message");
        assert!(told.contains("How many people?") && told.contains("people"), "{told}");
    }
    let day = pipe.call(&accept(&party, json!({ "people": 2 }))).await;
    assert_eq!(day["params"]["message"], "Which day?");
    assert_eq!(diary.read(), ["run"], "the handler waits all the while");
}

/// L2: after ten times of that the call ends, and the model is told.
#[tokio::test]
async fn asking_again_has_an_end() {
    let mut pipe = pipe(&Diary::default()).await;
    let mut message = pipe.call(&tool(1, "book")).await;
    let mut asked = 0;
    while message["method"] == "elicitation/create" {
        asked += 1;
        message = pipe.call(&accept(&message, json!({ "people": 99 }))).await;
    }
    assert_eq!(asked, 11);
    assert_eq!(message["result"]["isError"], true, "{message}");
    assert!(text(&message).contains("`party` was asked 11 times"), "{message}");
}

/// L2: a refusal means what it means to any client.
#[tokio::test]
async fn a_refusal_ends_in_a_tool_error() {
    for (action, told) in [("decline", "declined"), ("cancel", "dismissed")] {
        let mut pipe = pipe(&Diary::default()).await;
        let party = pipe.call(&tool(1, "book")).await;
        let done = pipe.call(&answer(&party, json!({ "action": action }))).await;
        assert_eq!(done["result"]["isError"], true, "{done}");
        assert!(text(&done).contains(told), "{done}");
    }
}

/// L2: prompts and resource templates ask as tools do.
#[tokio::test]
async fn prompts_and_templates_ask_too() {
    let mut pipe = pipe(&Diary::default()).await;
    let day = pipe.call(&request(1, "prompts/get", json!({ "name": "asking" }))).await;
    let done = pipe.call(&accept(&day, json!({ "day": "Friday" }))).await;
    assert_eq!(done["result"]["messages"][0]["content"]["text"], "what happens on Friday");
    let day = pipe.call(&request(2, "resources/read", json!({ "uri": "test://asking/tea" }))).await;
    let done = pipe.call(&accept(&day, json!({ "day": "Sunday" }))).await;
    assert_eq!(done["result"]["contents"][0]["text"], "tea on Sunday");
}

/// L3: a handler that takes its rounds by hand is entered again with all answers, and its questions go out together.
#[tokio::test]
async fn rounds_by_hand_are_resolved_and_entered_again() {
    let diary = Diary::default();
    let mut pipe = pipe(&diary).await;
    pipe.send(&tool(1, "by_hand")).await;
    let (one, other) = (pipe.receive().await, pipe.receive().await);
    for asked in [&one, &other] {
        let is_day = asked["params"]["message"] == "Which day?";
        let content = if is_day { json!({ "day": "Friday" }) } else { json!({ "people": 2 }) };
        pipe.send(&accept(asked, content)).await;
    }
    assert_eq!(text(&pipe.receive().await), "2 on Friday");
    assert_eq!(diary.read(), ["run", "run"]);
}

/// L3: at most ten times.
#[tokio::test]
async fn rounds_by_hand_have_an_end() {
    let diary = Diary::default();
    let mut pipe = pipe(&diary).await;
    let mut message = pipe.call(&tool(1, "by_hand")).await;
    while message["method"] == "elicitation/create" {
        // Neither question is ever answered with what it asks for.
        message = pipe.call(&accept(&message, json!({}))).await;
    }
    assert_eq!(message["result"]["isError"], true, "{message}");
    assert!(text(&message).contains("10 times"), "{message}");
    assert_eq!(diary.read().len(), 11);
}

/// L3: a round without a question is entered again, with its state.
#[tokio::test(start_paused = true)]
async fn rounds_that_only_hand_over_go_on_by_themselves() {
    let diary = Diary::default();
    let mut pipe = pipe(&diary).await;
    assert_eq!(text(&pipe.call(&tool(1, "handing_off")).await), "handed off twice");
    assert_eq!(diary.read(), ["done 0", "done 1", "done 2"]);
}

/// L2: how long people think is bounded by a setting of its own, and what they were shown is taken back.
#[tokio::test(start_paused = true)]
async fn a_client_that_never_answers_does_not_hold_a_handler_for_ever() {
    let diary = Diary::default();
    let server = server(&diary).handshake(Handshake::sessions().answer_within(Duration::from_secs(90)));
    let mut pipe = Pipe::agreed(server, V2025_11_25, &everything()).await;
    let begun = tokio::time::Instant::now();
    let party = pipe.call(&tool(1, "book")).await;
    let taken_back = pipe.receive().await;
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], party["id"]);
    let done = pipe.receive().await;
    assert_eq!(done["result"]["isError"], true, "{done}");
    assert!(text(&done).contains("the client did not answer within 90s"), "{done}");
    assert_eq!(begun.elapsed().as_secs(), 90);
    assert_eq!(diary.read(), ["run", "dropped"]);
}

/// L2: a client that fails to answer is not asked again: the model is told what the client said.
#[tokio::test]
async fn a_client_that_answers_with_an_error_ends_the_call() {
    let mut pipe = pipe(&Diary::default()).await;
    let party = pipe.call(&tool(1, "book")).await;
    let done = pipe.call(&error(&party, -1, "the user rejected it")).await;
    assert_eq!(done["result"]["isError"], true, "{done}");
    assert!(text(&done).contains("the user rejected it"), "{done}");
}

/// L2: a question that nobody waits for any more is taken back.
#[tokio::test]
async fn a_question_that_is_dropped_is_taken_back() {
    let mut pipe = pipe(&Diary::default()).await;
    pipe.send(&tool(1, "either")).await;
    let (one, other) = (pipe.receive().await, pipe.receive().await);
    let (party, day) = if one["params"]["message"] == "Which day?" { (other, one) } else { (one, other) };
    pipe.send(&accept(&day, json!({ "day": "Friday" }))).await;
    let (mut taken_back, mut done) = (pipe.receive().await, pipe.receive().await);
    if taken_back["method"].is_null() {
        std::mem::swap(&mut taken_back, &mut done);
    }
    assert_eq!(taken_back["params"]["requestId"], party["id"], "{taken_back}");
    assert_eq!(text(&done), "on Friday");
}

/// L2: a client that hangs up, or cancels the call, ends the handler that waits for it.
#[tokio::test]
async fn a_client_that_goes_takes_its_handlers_along() {
    let diary = Diary::default();
    let mut gone = pipe(&diary).await;
    gone.call(&tool(1, "book")).await;
    gone.hang_up().await;
    assert_eq!(diary.read(), ["run", "dropped"]);

    let diary = Diary::default();
    let mut pipe = pipe(&diary).await;
    pipe.call(&tool("call", "book")).await;
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "call" } });
    pipe.send(&cancelled).await;
    // The next answer is that of the next request: of the cancelled one nothing is heard.
    assert_eq!(
        pipe.call(&request(2, "ping", json!({}))).await,
        json!({ "jsonrpc": "2.0", "id": 2, "result": {} })
    );
    pipe.hang_up().await;
    assert_eq!(diary.read(), ["run", "dropped"]);
}

/// L2: what the client did not declare it is not asked, and is told what it would take.
#[tokio::test]
async fn a_client_is_not_asked_what_it_did_not_declare() {
    let diary = Diary::default();
    let mut pipe = Pipe::agreed(server(&diary), V2025_11_25, &json!({ "elicitation": {} })).await;
    let refused = pipe.call(&tool(1, "page")).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(refused["error"]["data"]["requiredCapabilities"]["elicitation"]["url"].is_object(), "{refused}");
    // Naming no mode at all means forms.
    assert_eq!(pipe.call(&tool(2, "book")).await["method"], "elicitation/create");
}

/// L2: a step is remembered, a place to hand over is passed by, and a wait looks again, all in one session.
#[tokio::test(start_paused = true)]
async fn steps_and_waits_work_in_a_session() {
    let diary = Diary::default();
    let mut pipe = pipe(&diary).await;
    let day = pipe.call(&tool(1, "patient")).await;
    let begun = tokio::time::Instant::now();
    let done = pipe.call(&accept(&day, json!({ "day": "Friday" }))).await;
    assert_eq!(text(&done), "Friday, after 3 looks");
    assert_eq!(begun.elapsed().as_millis(), 100 + 200, "pauses between the looks");
    let steps = diary.read().iter().filter(|what| *what == "step").count();
    assert_eq!(steps, 1, "{:?}", diary.read());
}

/// L3: an answer that is none is asked for again, by hand as well.
#[tokio::test]
async fn what_is_no_answer_is_asked_for_again_by_hand() {
    let mut pipe = pipe(&Diary::default()).await;
    pipe.send(&tool(1, "by_hand")).await;
    for asked in [pipe.receive().await, pipe.receive().await] {
        pipe.send(&answer(&asked, json!({ "action": "shrug" }))).await;
    }
    assert_eq!(pipe.receive().await["method"], "elicitation/create");
}
