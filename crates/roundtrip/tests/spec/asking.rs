//! Asking inline: what a handler that stops where it stands can count on.

use std::collections::BTreeSet;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use roundtrip::server::{Endpoint, Step};
use roundtrip::wire::{CallToolResult, CreateMessageRequestParams, ElicitSchema};
use roundtrip::{
    Answered, Ask, AskError, Form, Prompt, Question, Resource, ResourceTemplate, Round, Server, State, Tool,
    ToolError, Uri,
};
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::{join, try_join};

use crate::support::{Call, accept};

#[derive(Form)]
pub(crate) struct Party {
    pub(crate) people: u8,
}

/// Counts what happens, by name.
#[derive(Clone, Default)]
pub(crate) struct Diary(pub(crate) Arc<Mutex<Vec<&'static str>>>);

impl Diary {
    pub(crate) fn note(&self, what: &'static str) {
        self.0.lock().expect("a lock").push(what);
    }

    pub(crate) fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().expect("a lock"))
    }
}

pub(crate) fn endpoint(tool: Tool) -> (Endpoint, Diary) {
    let diary = Diary::default();
    let server = Server::new("asking", "1").state(diary.clone()).tool(tool);
    (server.build().expect("a server"), diary)
}

pub(crate) fn yes(key: &str) -> Value {
    json!({ key: accept(&json!({ "confirm": true })) })
}

pub(crate) fn people(key: &str, people: u8) -> Value {
    json!({ key: accept(&json!({ "people": people })) })
}

/// Questions of one round go out in the order in which the handler asks them.
#[tokio::test]
async fn questions_go_out_as_they_are_asked() {
    async fn address(ask: Ask) -> Result<String, AskError> {
        let (street, city, again) = try_join!(
            ask.confirm("street", "Is the street right?"),
            ask.confirm("city", "Is the city right?"),
            ask.confirm("again", "Shall we ask again?"),
        )?;
        Ok(format!("{street} {city} {again}"))
    }
    let (endpoint, _) = endpoint(Tool::new("address", address));
    let asked = Call::tool("address").begin(&endpoint).await;
    assert_eq!(asked.keys(), ["street", "city", "again"]);
}

/// A question that was polled before its output is chosen is the same question.
#[tokio::test]
async fn a_question_stays_asked_when_its_output_changes() {
    async fn sure(ask: Ask) -> Result<String, AskError> {
        let mut question = ask.confirm("sure", "Sure?");
        match poll_fn(|cx| Poll::Ready(Pin::new(&mut question).poll(cx))).await {
            Poll::Ready(sure) => Ok(format!("sure: {}", sure?)),
            Poll::Pending => Ok(format!("asked: {:?}", question.optional().await?)),
        }
    }
    let (endpoint, _) = endpoint(Tool::new("sure", sure));
    let call = Call::tool("sure");
    let first = call.begin(&endpoint).await;
    assert_eq!(first.keys(), ["sure"]);
    let second = call.answer(&endpoint, &first, yes("sure")).await;
    assert_eq!(second.result()["content"][0]["text"], "sure: true");
}

/// A1: every kind of question gives its typed answer.
#[tokio::test]
async fn every_kind_of_question_gives_a_typed_answer() {
    async fn all(ask: Ask) -> Result<String, AskError> {
        let party: Party = ask.form("form", "How many?").await?;
        let schema: ElicitSchema = serde_json::from_value(
            json!({ "type": "object", "properties": { "colour": { "type": "string" } } }),
        )
        .expect("a schema");
        let content = ask.form_of("form_of", "Which colour?", schema).await?;
        let sure: bool = ask.confirm("confirm", "Sure?").await?;
        let () = ask.url("url", "Sign in", "https://id.example").await?;
        let said = ask.sample("sample", CreateMessageRequestParams::default()).await?;
        let roots = ask.roots("roots").await?;
        Ok(format!("{} {} {sure} {} {}", party.people, content["colour"], said.model, roots[0].uri))
    }
    let server = Server::new("asking", "1")
        .tool(Tool::new("all", all))
        .prompt(Prompt::new("all", all))
        .resource(Resource::new("app://all", "all", all))
        .template(ResourceTemplate::new("app://all/{uri}", "all", async |_: Uri, ask: Ask| all(ask).await));
    let endpoint = server.build().expect("a server");
    let answers = [
        ("form", accept(&json!({ "people": 2 }))),
        ("form_of", accept(&json!({ "colour": "red", "unasked": 1 }))),
        ("confirm", accept(&json!({ "confirm": false }))),
        ("url", json!({ "action": "accept" })),
        ("sample", json!({ "role": "assistant", "content": { "type": "text", "text": "x" }, "model": "m" })),
        ("roots", json!({ "roots": [{ "uri": "file:///a" }] })),
    ];
    for call in [
        Call::tool("all"),
        Call::prompt("all"),
        Call::resource("app://all"),
        Call::resource("app://all/here"),
    ] {
        let mut turn = call.begin(&endpoint).await;
        for (key, answer) in &answers {
            assert_eq!(turn.keys(), [*key]);
            turn = call.answer(&endpoint, &turn, json!({ *key: answer })).await;
        }
        assert_eq!(turn.text(), "2 \"red\" false m file:///a");
    }
}

/// A2: questions awaited together are asked in one round, dependent ones take a round each.
#[tokio::test]
async fn together_in_one_round_one_after_another_in_several() {
    async fn mixed(ask: Ask) -> Result<String, ToolError> {
        let (a, b) = try_join!(ask.form::<Party>("a", "?"), ask.form::<Party>("b", "?"))?;
        let c: Party = ask.form("c", format!("after {} and {}?", a.people, b.people)).await?;
        let more = (0..3).map(|index| ask.form::<Party>(format!("d-{index}"), "?"));
        let mut sum = a.people + b.people + c.people;
        // Any way of waiting for several will do; this one polls each question in turn.
        let mut waiting: Vec<_> = more.collect();
        let rest: Vec<Party> = poll_fn(|cx| {
            let polled: Vec<_> = waiting.iter_mut().map(|one| Pin::new(one).poll(cx)).collect();
            if polled.iter().any(Poll::is_pending) { Poll::Pending } else { Poll::Ready(polled) }
        })
        .await
        .into_iter()
        .filter_map(|polled| match polled {
            Poll::Ready(Ok(party)) => Some(party),
            _ => None,
        })
        .collect();
        sum += rest.iter().map(|party| party.people).sum::<u8>();
        Ok(format!("{sum} in round {}", ask.round()))
    }
    let (endpoint, _) = endpoint(Tool::new("mixed", mixed));
    let call = Call::tool("mixed");
    let turn = call.begin(&endpoint).await;
    assert_eq!(turn.keys(), ["a", "b"]);
    let turn =
        call.answer(&endpoint, &turn, json!({ "a": people("x", 1)["x"], "b": people("x", 2)["x"] })).await;
    assert_eq!(turn.keys(), ["c"]);
    assert_eq!(turn.told("c"), "after 1 and 2?");
    let turn = call.answer(&endpoint, &turn, people("c", 4)).await;
    assert_eq!(turn.keys(), ["d-0", "d-1", "d-2"]);
    let one = people("x", 1)["x"].clone();
    let turn = call.answer(&endpoint, &turn, json!({ "d-0": one, "d-1": one, "d-2": one })).await;
    assert_eq!(turn.text(), "10 in round 4");
}

/// A4: a refusal through `?` is a tool error that the model can read, `.answered()` gives the three-way answer, and
/// `.optional()` an `Option`.
#[tokio::test]
async fn refusals_as_error_as_option_and_as_themselves() {
    async fn plain(ask: Ask) -> Result<String, ToolError> {
        Ok(ask.form::<Party>("party", "?").await?.people.to_string())
    }
    async fn optional(ask: Ask) -> Result<String, ToolError> {
        Ok(ask
            .form::<Party>("party", "?")
            .optional()
            .await?
            .map_or("none".into(), |party| party.people.to_string()))
    }
    async fn reply(ask: Ask) -> Result<String, ToolError> {
        Ok(match ask.form::<Party>("party", "?").answered().await? {
            Answered::Accepted(party) => party.people.to_string(),
            Answered::Declined => "declined".into(),
            Answered::Cancelled => "cancelled".into(),
        })
    }
    async fn url(ask: Ask) -> Result<String, ToolError> {
        ask.url("party", "?", "https://x.example").await?;
        Ok("seen".into())
    }
    let server = Server::new("asking", "1")
        .tool(Tool::new("plain", plain))
        .tool(Tool::new("optional", optional))
        .tool(Tool::new("reply", reply))
        .tool(Tool::new("url", url));
    let endpoint = server.build().expect("a server");
    let asked = async |tool: &str, action: &str| {
        let call = Call::tool(tool);
        let first = call.begin(&endpoint).await;
        call.answer(&endpoint, &first, json!({ "party": { "action": action, "content": { "people": 3 } } }))
            .await
    };
    assert_eq!(asked("plain", "accept").await.text(), "3");
    assert_eq!(asked("plain", "decline").await.failure(), "the user declined to answer `party`");
    assert_eq!(asked("plain", "cancel").await.failure(), "the user dismissed `party` without an answer");
    assert_eq!(asked("url", "decline").await.failure(), "the user declined to answer `party`");
    assert_eq!(asked("optional", "accept").await.text(), "3");
    assert_eq!(asked("optional", "decline").await.text(), "none");
    assert_eq!(asked("optional", "cancel").await.text(), "none");
    assert_eq!(asked("reply", "accept").await.text(), "3");
    assert_eq!(asked("reply", "decline").await.text(), "declined");
    assert_eq!(asked("reply", "cancel").await.text(), "cancelled");
}

/// A5: a step that succeeded is remembered; one that failed runs again in the next round, unless the failure is to be
/// remembered.
#[tokio::test]
async fn success_is_remembered_and_failure_only_when_told() {
    async fn steps(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
        let good: Result<String, _> = ask
            .once("good", async |_| {
                diary.note("good");
                Ok::<_, ToolError>("good".to_owned())
            })
            .await;
        let bad: Result<String, _> = ask
            .once("bad", async |_| {
                diary.note("bad");
                Err(ToolError::new("out of stock"))
            })
            .await;
        let final_: Result<String, _> = ask
            .once("final", async |_| {
                diary.note("final");
                Err(ToolError::new("account closed").remembered())
            })
            .await;
        ask.confirm("sure", "Sure?").await?;
        Ok(format!(
            "{good:?} {} {}",
            bad.is_err(),
            final_ == Err(ToolError::new("account closed").remembered())
        ))
    }
    let (endpoint, diary) = endpoint(Tool::new("steps", steps));
    let call = Call::tool("steps");
    let turn = call.begin(&endpoint).await;
    assert_eq!(diary.take(), ["good", "bad", "final"]);
    assert_eq!(call.answer(&endpoint, &turn, yes("sure")).await.text(), "Ok(\"good\") true true");
    assert_eq!(diary.take(), ["bad"]);
}

/// A5: a step may be tried again within a round after it failed.
#[tokio::test]
async fn a_failed_step_may_be_tried_again() {
    async fn stubborn(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
        for attempt in 1..=3 {
            let tried = ask.once("hold", async |_| {
                diary.note("tried");
                if attempt < 3 { Err(ToolError::new("busy")) } else { Ok(attempt) }
            });
            if let Ok(attempt) = tried.await {
                ask.confirm("sure", "Sure?").await?;
                return Ok(format!("at attempt {attempt}"));
            }
        }
        Ok("never".into())
    }
    let (endpoint, diary) = endpoint(Tool::new("stubborn", stubborn));
    let call = Call::tool("stubborn");
    let turn = call.begin(&endpoint).await;
    assert_eq!(call.answer(&endpoint, &turn, yes("sure")).await.text(), "at attempt 3");
    assert_eq!(diary.take(), ["tried"; 3]);
}

/// A5: a step's idempotency key is the same at every attempt of a flow, another for every key, and another in every
/// flow.
#[tokio::test]
async fn idempotency_keys_are_stable_in_a_flow_and_distinct_across() {
    type Keys = Arc<Mutex<Vec<String>>>;
    async fn paying(State(keys): State<Keys>, ask: Ask) -> Result<String, ToolError> {
        let fail = async |step: Step| {
            keys.lock().expect("a lock").push(step.idempotency_key().to_owned());
            Err::<(), _>(ToolError::new("no connection"))
        };
        let _ = ask.once("pay", fail).await;
        let _ = ask.once("ship", fail).await;
        ask.confirm(format!("again-{}", ask.round()), "Again?").await?;
        Ok("never".into())
    }
    let keys = Keys::default();
    let server = Server::new("asking", "1").state(Arc::clone(&keys)).tool(Tool::new("pay", paying));
    let endpoint = server.build().expect("a server");
    let call = Call::tool("pay");
    let mut turn = call.begin(&endpoint).await;
    for round in 1..4 {
        turn = call.answer(&endpoint, &turn, yes(&format!("again-{round}"))).await;
    }
    call.begin(&endpoint).await;
    let keys = keys.lock().expect("a lock").clone();
    assert!(keys[..8].chunks(2).all(|pair| pair == &keys[..2]), "{keys:?}");
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 4, "two steps in two flows: {keys:?}");
}

/// A6: another question under a kept key is asked, and all other answers stand; `.identity` keeps an answer although
/// the wording changes.
#[tokio::test]
async fn a_changed_question_is_asked_again_alone() {
    async fn changing(State(calls): State<Arc<AtomicUsize>>, ask: Ask) -> Result<String, ToolError> {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        let (kept, identified) = try_join!(
            ask.form::<Party>("kept", "How many?"),
            ask.form::<Party>("identified", format!("It is {call} o'clock. How many?")).identity("how many"),
        )?;
        let wording = if call < 2 { "Is it fine?" } else { "Is it really fine?" };
        let sure = ask.confirm("sure", wording).await?;
        let last = ask.confirm("last", "And now?").await?;
        Ok(format!("{} {} {sure} {last}", kept.people, identified.people))
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let server = Server::new("asking", "1").state(calls).tool(Tool::new("changing", changing));
    let endpoint = server.build().expect("a server");
    let call = Call::tool("changing");
    let turn = call.begin(&endpoint).await;
    let both = json!({ "kept": people("x", 1)["x"], "identified": people("x", 2)["x"] });
    let turn = call.answer(&endpoint, &turn, both).await;
    assert_eq!(turn.told("sure"), "Is it fine?");
    let turn = call.answer(&endpoint, &turn, yes("sure")).await;
    assert_eq!((turn.keys(), turn.told("sure")), (vec!["sure"], "Is it really fine?"));
    let turn = call.answer(&endpoint, &turn, yes("sure")).await;
    assert_eq!(turn.keys(), ["last"]);
    assert_eq!(call.answer(&endpoint, &turn, yes("last")).await.text(), "1 2 true true");
}

/// Z2: a handler that asks something of every entry of a client's list is stopped, and does not compare each with all.
#[tokio::test]
async fn questions_by_the_hundred_thousand_in_one_round_are_a_mistake() {
    async fn flood(ask: Ask) -> Result<String, ToolError> {
        let question = |number: usize| Box::pin(ask.confirm(format!("{number:07}"), "?"));
        let mut asking: Vec<_> = (0..200_000).map(question).collect();
        poll_fn(|cx| {
            let told = asking.iter_mut().find_map(|asking| match asking.as_mut().poll(cx) {
                Poll::Ready(Err(error)) => Some(error),
                _ => None,
            });
            told.map_or(Poll::Pending, |error| Poll::Ready(Err::<(), AskError>(error)))
        })
        .await?;
        Ok("never".to_owned())
    }
    let endpoint = Server::new("asking", "1").tool(Tool::new("flood", flood)).build().expect("a server");
    let begun = Instant::now();
    let turn = Call::tool("flood").begin(&endpoint).await;
    assert!(turn.error().1.contains("4096 questions"), "{:?}", turn.error());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// A7: a key used twice in a flow is a mistake that is told, with the key, whichever two things use it.
#[tokio::test]
async fn a_key_used_twice_is_named() {
    async fn twice(State(way): State<usize>, ask: Ask) -> Result<String, ToolError> {
        let step = async |_| Ok::<_, ToolError>(1);
        let slow = async |_| {
            yield_now().await;
            Ok::<_, ToolError>(1)
        };
        match way {
            0 => drop(try_join!(ask.confirm("it", "?"), ask.confirm("it", "?"))?),
            1 => {
                ask.once("it", step).await?;
                ask.once("it", step).await?;
            }
            2 => {
                ask.once("it", step).await?;
                ask.confirm("it", "?").await?;
            }
            3 => {
                let (question, step) = join!(ask.confirm("it", "?"), ask.once("it", step));
                question?;
                step?;
            }
            4 => {
                let (first, second) = join!(ask.once("it", slow), ask.once("it", slow));
                first?;
                second?;
            }
            5 => {
                let (step, question) = join!(ask.once("it", slow), ask.confirm("it", "?"));
                step?;
                question?;
            }
            6 => {
                ask.checkpoint("it").await?;
                ask.checkpoint("it").await?;
            }
            7 => {
                ask.checkpoint("it").await?;
                ask.once("it", step).await?;
            }
            _ => {
                let (first, second) = join!(
                    ask.until("it", async || Ok::<Option<u8>, ToolError>(None)),
                    ask.until("it", async || Ok::<Option<u8>, ToolError>(None)),
                );
                first?;
                second?;
            }
        }
        Ok("fine".into())
    }
    for way in 0..9_usize {
        let server = Server::new("asking", "1").state(way).tool(Tool::new("twice", twice));
        let endpoint = server.build().expect("a server");
        let turn = Call::tool("twice").begin(&endpoint).await;
        let (code, told) = turn.error();
        assert_eq!(code, -32603, "way {way}");
        assert!(told.contains("`it` is used twice"), "way {way}: {told}");
    }
}

/// A7: a key used twice one question after the other is found too, when the second is reached.
#[tokio::test]
async fn a_key_used_twice_in_turn_is_named() {
    async fn twice(ask: Ask) -> Result<String, ToolError> {
        ask.confirm("it", "First?").await?;
        ask.confirm("it", "First?").await?;
        Ok("fine".into())
    }
    let (endpoint, _) = endpoint(Tool::new("twice", twice));
    let call = Call::tool("twice");
    let turn = call.begin(&endpoint).await;
    let turn = call.answer(&endpoint, &turn, yes("it")).await;
    assert!(turn.error().1.contains("`it` is used twice"), "{turn:?}");
}

/// A7: by hand a key can be asked in one round only once.
#[tokio::test]
async fn by_hand_a_key_is_asked_once_a_round() {
    let (endpoint, _) = endpoint(Tool::new("twice", async |round: Round| {
        round.ask::<CallToolResult>([Question::form::<Party>("it", "?"), Question::form::<Party>("it", "?")])
    }));
    let turn = Call::tool("twice").begin(&endpoint).await;
    assert!(turn.error().1.contains("`it` is used twice"), "{turn:?}");
}

/// A9: to accept a web page is to consent; waiting for what happens there takes rounds that carry state alone, as many
/// as it takes, and they do not count as asking.
#[tokio::test]
async fn waiting_for_a_web_page_takes_rounds_that_ask_nothing() {
    async fn sign_in(
        State(done): State<Arc<AtomicUsize>>,
        State(diary): State<Diary>,
        ask: Ask,
    ) -> Result<String, ToolError> {
        ask.url("sign_in", "Please sign in", "https://id.example/in?flow=1").await?;
        let user: String = ask
            .until("signed_in", async || {
                diary.note("looked");
                let looks = done.fetch_add(1, Ordering::SeqCst);
                Ok::<_, ToolError>((looks >= 40).then(|| "alice".to_owned()))
            })
            .await?;
        let sure = ask.confirm("sure", format!("Are you {user}?")).await?;
        Ok(format!("{user} {sure}"))
    }
    let diary = Diary::default();
    let server = Server::new("asking", "1")
        .state(Arc::new(AtomicUsize::new(0)))
        .state(diary.clone())
        .max_rounds(2)
        .tool(Tool::new("sign_in", sign_in));
    let endpoint = server.build().expect("a server");
    let call = Call::tool("sign_in");
    let turn = call.begin(&endpoint).await;
    assert_eq!(turn.keys(), ["sign_in"]);
    assert_eq!(diary.take(), [""; 0], "before there is consent nothing is waited for");
    let mut turn = call.answer(&endpoint, &turn, json!({ "sign_in": { "action": "accept" } })).await;
    for _ in 0..40 {
        assert_eq!(turn.keys(), [""; 0]);
        assert_eq!(turn.result().get("inputRequests"), None);
        turn = call.send(&endpoint, turn.state(), None).await;
    }
    assert_eq!(turn.keys(), ["sure"]);
    assert_eq!(diary.take().len(), 41, "it looks once a round");
    assert_eq!(call.answer(&endpoint, &turn, yes("sure")).await.text(), "alice true");
    assert_eq!(diary.take(), [""; 0], "what was found is remembered");
}
