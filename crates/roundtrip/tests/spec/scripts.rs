//! Scripts of the replay harness: answers that are missing, left over or given in turn, questions and replies that change
//! from run to run, and the caller that a script plays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use roundtrip::testing::{ReplayError, play, replay};
use roundtrip::wire::CreateMessageRequestParams;
use roundtrip::{
    Answered, Ask, AskError, Caller, Extension, Form, MemoryLedger, Principal, Question, Reply, Round,
    Server, State, Tool, ToolError,
};
use serde_json::{Value, json};

fn server(tool: Tool) -> Server {
    Server::new("s", "1").tool(tool).state(Counter::default())
}

/// The world outside of a handler: another number every time.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU32>);

impl Counter {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

fn confirmed() -> Value {
    json!({ "confirm": true })
}

fn text(result: Result<Value, ReplayError>) -> String {
    result.expect("a result")["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// The text that `unwrap` prints.
fn told(result: Result<Value, ReplayError>) -> String {
    format!("{:?}", result.expect_err("a mistake"))
}

async fn sure(ask: Ask) -> Result<&'static str, AskError> {
    Ok(if ask.confirm("sure", "Delete it?").await? { "deleted" } else { "kept" })
}

/// A11: a scripted answer that is never asked for fails the test, with its key and with what was asked instead.
#[tokio::test]
async fn an_answer_that_is_not_asked_for_is_named() {
    let script = || replay(server(Tool::new("delete", sure))).tool("delete", json!({}));
    let unused = script().accept("sure", confirmed()).accept("really", confirmed()).await;
    assert_eq!(
        told(unused),
        "the script answers `really`, which was never asked: the call asked `sure` and ended with \"deleted\"; correct \
         the key, or leave the answer out"
    );
    let surplus = script().accept("sure", confirmed()).decline("sure").await;
    assert!(
        matches!(&surplus, Err(ReplayError::Unused { key, answers: 2, asked: 1, .. }) if key == "sure"),
        "{surplus:?}"
    );
    assert!(
        told(surplus).starts_with("the script has 2 answers to `sure`, more than the 1 it was asked for: ")
    );
}

/// A11: a question without a scripted answer is named, with its text and the method that answers it.
#[tokio::test]
async fn a_question_without_an_answer_is_named() {
    let missing = replay(server(Tool::new("delete", sure))).tool("delete", json!({})).await;
    assert_eq!(
        told(missing),
        "the script has no answer to `sure`: it asks \"Delete it?\"; add `.accept(\"sure\", ..)` or \
         `.decline(\"sure\")`"
    );
    let unfit = replay(server(Tool::new("delete", sure))).tool("delete", json!({}));
    let unfit = told(unfit.accept("sure", json!({ "confirm": 1 })).await);
    assert!(unfit.starts_with("the scripted answer to `sure` does not fit: "), "{unfit}");
    assert!(unfit.contains("confirm") && !unfit.contains("Delete it?"), "the reason alone: {unfit}");
}

/// A11: a question whose text is another in every run is named as that, with both texts and the remedy.
#[tokio::test]
async fn a_question_that_changes_from_run_to_run_is_named() {
    let moving = |identity: Option<&'static str>| {
        Tool::new("buy", move |ask: Ask, State(seats): State<Counter>| async move {
            let asking = ask.confirm("buy", format!("{} seats left. Buy?", seats.next()));
            let bought = match identity {
                Some(identity) => asking.identity(identity).await?,
                None => asking.await?,
            };
            Ok::<_, ToolError>(bought.to_string())
        })
    };
    for script in [replay, play] {
        let call = script(server(moving(None))).tool("buy", json!({})).accept("buy", confirmed());
        let found = call.await;
        let Err(ReplayError::ChangedQuestion { key, place, first, then }) = &found else {
            panic!("{found:?}")
        };
        assert_eq!((key.as_str(), place.as_str()), ("buy", "/message"));
        assert!(first.ends_with(" seats left. Buy?\"") && first != then, "{first} {then}");
        let told = told(found);
        assert!(told.starts_with("the question `buy` is not the same in every run\n  at `/message`: \""));
        assert!(told.contains("`ask.once(..)`") && told.contains("`.identity(..)`"), "{told}");

        let call = script(server(moving(Some("a seat")))).tool("buy", json!({})).accept("buy", confirmed());
        assert_eq!(text(call.await), "true");
    }
}

/// A11: a text that is made in a step is the same in every round, though a repeated first round makes another.
#[tokio::test]
async fn a_question_that_is_made_in_a_step_does_not_change() {
    let tool = Tool::new("buy", async |ask: Ask, State(seats): State<Counter>| {
        let left: u32 = ask.once("seats", async |_| Ok::<_, ToolError>(seats.next())).await?;
        Ok::<_, ToolError>(ask.confirm("buy", format!("{left} seats left. Buy?")).await?.to_string())
    });
    let bought = replay(server(tool)).tool("buy", json!({})).accept("buy", confirmed()).await;
    assert_eq!(text(bought), "true");
}

/// A11: a repeated round that gives another reply is told with the first difference and the step that made it, and with
/// what `once` promises. A ledger keeps the promise that `once` does not make.
#[tokio::test]
async fn a_changed_reply_names_its_step_and_its_place() {
    let pay = || {
        Tool::new("pay", async |ask: Ask, State(bank): State<Counter>| {
            ask.confirm("sure", "Pay?").await?;
            let greeting: String = ask.once("greet", async |_| Ok::<_, ToolError>("paid".to_owned())).await?;
            let receipt: u32 = ask.once("charge", async |_| Ok::<_, ToolError>(bank.next())).await?;
            Ok::<_, ToolError>(format!("{greeting}: {receipt}"))
        })
    };
    let found = replay(server(pay())).tool("pay", json!({})).accept("sure", confirmed()).await;
    let Err(ReplayError::ChangedReply { round: 2, step, place, first, then }) = &found else {
        panic!("{found:?}")
    };
    assert_eq!((step.as_deref(), place.as_str()), (Some("charge"), "/content/0/text"));
    assert!(first.starts_with("\"paid: ") && then.starts_with("\"paid: ") && first != then);
    let told = told(found);
    assert!(told.contains("the step `charge` gave another result: `once` keeps"), "{told}");
    assert!(told.contains("runs again as a whole") && told.contains("`step.idempotency_key()`"), "{told}");

    let kept = server(pay()).ledger(MemoryLedger::new());
    let kept = replay(kept).tool("pay", json!({})).accept("sure", confirmed()).await;
    assert!(text(kept).starts_with("paid: "));
}

/// A11: a repeated round that gives another reply without a step is told so.
#[tokio::test]
async fn a_changed_reply_without_a_step_is_told_so() {
    let tool = Tool::new("now", async |State(clock): State<Counter>| clock.next().to_string());
    let found = replay(server(tool)).tool("now", json!({})).await;
    assert!(matches!(&found, Err(ReplayError::ChangedReply { round: 1, step: None, .. })), "{found:?}");
    assert!(told(found).contains("no step gave another result, so it depends on time, randomness or state"));
}

/// A11: several answers under one key are given in turn, each time the question is asked: after an answer that does not
/// fit, by hand, and for a question that changed.
#[tokio::test]
async fn answers_under_one_key_are_given_in_turn() {
    let script = replay(server(Tool::new("delete", sure))).tool("delete", json!({}));
    let corrected = script.accept("sure", json!({ "confirm": "perhaps" })).accept("sure", confirmed()).await;
    assert_eq!(text(corrected), "deleted");

    #[derive(Form)]
    struct Guess {
        number: u8,
    }
    let by_hand = || {
        Tool::new("guess", async |round: Round| match round.answer::<Guess>("guess")? {
            Some(Guess { number: 7 }) => Ok::<_, ToolError>(Reply::text("right")),
            Some(_) => Ok(round.ask([Question::form::<Guess>("guess", "Wrong. Again?")])),
            None => Ok(round.ask([Question::form::<Guess>("guess", "Which number?")])),
        })
    };
    let guess = |script: fn(Server) -> roundtrip::testing::Replay| {
        script(server(by_hand())).tool("guess", json!({})).accept("guess", json!({ "number": 3 }))
    };
    assert_eq!(text(guess(replay).accept("guess", json!({ "number": 7 })).await), "right");
    let given_up = told(guess(play).await);
    assert!(
        given_up.starts_with("the script has no answer to `guess` when it is asked again: "),
        "{given_up}"
    );

    let price = Tool::new("buy", async |ask: Ask| {
        let price = if ask.round() == 1 { 1 } else { 2 };
        ask.confirm("buy", format!("Buy for {price}?")).await.map(|bought| bought.to_string())
    });
    let moved = replay(server(price)).tool("buy", json!({})).accept("buy", confirmed());
    assert_eq!(text(moved.accept("buy", json!({ "confirm": false })).await), "false");
}

async fn everything(ask: Ask) -> Result<String, ToolError> {
    let (capital, roots, page, more) = tokio::try_join!(
        ask.sample("capital", CreateMessageRequestParams::text("Which capital?", 10)),
        ask.roots("roots"),
        ask.url("page", "Sign in", "https://example.com/sign-in").answered(),
        ask.confirm("more", "More?").answered(),
    )?;
    let capital = serde_json::to_value(capital).unwrap_or_default()["content"].to_string();
    let page = matches!(page, Answered::Accepted(()));
    Ok(format!("{} {} {page} {more:?}", capital.contains("Paris"), roots[0].uri))
}

/// A11: a script answers every kind of question, and declines and dismisses those that can be.
#[tokio::test]
async fn every_kind_of_question_can_be_scripted() {
    let script = || replay(server(Tool::new("all", everything))).tool("all", json!({}));
    let model = json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" });
    let accepted = script().say("capital", "Paris").roots("roots", &["file:///a"]).consent("page");
    assert_eq!(text(accepted.cancel("more").await), "true file:///a true Cancelled");
    let declined = script().result("capital", model).roots("roots", &["file:///b"]).decline("page");
    assert_eq!(text(declined.decline("more").await), "true file:///b false Declined");

    for (missing, remedy) in [
        (
            script().roots("roots", &[]).consent("page").decline("more"),
            "asks the model; add `.say(\"capital\", ..)`",
        ),
        (
            script().say("capital", "").consent("page").decline("more"),
            "asks for the roots; add `.roots(\"roots\", ..)`",
        ),
        (
            script().say("capital", "").roots("roots", &[]).decline("more"),
            "asks to open \"https://example.com/sign-in\"; add `.consent(\"page\")`",
        ),
    ] {
        let told = told(missing.await);
        assert!(told.ends_with(remedy), "{told}");
    }
}

#[derive(Clone)]
struct Tenant(&'static str);

/// A11: a script calls as a principal and with extensions, in every round.
#[tokio::test]
async fn a_script_plays_a_caller() {
    let tool = Tool::new(
        "delete",
        async |ask: Ask, caller: Caller, Extension(Tenant(tenant)): Extension<Tenant>| {
            ask.confirm("sure", "Delete it?").await?;
            let who = caller.principal.map(|who| who.to_string()).unwrap_or_default();
            Ok::<_, ToolError>(format!("{who} of {tenant}"))
        },
    );
    let call = replay(server(tool)).tool("delete", json!({})).accept("sure", confirmed());
    let called = call.principal(Principal::new("ada")).extension(Tenant("acme")).await;
    assert_eq!(text(called), "ada of acme");
}
