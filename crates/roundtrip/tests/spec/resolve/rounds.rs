//! Resolvers and the rounds they run in: steps, tasks, upgrades, time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::server::{Limits, Step};
use roundtrip::{
    Ask, Asked, Asking, Form, Keyring, Question, Reply, Resolve, Resolved, Round, Server, State, Tool,
    ToolError,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Diary, Plane, yes};
use crate::support::{Call, accept};

/// A resolver whose question another task asks, and one before a handler that takes its rounds by hand, end their rounds as
/// any other.
#[tokio::test]
async fn resolvers_go_with_rounds_by_hand_and_with_tasks() {
    #[derive(Serialize, Deserialize)]
    struct Sure(bool);
    impl Resolve for Sure {
        const KEY: &'static str = "resolved";
        type From = (Asking<Stay>,);
        async fn resolve((stay,): Self::From, ask: Ask) -> Result<Self, ToolError> {
            let sure = tokio::spawn(ask.confirm("sure", "Sure?"));
            let sure = sure.await.map_err(|error| ToolError::new(error.to_string()))??;
            Ok(Self(sure && stay.await?.nights > 1))
        }
    }
    #[derive(Form)]
    #[form(key = "stay", message = "How long?")]
    struct Stay {
        nights: u8,
    }
    async fn by_hand(Resolved(sure): Resolved<Sure>, round: Round) -> Result<Reply, ToolError> {
        match round.confirmed("more")? {
            None => Ok(round.ask([Question::confirm("more", "More?")])),
            Some(more) => Ok(Reply::text(format!("{} {more} in round {}", sure.0, round.number()))),
        }
    }
    let endpoint = Server::new("s", "1").tool(Tool::new("stay", by_hand)).build().expect("a server");
    let call = Call::tool("stay");
    let mut turn = call.begin(&endpoint).await;
    for (key, answer) in
        [("sure", yes(true)), ("stay", accept(&json!({ "nights": 2 }))), ("more", yes(false))]
    {
        assert_eq!(turn.keys(), [key]);
        turn = call.answer(&endpoint, &turn, json!({ key: answer })).await;
    }
    assert_eq!(turn.text(), "true false in round 4");
}

/// A5: a step of a resolver has the same idempotency key whether or not another resolver has read its answers by then, and
/// another one for other answers to what it depends on.
#[tokio::test]
async fn the_idempotency_key_of_a_resolver_does_not_depend_on_its_neighbours() {
    #[derive(Serialize, Deserialize)]
    struct Amount(bool);
    #[derive(Serialize, Deserialize)]
    struct Charge(String);
    #[derive(Serialize, Deserialize)]
    struct Other(bool);
    impl Resolve for Amount {
        const KEY: &'static str = "amount";
        type From = ();
        async fn resolve((): (), ask: Ask) -> Result<Self, ToolError> {
            Ok(Self(ask.confirm("double", "Twice as much?").await?))
        }
    }
    impl Resolve for Charge {
        const KEY: &'static str = "charge";
        type From = (Resolved<Amount>, State<Arc<Mutex<bool>>>);
        async fn resolve((_, State(late)): Self::From, ask: Ask) -> Result<Self, ToolError> {
            let late = std::mem::replace(&mut *late.lock().expect("a lock"), true);
            if late {
                tokio::task::yield_now().await;
            }
            let key = async |step: Step| Ok::<_, ToolError>(step.idempotency_key().to_owned());
            Ok(Self(ask.once("pay", key).await?))
        }
    }
    impl Resolve for Other {
        const KEY: &'static str = "other";
        type From = ();
        async fn resolve((): (), ask: Ask) -> Result<Self, ToolError> {
            Ok(Self(ask.confirm("something", "Something else?").await?))
        }
    }
    async fn pay(Resolved(charge): Resolved<Charge>, Resolved(_): Resolved<Other>) -> String {
        charge.0
    }
    let server = Server::new("s", "1").state(Arc::new(Mutex::new(false))).tool(Tool::new("pay", pay));
    let endpoint = server.build().expect("a server");
    let first = Call::tool("pay").begin(&endpoint).await;
    let pay = async |double: bool, other: bool| {
        let answers = json!({ "double": yes(double), "something": yes(other) });
        Call::tool("pay").answer(&endpoint, &first, answers).await.text().to_owned()
    };
    let key = pay(false, false).await;
    assert_eq!(pay(false, false).await, key, "the step began later");
    assert_eq!(pay(false, true).await, key, "it does not depend on this one");
    assert_ne!(pay(true, false).await, key);
}

/// A2: a round waits for a resolver that is at work, but not without end: the resolver begins again in the next one.
#[tokio::test(start_paused = true)]
async fn a_round_does_not_wait_for_a_slow_resolver_without_end() {
    #[derive(Serialize, Deserialize)]
    struct Slow<const SECONDS: u64>;
    impl<const SECONDS: u64> Resolve for Slow<SECONDS> {
        const KEY: &'static str = "slow";
        type From = ();
        async fn resolve((): (), ask: Ask) -> Result<Self, ToolError> {
            tokio::time::sleep(Duration::from_secs(SECONDS)).await;
            ask.confirm("late", "Late?").await?;
            Ok(Self)
        }
    }
    async fn wait<const SECONDS: u64>(
        Resolved(_): Resolved<Slow<SECONDS>>,
        Asked(_): Asked<Now>,
    ) -> &'static str {
        "done"
    }
    #[derive(Form)]
    #[form(key = "now", message = "Now?")]
    struct Now {
        #[expect(dead_code, reason = "the question is all that counts")]
        now: bool,
    }
    let mut limits = Limits::default();
    limits.question_behind_step = Duration::from_secs(3);
    let server = Server::new("s", "1").limits(limits);
    let server = server.tool(Tool::new("short", wait::<2>)).tool(Tool::new("long", wait::<4>));
    let endpoint = server.build().expect("a server");
    assert_eq!(Call::tool("short").begin(&endpoint).await.keys(), ["now", "late"]);
    let first = Call::tool("long").begin(&endpoint).await;
    assert_eq!(first.keys(), ["now"]);
    let now = json!({ "now": accept(&json!({ "now": true })) });
    assert_eq!(Call::tool("long").answer(&endpoint, &first, now).await.keys(), ["late"]);
}

/// A6: a value that is not of the type a resolver has by now is resolved anew, from the answers that were given.
#[tokio::test]
async fn a_changed_type_is_resolved_anew() {
    #[derive(Serialize, Deserialize)]
    struct Before(bool);
    #[derive(Serialize, Deserialize)]
    struct After {
        sure: bool,
    }
    impl Resolve for Before {
        const KEY: &'static str = "resolved";
        type From = ();
        async fn resolve((): (), ask: Ask) -> Result<Self, ToolError> {
            Ok(Self(ask.confirm("sure", "Sure?").await?))
        }
    }
    impl Resolve for After {
        const KEY: &'static str = "resolved";
        type From = ();
        async fn resolve((): (), ask: Ask) -> Result<Self, ToolError> {
            Ok(Self { sure: ask.confirm("sure", "Sure?").await? })
        }
    }
    let keys = Keyring::random().expect("a key");
    let instance = |tool| Server::new("s", "1").seal(keys.clone()).tool(tool).build().expect("a server");
    let old = instance(Tool::new("t", async |Resolved(Before(sure)), ask: Ask| more(sure, ask).await));
    let new = instance(Tool::new("t", async |Resolved(After { sure }), ask: Ask| more(sure, ask).await));
    async fn more(sure: bool, ask: Ask) -> Result<String, ToolError> {
        Ok(format!("{sure} {}", ask.confirm("more", "More?").await?))
    }
    let call = Call::tool("t");
    let first = call.begin(&old).await;
    let second = call.answer(&old, &first, json!({ "sure": yes(true) })).await;
    assert_eq!(second.keys(), ["more"]);
    assert_eq!(call.answer(&new, &second, json!({ "more": yes(false) })).await.text(), "true false");
}

/// A7: a question under the key of a resolver is an error that names it.
#[tokio::test]
async fn a_question_under_the_key_of_a_resolver_is_refused() {
    #[derive(Serialize, Deserialize)]
    struct Sure(bool);
    impl Resolve for Sure {
        const KEY: &'static str = "sure";
        type From = ();
        async fn resolve((): (), ask: Ask) -> Result<Self, ToolError> {
            Ok(Self(ask.confirm("sure", "Sure?").await?))
        }
    }
    async fn later(Resolved(Plane { .. }): Resolved<Plane>, ask: Ask) -> Result<String, ToolError> {
        Ok(ask.confirm("plane", "Sure?").await?.to_string())
    }
    let inside = Tool::new("inside", async |Resolved(Sure(sure))| sure.to_string());
    let server = Server::new("s", "1").state(Diary::default()).tool(inside).tool(Tool::new("later", later));
    let endpoint = server.build().expect("a server");
    let later = Call::tool("later").with(json!({ "flight": "RT1" }));
    for (call, key) in [(Call::tool("inside"), "`sure`"), (later, "`plane`")] {
        let turn = call.begin(&endpoint).await;
        let (code, message) = turn.error();
        assert!(code == -32603 && message.contains(key) && message.contains("used twice"), "{message}");
    }
}
