//! Steps: `ask.once` from several tasks, its idempotency key, and what it remembers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::server::{Endpoint, Limits, Step};
use roundtrip::{Answered, Ask, Form, Server, State, Tool, ToolError};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::asking::yes;
use crate::support::{Call, accept};

/// Flows in which tasks race for a step.
const RACES: usize = 3_000;

fn endpoint<S: Clone + Send + Sync + 'static>(state: S, tool: Tool) -> Endpoint {
    Server::new("steps", "1").state(state).tool(tool).build().expect("a server")
}

/// M23: two tasks that hold one `Ask` and begin one step at the same moment run its effect once, and the one that is late is
/// told that the key is in use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_begun_by_two_tasks_at_once_runs_once() {
    type Effects = Arc<AtomicUsize>;
    async fn race(ask: Ask, State(effects): State<Effects>) -> Result<&'static str, ToolError> {
        let start = Arc::new(Barrier::new(2));
        let racer = || {
            let (ask, effects, start) = (ask.clone(), Arc::clone(&effects), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                let charge = async |_: Step| Ok::<_, ToolError>(effects.fetch_add(1, Ordering::SeqCst));
                ask.once("charge", charge).await.is_ok()
            })
        };
        let (one, other) = (racer(), racer());
        let ran = [one.await, other.await].into_iter().filter(|ran| matches!(ran, Ok(true))).count();
        assert!(ran <= 1, "both were told that the step is theirs");
        Ok("raced")
    }
    let effects = Effects::default();
    let endpoint = endpoint(Arc::clone(&effects), Tool::new("race", race));
    for flow in 1..=RACES {
        Call::tool("race").begin(&endpoint).await;
        assert_eq!(effects.load(Ordering::SeqCst), flow, "an effect ran twice, or not at all");
    }
}

/// M23: a step that a spawned task begins while its round ends either ran and is remembered, or did not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_races_with_the_end_of_its_round_is_not_repeated() {
    type Effects = Arc<AtomicUsize>;
    async fn race(ask: Ask, State(effects): State<Effects>) -> Result<&'static str, ToolError> {
        let spawned = {
            let (ask, effects) = (ask.clone(), Arc::clone(&effects));
            tokio::spawn(async move {
                let charge = async |_: Step| Ok::<_, ToolError>(effects.fetch_add(1, Ordering::SeqCst));
                ask.once("charge", charge).await.map(drop)
            })
        };
        ask.confirm("sure", "Sure?").await?;
        spawned.await.map_err(|error| ToolError::new(error.to_string()))??;
        Ok("charged")
    }
    let effects = Effects::default();
    let endpoint = endpoint(Arc::clone(&effects), Tool::new("race", race));
    for flow in 1..=RACES {
        let first = Call::tool("race").begin(&endpoint).await;
        assert_eq!(Call::tool("race").answer(&endpoint, &first, yes("sure")).await.text(), "charged");
        assert_eq!(effects.load(Ordering::SeqCst), flow, "an effect was forgotten and repeated");
    }
}

#[derive(Form)]
struct Amount {
    amount: u32,
}

/// The idempotency keys that steps were given, and how many of them are to fail.
#[derive(Clone, Default)]
struct Bank {
    keys: Arc<Mutex<Vec<String>>>,
    failures: Arc<AtomicUsize>,
}

impl Bank {
    fn charge(&self, key: &str) -> Result<String, ToolError> {
        self.keys.lock().expect("a lock").push(key.to_owned());
        let fails = self.failures.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if fails.is_ok() { Err(ToolError::new("no line")) } else { Ok(key.to_owned()) }
    }

    fn keys(&self) -> Vec<String> {
        std::mem::take(&mut *self.keys.lock().expect("a lock"))
    }
}

/// A form that may be declined, a charge that may fail, and a question after it.
async fn pay(ask: Ask, State(bank): State<Bank>) -> Result<String, ToolError> {
    let amount = ask.form::<Amount>("amount", "How much?").answered().await?;
    let charged = ask.once("charge", async |step| bank.charge(step.idempotency_key())).await;
    ask.confirm("receipt", "A receipt?").await?;
    if charged.is_err() && matches!(amount, Answered::Accepted(Amount { amount: 1.. })) {
        return ask.once("charge", async |step| bank.charge(step.idempotency_key())).await;
    }
    charged
}

fn amount(amount: u32) -> Value {
    json!({ "amount": accept(&json!({ "amount": amount })) })
}

/// A5: one `requestState` presented with two answers gives two idempotency keys: a downstream that deduplicates must not take
/// a charge of 100,000 for the charge of 1 that was agreed to.
#[tokio::test]
async fn other_answers_to_one_state_give_another_idempotency_key() {
    let bank = Bank::default();
    let endpoint = endpoint(bank.clone(), Tool::new("pay", pay));
    let call = Call::tool("pay");
    let first = call.begin(&endpoint).await;
    let refused = json!({ "amount": { "action": "decline" } });
    let dismissed = json!({ "amount": { "action": "cancel" } });
    for answers in [amount(1), amount(100_000), refused, dismissed] {
        call.answer(&endpoint, &first, answers.clone()).await;
        call.answer(&endpoint, &first, answers).await;
    }
    let keys = bank.keys();
    assert!(keys.chunks(2).all(|pair| pair[0] == pair[1]), "a repeat has the key of the first: {keys:?}");
    let mut distinct: Vec<_> = keys.iter().step_by(2).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4, "{keys:?}");
}

/// A5: a step that failed is repeated under the key it began with, although there are more answers by then; within the round
/// and in later ones.
#[tokio::test]
async fn a_step_that_failed_keeps_its_idempotency_key() {
    let bank = Bank::default();
    bank.failures.store(2, Ordering::SeqCst);
    let endpoint = endpoint(bank.clone(), Tool::new("pay", pay));
    let call = Call::tool("pay");
    let first = call.begin(&endpoint).await;
    let second = call.answer(&endpoint, &first, amount(5)).await;
    assert_eq!(second.keys(), ["receipt"]);
    let done = call.answer(&endpoint, &second, yes("receipt")).await;
    let keys = bank.keys();
    assert_eq!(keys.len(), 3, "failed in the second round, failed and succeeded in the third");
    assert!(keys.iter().all(|key| key == &keys[0]), "{keys:?}");
    assert_eq!(done.text(), keys[0]);
}

/// A5: a step whose author names the answers it depends on has a key of those alone.
#[tokio::test]
async fn an_idempotency_key_from_named_answers_depends_on_those_alone() {
    async fn pay(ask: Ask, State(bank): State<Bank>) -> Result<String, ToolError> {
        ask.form::<Amount>("amount", "How much?").await?;
        ask.form::<Amount>("tip", "And the tip?").await?;
        ask.once("charge", async |step| bank.charge(&step.idempotency_key_from(["amount"]))).await
    }
    let bank = Bank::default();
    let endpoint = endpoint(bank.clone(), Tool::new("pay", pay));
    let call = Call::tool("pay");
    let first = call.begin(&endpoint).await;
    let tip = |tip: u32| json!({ "tip": accept(&json!({ "amount": tip })) });
    for (paid, tipped) in [(5, 1), (5, 2), (6, 1)] {
        let second = call.answer(&endpoint, &first, amount(paid)).await;
        call.answer(&endpoint, &second, tip(tipped)).await;
    }
    let keys = bank.keys();
    assert_eq!(keys[0], keys[1], "the tip is not named");
    assert_ne!(keys[0], keys[2], "the amount is");
}

/// A5: a value that does not survive being written down fails in the round that made it, with a word why, and not in the next.
#[tokio::test]
async fn a_result_that_cannot_be_read_back_fails_at_once() {
    async fn infinite(ask: Ask) -> Result<String, ToolError> {
        let ratio: f64 = ask.once("ratio", async |_| Ok::<_, ToolError>(f64::INFINITY)).await?;
        ask.confirm("sure", "Sure?").await?;
        Ok(ratio.to_string())
    }
    let turn = Call::tool("infinite").begin(&endpoint((), Tool::new("infinite", infinite))).await;
    let (code, message) = turn.error();
    assert_eq!(code, -32603);
    assert!(message.contains("`ratio` cannot be read back"), "{message}");
}

/// A5: a step that cannot fail needs no error type: its value is remembered, and it runs once.
#[tokio::test]
async fn a_plain_value_is_remembered() {
    async fn quote(ask: Ask, State(runs): State<Arc<AtomicUsize>>) -> Result<String, ToolError> {
        let price = ask.remember("price", async || 20 + runs.fetch_add(1, Ordering::SeqCst)).await?;
        let sure = ask.confirm("sure", format!("For {price}?")).await?;
        Ok(format!("{price} {sure}"))
    }
    let runs = Arc::new(AtomicUsize::new(0));
    let endpoint = endpoint(Arc::clone(&runs), Tool::new("quote", quote));
    let first = Call::tool("quote").begin(&endpoint).await;
    assert_eq!(first.told("sure"), "For 20?");
    let done = Call::tool("quote").answer(&endpoint, &first, yes("sure")).await;
    assert_eq!((done.text(), runs.load(Ordering::SeqCst)), ("20 true", 1));
}

/// A5: the round that runs a step sees its result as every later round does.
#[tokio::test]
async fn a_result_is_seen_as_it_is_remembered() {
    async fn lossy(ask: Ask) -> Result<String, ToolError> {
        let ratio: Option<f64> = ask.once("ratio", async |_| Ok::<_, ToolError>(Some(f64::NAN))).await?;
        let sure = ask.confirm("sure", format!("Is it {ratio:?}?")).await?;
        Ok(format!("{ratio:?} {sure}"))
    }
    let endpoint = endpoint((), Tool::new("lossy", lossy));
    let first = Call::tool("lossy").begin(&endpoint).await;
    assert_eq!(first.told("sure"), "Is it None?");
    let done = Call::tool("lossy").answer(&endpoint, &first, yes("sure")).await;
    assert_eq!(done.text(), "None true", "the same question, so its answer counts");
}

/// Z1: a step that waits through a task for a question of its own round is told so; it could never end.
#[tokio::test]
async fn a_step_that_waits_for_a_question_does_not_hang_its_call() {
    async fn tangled(ask: Ask) -> Result<String, ToolError> {
        let asking = ask.clone();
        ask.once("charge", async |_| {
            let sure = tokio::spawn(async move { asking.confirm("sure", "Sure?").await });
            sure.await.map_err(|error| ToolError::new(error.to_string()))?.map_err(ToolError::from)
        })
        .await
        .map(|sure: bool| sure.to_string())
    }
    let mut limits = Limits::default();
    limits.question_behind_step = Duration::from_millis(20);
    let server = Server::new("steps", "1").limits(limits).tool(Tool::new("tangled", tangled));
    let turn = Call::tool("tangled").begin(&server.build().expect("a server")).await;
    let (code, message) = turn.error();
    assert_eq!(code, -32603);
    assert!(message.contains("`sure` has waited") && message.contains("the step `charge`"), "{message}");
}

/// A2: a step that is merely slow, beside a question, ends before the question goes out.
#[tokio::test(start_paused = true)]
async fn a_slow_step_beside_a_question_ends_first() {
    async fn beside(ask: Ask) -> Result<String, ToolError> {
        let slow = ask.once("slow", async |_| {
            tokio::time::sleep(Duration::from_secs(50)).await;
            Ok::<_, ToolError>("slept".to_owned())
        });
        let sure = async { ask.confirm("sure", "Sure?").await.map_err(ToolError::from) };
        let (slept, sure) = tokio::try_join!(slow, sure)?;
        Ok(format!("{slept} {sure}"))
    }
    let endpoint = endpoint((), Tool::new("beside", beside));
    let call = Call::tool("beside");
    let peer = roundtrip::server::Peer::default();
    let first = crate::support::messages_of(&endpoint, &peer, &call.request(None, None)).await;
    let state = first[0]["result"]["requestState"].as_str().expect("a state");
    assert_eq!(call.send(&endpoint, Some(state), Some(yes("sure"))).await.text(), "slept true");
}
