//! The replay harness, questions as parameters, and checkpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use roundtrip::server::{Event, Limits, Peer};
use roundtrip::testing::{Effects, ReplayError, play, replay};
use roundtrip::wire::Message;
use roundtrip::{
    Answered, Args, Ask, AskError, Asked, Form, Keyring, Log, Progress, Prompt, ResourceTemplate, Server,
    State, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Form)]
struct Approval {
    #[expect(dead_code, reason = "that it was given is all that matters")]
    approve: bool,
}

fn approved() -> Value {
    json!({ "approve": true })
}

fn with(effects: &Effects, tool: Tool) -> Server {
    Server::new("s", "1").tool(tool).state(effects.clone())
}

/// A11: the harness finds an effect that is repeated by a replay, names it and the place it happened at, and has
/// nothing to say when it stands in `once`.
#[tokio::test]
async fn a_repeated_effect_is_found() {
    let effects = Effects::new();
    let careless = Tool::new("pay", async |ask: Ask, State(world): State<Effects>| {
        world.happened("reserved");
        let _: Approval = ask.form("ok", "Pay?").await?;
        Ok::<_, ToolError>("paid")
    });
    let found = replay(with(&effects, careless))
        .tool("pay", json!({}))
        .accept("ok", approved())
        .effects(&effects)
        .await;
    let Err(ReplayError::Repeated { what, place, .. }) = &found else { panic!("{found:?}") };
    assert_eq!(what, "reserved");
    assert!(place.contains("replays.rs:"), "{place}");

    let effects = Effects::new();
    let careful = Tool::new("pay", async |ask: Ask, State(world): State<Effects>| {
        let _: Approval = ask.form("ok", "Pay?").await?;
        let receipt = ask.once("pay", async |step| {
            tokio::task::yield_now().await;
            world.happened("paid");
            Ok::<_, ToolError>(step.idempotency_key().to_owned())
        });
        let receipt: String = receipt.await?;
        let _: Approval = ask.form("really", "Really?").await?;
        Ok::<_, ToolError>(receipt)
    });
    let script = replay(with(&effects, careful))
        .tool("pay", json!({}))
        .accept("ok", approved())
        .accept("really", approved());
    let result = script.effects(&effects).await.expect("nothing to find");
    assert_eq!(
        result["content"][0]["text"].as_str().map(str::len),
        Some(32),
        "the same key every time: {result}"
    );
}

/// A11: the harness finds a key that is not the same in every run, and names it.
#[tokio::test]
async fn a_volatile_key_is_found() {
    let counter = Arc::new(AtomicU32::new(0));
    let tool = Tool::new("ask", async |ask: Ask, State(counter): State<Arc<AtomicU32>>| {
        let number = counter.fetch_add(1, Ordering::SeqCst);
        let _: Approval = ask.form(format!("ok-{number}"), "Go on?").await?;
        Ok::<_, ToolError>("done")
    });
    let server = Server::new("s", "1").tool(tool).state(counter);
    let found = replay(server).tool("ask", json!({})).accept("ok-0", approved()).await;
    let Err(ReplayError::VolatileKey { before, now }) = &found else { panic!("{found:?}") };
    assert!(before.starts_with("ok-") && now.starts_with("ok-") && before != now);
}

/// A11: the harness finds a handler that takes its questions in another order, and names them.
#[tokio::test]
async fn a_changed_order_is_found() {
    let counter = Arc::new(AtomicU32::new(0));
    let tool = Tool::new("ask", async |ask: Ask, State(counter): State<Arc<AtomicU32>>| {
        let turned = counter.fetch_add(1, Ordering::SeqCst) >= 4;
        for key in if turned { ["b", "a"] } else { ["a", "b"] } {
            let _: Approval = ask.form(key, "Go on?").await?;
        }
        Ok::<_, ToolError>("done")
    });
    let server = Server::new("s", "1").tool(tool).state(counter);
    let found = replay(server).tool("ask", json!({})).accept("a", approved()).accept("b", approved()).await;
    let Err(ReplayError::ChangedOrder { first, then }) = &found else { panic!("{found:?}") };
    assert_eq!((first.as_str(), then.as_str()), ("a", "b"));
}

/// A11: a script may have several answers to one question, for each time it is asked.
#[tokio::test]
async fn a_question_may_have_several_answers() {
    #[derive(Form)]
    struct Least {
        #[form(min = 2)]
        number: u8,
    }
    let tool = || {
        Tool::new("least", async |ask: Ask| {
            let Least { number } = ask.form("number", "A number from 2?").await?;
            Ok::<_, AskError>(format!("{number} in round {}", ask.round()))
        })
    };
    let script = |answers: &[u8]| {
        let call = replay(Server::new("s", "1").tool(tool())).tool("least", json!({}));
        answers.iter().fold(call, |call, number| call.accept("number", json!({ "number": number })))
    };
    assert_eq!(script(&[0, 1, 2]).await.expect("a number")["content"][0]["text"], "2 in round 4");
    let found = script(&[0, 1]).await;
    assert!(matches!(&found, Err(ReplayError::Unfit { key, .. }) if key == "number"), "{found:?}");
}

#[derive(Deserialize, JsonSchema)]
struct Booking {
    restaurant: String,
}

#[derive(Form)]
#[form(key = "party", message = "How many people at {restaurant}?")]
struct Party {
    people: u8,
}

#[derive(Form)]
#[form(key = "when", message = "Which day?")]
struct When {
    day: String,
}

async fn book(
    Args(booking): Args<Booking>,
    Asked(party): Asked<Party>,
    Asked(when): Asked<Option<When>>,
    Asked(approval): Asked<Answered<Sure>>,
) -> String {
    let day = when.map_or_else(|| "any day".to_owned(), |when| when.day);
    let sure = matches!(approval, Answered::Accepted(Sure { sure: true }));
    format!("{} for {} on {day}, sure: {sure}", booking.restaurant, party.people)
}

#[derive(Form)]
#[form(key = "sure", message = "Sure?")]
struct Sure {
    sure: bool,
}

/// A12: questions as parameters are asked together in one round, with the call's arguments in their text, and the body
/// runs once all of them are answered.
#[tokio::test]
async fn parameters_are_asked_together() {
    let endpoint = Server::new("s", "1").tool(Tool::new("book", book)).build().expect("a server");
    let first = call(&endpoint, &json!({ "name": "book", "arguments": { "restaurant": "Nopa" } })).await;
    let questions = first["inputRequests"].as_object().expect("questions");
    assert_eq!(questions.keys().collect::<Vec<_>>(), ["party", "when", "sure"]);
    assert_eq!(questions["party"]["params"]["message"], "How many people at Nopa?");

    let server = || Server::new("s", "1").tool(Tool::new("book", book));
    let arguments = json!({ "restaurant": "Nopa" });
    let played = play(server())
        .tool("book", &arguments)
        .accept("party", json!({ "people": 2 }))
        .decline("when")
        .cancel("sure")
        .await
        .expect("a table");
    assert_eq!(played["content"][0]["text"], "Nopa for 2 on any day, sure: false");

    let refused =
        play(server()).tool("book", &arguments).decline("party").decline("when").decline("sure").await;
    let refused = refused.expect("a tool error");
    assert_eq!(
        (&refused["isError"], &refused["content"][0]["text"]),
        (&json!(true), &json!("the user declined to answer `party`"))
    );
}

/// A12, M22: prompts and templates take questions as parameters just as tools do.
#[tokio::test]
async fn prompts_and_templates_take_questions_as_parameters() {
    let server = || {
        let prompt = Prompt::new("menu", async |Args(booking): Args<Booking>, Asked(party): Asked<Party>| {
            format!("a menu for {} at {}", party.people, booking.restaurant)
        });
        let template =
            ResourceTemplate::new("table://{restaurant}", "table", async |Asked(party): Asked<Party>| {
                format!("a table for {}", party.people)
            });
        Server::new("s", "1").prompt(prompt).template(template)
    };
    let two = json!({ "people": 2 });
    let menu =
        replay(server()).prompt("menu", json!({ "restaurant": "Nopa" })).accept("party", two.clone()).await;
    assert_eq!(menu.expect("a menu")["messages"][0]["content"]["text"], "a menu for 2 at Nopa");
    let table = replay(server()).resource("table://Nopa").accept("party", two).await;
    assert_eq!(table.expect("a table")["contents"][0]["text"], "a table for 2");
    let refused = play(server()).resource("table://Nopa").decline("party").await;
    assert!(
        matches!(&refused, Err(ReplayError::Failed(why)) if why.contains("declined") && why.contains("403")),
        "{refused:?}"
    );
}

async fn call(endpoint: &roundtrip::server::Endpoint, params: &Value) -> Value {
    let request = crate::support::message(1, "tools/call", {
        let mut params = params.clone();
        let mut meta = crate::support::meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
        params["_meta"] = meta;
        params
    });
    let text = request.to_string();
    let Ok(Message::Request(request)) = Message::decode(text.as_bytes()) else { panic!("a request") };
    let decoded = endpoint.decode(&request).expect("params");
    let mut call = endpoint.begin(request.id.clone(), &decoded, &Peer::default());
    match call.event().await {
        Event::Response(Ok(result)) => serde_json::to_value(&result).expect("JSON"),
        other => panic!("{other:?}"),
    }
}

async fn report(ask: Ask, State(effects): State<Effects>) -> Result<String, AskError> {
    effects.happened("began");
    ask.checkpoint("half").await?;
    effects.happened("went on");
    Ok("reported".into())
}

/// A8, M16: a checkpoint costs nothing while the server is calm; when it drains, the round ends there with state alone,
/// and another instance carries on from it.
#[tokio::test]
async fn a_checkpoint_moves_work_only_when_draining() {
    let effects = Effects::new();
    let keys: Keyring =
        "6b6579206b6579206b6579206b6579206b6579206b6579206b6579206b657920".parse().expect("keys");
    let instance = || {
        let server = Server::new("s", "1").tool(Tool::new("report", report)).state(effects.clone());
        server.seal(keys.clone()).build().expect("a server")
    };
    let (calm, draining) = (instance(), instance());
    let plain = call(&calm, &json!({ "name": "report" })).await;
    assert_eq!((&plain["resultType"], effects.count("went on")), (&json!("complete"), 1));

    draining.drain();
    let moved = call(&draining, &json!({ "name": "report" })).await;
    assert_eq!((&moved["resultType"], moved.get("inputRequests")), (&json!("input_required"), None));
    assert_eq!(effects.count("went on"), 1, "it stopped at the checkpoint");
    let retry = json!({ "name": "report", "requestState": moved["requestState"] });
    let done = call(&calm, &retry).await;
    assert_eq!(done["content"][0]["text"], "reported");
    let done = call(&draining, &retry).await;
    assert_eq!(done["content"][0]["text"], "reported", "what has been passed is passed, wherever it lands");
}

/// A8, Z3: above the limit for shedding, calls that come to a checkpoint are handed off rather than failed.
#[tokio::test]
async fn load_is_shed_at_checkpoints() {
    let mut limits = Limits::default();
    limits.shed_above = 0;
    let server = Server::new("s", "1").tool(Tool::new("report", report)).state(Effects::new()).limits(limits);
    let moved = call(&server.build().expect("a server"), &json!({ "name": "report" })).await;
    assert_eq!(moved["resultType"], "input_required");
    assert!(moved["requestState"].is_string());
}

/// A7: asking again under a key that was refused is a mistake that ends the call; a loop around it cannot spin.
#[tokio::test]
async fn a_loop_around_a_refusal_ends() {
    let stubborn = Tool::new("stubborn", async |ask: Ask| {
        loop {
            if let Ok(Approval { .. }) = ask.form("ok", "Go on?").await {
                return "went on";
            }
        }
    });
    let ended = play(Server::new("s", "1").tool(stubborn)).tool("stubborn", json!({})).decline("ok").await;
    assert!(
        matches!(&ended, Err(ReplayError::Failed(why)) if why.contains("`ok` is used twice")),
        "{ended:?}"
    );
}

/// A8, M16: a client is handed off at a checkpoint whatever it declared: there is nothing to ask it.
#[tokio::test]
async fn a_client_that_can_be_asked_nothing_is_handed_off_too() {
    let server = Server::new("s", "1").tool(Tool::new("report", report)).state(Effects::new());
    let endpoint = server.build().expect("a server");
    endpoint.drain();
    let client = crate::support::Call::tool("report").declaring(&json!({}));
    let moved = client.begin(&endpoint).await;
    assert_eq!(moved.keys(), [""; 0]);
    assert_eq!(client.send(&endpoint, moved.state(), None).await.text(), "reported");
}

/// N2: the harness asks for progress and logs as a client does; what a replay leaves out is no change of its reply.
#[tokio::test]
async fn the_harness_hears_progress_and_logs() {
    let heard =
        Tool::new("work", async |ask: Ask, progress: Progress, log: Log, State(effects): State<Effects>| {
            progress.report((1, 2));
            log.info("begun");
            ask.once("work", async |_| {
                effects.happened("work");
                Ok::<_, ToolError>(())
            })
            .await?;
            let Approval { .. } = ask.form("approval", "Go on?").await?;
            progress.report((2, 2));
            log.info("approved");
            Ok::<_, ToolError>("done")
        });
    let effects = Effects::new();
    let flow = replay(with(&effects, heard)).tool("work", json!({})).accept("approval", approved());
    assert_eq!(flow.effects(&effects).await.expect("no fault")["content"][0]["text"], "done");
}
