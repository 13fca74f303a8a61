//! Repeated rounds run once, on every store.

use std::time::Duration;

use roundtrip::server::{Endpoint, InFlight};
use roundtrip::wire::ErrorObject;
use roundtrip::{Ask, Form, Keyring, Prompt, Question, Reply, Round, State, Tool, ToolError};
use serde_json::{Value, json};

use super::shop::*;

/// Makes a module with every test of this file, each on a store that the expression opens. The expression may return early
/// to leave a test out.
macro_rules! on_every_store {
    ($module:ident, $store:expr) => {
        mod $module {
            use super::*;

            on_every_store! { @tests $store;
                a_lost_first_reply_is_sent_again
                lost_intermediate_and_final_replies_are_sent_again
                instances_that_share_a_ledger_share_replies
                concurrent_duplicates_run_once_and_share_the_reply
                failures_release_and_tool_errors_are_recorded
                every_method_that_may_ask_is_recorded
                a_key_stands_for_one_call
                a_reply_is_for_its_own_principal
                rounds_without_state_are_told_apart_by_their_answers
                a_refused_round_is_not_used_up
                a_round_that_settles_nothing_leaves_its_token_good
                a_round_that_began_a_step_or_kept_state_is_recorded
                a_dropped_run_releases_its_round
                a_round_with_a_step_outlives_its_client
                one_principal_does_not_fill_the_ledger
                a_ledger_full_of_bytes_refuses_new_rounds
            }
        }
    };
    (@tests $store:expr; $($test:ident)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                repeats::$test($store).await;
            }
        )*
    };
}

/// M6: a first round whose reply was lost is repeated with its caller's key, and gets the same questions and state.
pub(crate) async fn a_lost_first_reply_is_sent_again(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let endpoint = endpoint(&shop, &ledger);
    let first = call(&endpoint, keyed("k", soup())).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    assert_eq!(call(&endpoint, keyed("k", soup())).await, first);
    assert_eq!(shop.done(), 1);
    // Another key is another call; so is none, each time.
    call(&endpoint, keyed("other", soup())).await;
    call(&endpoint, plain(soup())).await;
    call(&endpoint, plain(soup())).await;
    assert_eq!(shop.done(), 4);
    assert_holds(&ledger, 2).await;
}

/// M6: an intermediate round and the final one are answered from the record, as often as their tokens come, though other
/// answers come with them; and what each round does outside `once` is done once.
pub(crate) async fn lost_intermediate_and_final_replies_are_sent_again(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let endpoint = endpoint(&shop, &ledger);
    let first = call(&endpoint, plain(soup())).await;
    let second = call(&endpoint, answer(&first, "sure", true)).await;
    assert_eq!(second["result"]["resultType"], "input_required", "{second}");
    assert_eq!(call(&endpoint, answer(&first, "sure", true)).await, second);
    assert_eq!(call(&endpoint, answer(&first, "sure", false)).await, second, "the first answers win");
    let last = call(&endpoint, answer(&second, "pay", true)).await;
    assert_eq!(text(&last), "soup ordered");
    for pay in [true, false, true] {
        assert_eq!(call(&endpoint, answer(&second, "pay", pay)).await, last);
    }
    assert_eq!(call(&endpoint, answer(&first, "sure", true)).await, second, "after the end, too");
    assert_eq!(shop.done(), 3, "once a round");
    assert_holds(&ledger, 2).await;
}

/// M6: a repeat that lands on another instance gets the reply that the first one recorded.
pub(crate) async fn instances_that_share_a_ledger_share_replies(store: impl Store) {
    let (shop, keys) = (store.shop(), Keyring::random().expect("a key"));
    let instance = |ledger| server(&shop).seal(keys.clone()).ledger(ledger).build().expect("a server");
    let (one, two) = (instance(store.instance().await), instance(store.instance().await));
    let first = call(&one, keyed("k", soup())).await;
    assert_eq!(call(&two, keyed("k", soup())).await, first);
    let second = call(&two, answer(&first, "sure", true)).await;
    assert_eq!(call(&one, answer(&first, "sure", true)).await, second);
    let last = call(&one, answer(&second, "pay", true)).await;
    assert_eq!(call(&two, answer(&second, "pay", true)).await, last);
    assert_eq!(shop.done(), 3);
}

/// M6: duplicates that come while the first one runs wait for it, run nothing, and get its reply.
pub(crate) async fn concurrent_duplicates_run_once_and_share_the_reply(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let endpoint = endpoint(&shop, &ledger);
    let calls = (0..20).map(|_| {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { call(&endpoint, keyed("k", json!({ "name": "slow" }))).await })
    });
    let calls: Vec<_> = calls.collect();
    shop.has_done(1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    shop.go.notify_one();
    for call in calls {
        assert_eq!(text(&call.await.expect("an answer")), "run 1");
    }
    assert_eq!(shop.done(), 1);
    assert_holds(&ledger, 1).await;
}

/// M6: panics and internal errors are not recorded, so that a retry can run; a tool's own error is a result.
pub(crate) async fn failures_release_and_tool_errors_are_recorded(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let endpoint = endpoint(&shop, &ledger);
    let shaky = || call(&endpoint, keyed("k", json!({ "name": "shaky" })));
    for _ in 0..2 {
        assert_eq!(shaky().await["error"]["code"], -32603);
        assert_holds(&ledger, 0).await;
    }
    for _ in 0..2 {
        let answer = shaky().await;
        assert_eq!((text(&answer), &answer["result"]["isError"]), ("sold out", &json!(true)));
    }
    assert_eq!(shop.done(), 3);
}

/// M6: prompts and resources are recorded as tools are, and refusals as results are.
pub(crate) async fn every_method_that_may_ask_is_recorded(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let ask = async |State(shop): State<Shop>, ask: Ask| {
        shop.work();
        let yes = ask.confirm("sure", "Sure?").await?;
        Ok::<_, ErrorObject>(yes.to_string())
    };
    let endpoint = server(&shop).prompt(Prompt::new("ask", ask)).ledger(ledger.clone());
    let endpoint = endpoint.build().expect("a server");
    let run = |method, params| end(&endpoint, begin_as(None, &endpoint, method, params));
    for (method, params) in
        [("prompts/get", json!({ "name": "hint" })), ("resources/read", json!({ "uri": "shop://count" }))]
    {
        let first = run(method, keyed("k".to_owned() + method, params.clone())).await;
        assert!(first["error"].is_null(), "{first}");
        assert_eq!(run(method, keyed("k".to_owned() + method, params)).await, first);
    }
    assert_eq!(shop.done(), 2);
    let asked = run("prompts/get", plain(json!({ "name": "ask" }))).await;
    let mut no = plain(json!({ "name": "ask", "inputResponses": { "sure": { "action": "decline" } } }));
    no["requestState"] = asked["result"]["requestState"].clone();
    let refused = run("prompts/get", no.clone()).await;
    assert_eq!(refused["error"]["code"], 403, "{refused}");
    assert_eq!(run("prompts/get", no).await, refused);
    assert_eq!(shop.done(), 4);
}

/// M6: one key stands for one call; with another target or other arguments it is refused, and runs nothing.
pub(crate) async fn a_key_stands_for_one_call(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let endpoint = endpoint(&shop, &ledger);
    let first = call(&endpoint, keyed("k", soup())).await;
    for other in [json!({ "name": "order", "arguments": { "what": "cake" } }), json!({ "name": "slow" })] {
        let refused = call(&endpoint, keyed("k", other)).await;
        assert_eq!(refused["error"]["code"], -32602);
        assert!(
            refused["error"]["message"].as_str().is_some_and(|text| text.contains("another call")),
            "{refused}"
        );
    }
    // Spelling is not meaning.
    let respelt = keyed(
        "k",
        serde_json::from_str(r#"{"arguments":{"wh\u0061t":"soup"},"name":"order"}"#).expect("JSON"),
    );
    assert_eq!(call(&endpoint, respelt).await, first);
    for invalid in [json!(""), json!("x".repeat(129)), json!(7), json!(null)] {
        let refused = call(&endpoint, keyed(invalid, soup())).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert!(call(&endpoint, keyed("é".repeat(128), soup())).await["error"].is_null());
    assert_eq!(shop.done(), 2);
}

/// M5, M6: nobody reads a reply that was recorded for another principal, by token or by key.
pub(crate) async fn a_reply_is_for_its_own_principal(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let endpoint = endpoint(&shop, &ledger);
    let alice = Some("alice");
    let first = call_as(alice, &endpoint, keyed("k", soup())).await;
    let second = call_as(alice, &endpoint, answer(&first, "sure", true)).await;
    for other in [Some("mallory"), Some(""), None] {
        let refused = call_as(other, &endpoint, answer(&first, "sure", true)).await;
        assert_eq!(refused["error"]["data"]["reason"], "invalid_request_state");
        let own = call_as(other, &endpoint, keyed("k", soup())).await;
        assert_ne!(own["result"]["requestState"], first["result"]["requestState"]);
    }
    assert_eq!(shop.done(), 5);
    assert_eq!(call_as(alice, &endpoint, keyed("k", soup())).await, first);
    assert_eq!(call_as(alice, &endpoint, answer(&first, "sure", true)).await, second);
    assert_eq!(shop.done(), 5);
}

/// M6: where a flow has no state, its answers tell a later round from the first, and each is recorded.
pub(crate) async fn rounds_without_state_are_told_apart_by_their_answers(store: impl Store) {
    #[derive(Form)]
    struct Size {
        number: u8,
    }
    let (shop, ledger) = (store.shop(), store.instance().await);
    let size = async |State(shop): State<Shop>, round: Round| {
        shop.work();
        let round = round.by_key_alone();
        let Some(Size { number }) = round.answer::<Size>("size")? else {
            return Ok(round.ask([Question::form::<Size>("size", "Which size?")]));
        };
        Ok::<Reply, ToolError>(Reply::text(format!("size {number}")))
    };
    let endpoint = server(&shop).tool(shop.offer(Tool::new("size", size)));
    let endpoint = endpoint.ledger(ledger).build().expect("a server");
    let asked = call(&endpoint, keyed("k", json!({ "name": "size" }))).await;
    assert_eq!(
        (&asked["result"]["resultType"], &asked["result"]["requestState"]),
        (&json!("input_required"), &Value::Null)
    );
    let given = json!({ "size": { "action": "accept", "content": { "number": 7 } } });
    let answered = keyed("k", json!({ "name": "size", "inputResponses": given }));
    for _ in 0..2 {
        assert_eq!(text(&call(&endpoint, answered.clone()).await), "size 7");
        assert_eq!(call(&endpoint, keyed("k", json!({ "name": "size" }))).await, asked);
    }
    assert_eq!(shop.done(), 2);
}

/// M6: a round that is refused before its handler begins is not used up: the same token or key is good for another try.
pub(crate) async fn a_refused_round_is_not_used_up(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let endpoint = endpoint(&shop, &ledger);
    let misfit = keyed("k", json!({ "name": "order", "arguments": { "what": 7 } }));
    assert_eq!(call(&endpoint, misfit).await["result"]["isError"], true);
    assert_holds(&ledger, 0).await;
    let first = call(&endpoint, keyed("k", soup())).await;
    let mut malformed = answer(&first, "sure", true);
    malformed["inputResponses"] = json!({ "sure": { "action": "bogus" } });
    assert_eq!(call(&endpoint, malformed).await["error"]["code"], -32602);
    let second = call(&endpoint, answer(&first, "sure", true)).await;
    assert_eq!(second["result"]["resultType"], "input_required", "{second}");
    assert_eq!(shop.done(), 2);
    assert_holds(&ledger, 2).await;
}

/// The call that repeats a round without any answer.
fn without_answers(asked: &Value) -> Value {
    let mut params = answer(asked, "sure", true);
    params.as_object_mut().expect("an object").remove("inputResponses");
    params
}

/// M6, M9, M12: a round that settled no answer and began no step is not recorded: the honest retry with the same token still
/// counts, whatever came before it. But one answer counts, whichever of the tokens it comes with.
pub(crate) async fn a_round_that_settles_nothing_leaves_its_token_good(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let endpoint = endpoint(&shop, &ledger);
    let first = call(&endpoint, plain(soup())).await;
    let mut misfit = answer(&first, "sure", true);
    misfit["inputResponses"]["sure"]["content"] = json!({ "confirm": "perhaps" });
    let again = call(&endpoint, misfit).await;
    let missing = call(&endpoint, without_answers(&again)).await;
    for asked in [&again, &missing] {
        assert!(asked["result"]["inputRequests"].get("sure").is_some(), "{asked}");
    }
    assert_holds(&ledger, 0).await;
    let second = call(&endpoint, answer(&first, "sure", true)).await;
    assert!(second["result"]["inputRequests"].get("pay").is_some(), "{second}");
    assert_eq!(shop.done(), 4);
    assert_holds(&ledger, 1).await;
    for token in [&first, &again, &missing] {
        assert_eq!(call(&endpoint, answer(token, "sure", false)).await, second, "the first answer counts");
    }
    let last = call(&endpoint, answer(&second, "pay", true)).await;
    assert_eq!((text(&last), shop.done()), ("soup ordered", 5));
    assert_holds(&ledger, 2).await;
}

/// M6: a step that began, and state that a round by hand has kept, are progress: their rounds are recorded.
pub(crate) async fn a_round_that_began_a_step_or_kept_state_is_recorded(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let stepping = async |State(shop): State<Shop>, ask: Ask| {
        ask.confirm("first", "First?").optional().await?;
        let paid = ask.once("pay", async |_| Err::<(), _>(ToolError::new(format!("try {}", shop.work()))));
        drop(paid.await);
        ask.confirm("second", "Second?").await?;
        Ok::<_, ToolError>("done")
    };
    let by_hand = async |State(shop): State<Shop>, round: Round| {
        shop.work();
        let kept = round.state::<u32>()?.unwrap_or(0);
        let reply: Reply = round.hand_off(&(kept + 1));
        Ok::<_, ToolError>(reply)
    };
    let [stepping, by_hand] = [Tool::new("stepping", stepping), Tool::new("by_hand", by_hand)];
    let server = server(&shop).tool(shop.offer(stepping)).tool(shop.offer(by_hand));
    let endpoint = server.ledger(ledger.clone()).build().expect("a server");
    for name in ["stepping", "by_hand"] {
        let first = call(&endpoint, plain(json!({ "name": name }))).await;
        let mut retry =
            plain(json!({ "name": name, "inputResponses": { "first": { "action": "decline" } } }));
        retry["requestState"] = first["result"]["requestState"].clone();
        let second = call(&endpoint, retry.clone()).await;
        let done = shop.done();
        assert_eq!(call(&endpoint, retry.clone()).await, second, "{name}");
        // The step fails again, and no answer is settled: it has begun all the same.
        retry["requestState"] = second["result"]["requestState"].clone();
        let third = call(&endpoint, retry.clone()).await;
        assert_eq!(call(&endpoint, retry).await, third, "{name}");
        assert_eq!(shop.done(), done + 1, "{name}");
    }
    assert_holds(&ledger, 4).await;
}

/// A call that runs until it is aborted, as a client hangs up.
fn spawned(endpoint: &Endpoint, call: InFlight) -> tokio::task::JoinHandle<Value> {
    let endpoint = endpoint.clone();
    tokio::spawn(async move { end(&endpoint, call).await })
}

/// M6: a run that is dropped before its end gives the round back: to the one who waits, or who comes next.
pub(crate) async fn a_dropped_run_releases_its_round(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.instance().await);
    let (one, other) = (endpoint(&shop, &ledger), endpoint(&shop, &store.instance().await));
    let slow =
        |endpoint: &Endpoint| begin_as(None, endpoint, "tools/call", keyed("k", json!({ "name": "slow" })));
    let unpolled = slow(&one);
    assert_holds(&ledger, 0).await;
    drop(unpolled);
    let first = spawned(&one, slow(&one));
    shop.has_done(1).await;
    let (waiting, gone) = (spawned(&other, slow(&other)), spawned(&one, slow(&one)));
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_holds(&ledger, 1).await;
    gone.abort();
    first.abort();
    shop.has_done(2).await;
    shop.go.notify_one();
    assert_eq!(text(&waiting.await.expect("a reply")), "run 2");
    assert_eq!(text(&end(&one, slow(&one)).await), "run 2");
    assert_eq!(shop.done(), 2);
}

/// M6: a claimed round whose client hangs up inside a step goes on and is recorded: the repeat, on any instance, gets its
/// reply, and nothing is done twice.
pub(crate) async fn a_round_with_a_step_outlives_its_client(store: impl Store) {
    let shop = store.shop();
    let charge = async |State(shop): State<Shop>, ask: Ask| {
        let charge = async |_| {
            let run = shop.work();
            shop.go.notified().await;
            Ok::<_, ToolError>(run)
        };
        let run = ask.once("charge", charge).await?;
        Ok::<_, ToolError>(format!("charge {run}"))
    };
    let instance = |ledger| {
        let server = server(&shop).tool(shop.offer(Tool::new("charge", charge)));
        server.ledger(ledger).build().expect("a server")
    };
    let (one, other) = (instance(store.instance().await), instance(store.instance().await));
    let charge = || keyed("k", json!({ "name": "charge" }));
    let first = spawned(&one, begin_as(None, &one, "tools/call", charge()));
    shop.has_done(1).await;
    first.abort();
    let waiting = spawned(&other, begin_as(None, &other, "tools/call", charge()));
    tokio::time::sleep(Duration::from_millis(20)).await;
    shop.go.notify_one();
    assert_eq!(text(&waiting.await.expect("a reply")), "charge 1");
    assert_eq!(text(&call(&one, charge()).await), "charge 1");
    assert_eq!(shop.done(), 1);
}

/// M6, Z3: one principal cannot fill the ledger for all: it is refused before its round runs, others still get in, and
/// what is recorded stays.
pub(crate) async fn one_principal_does_not_fill_the_ledger(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.bounded(4, usize::MAX).await);
    let endpoint = endpoint(&shop, &ledger);
    let order = |principal, key: &str| call_as(Some(principal), &endpoint, keyed(key, soup()));
    let (first, second) = (order("eve", "k1").await, order("eve", "k2").await);
    assert!(first["error"].is_null() && second["error"].is_null(), "{first} {second}");
    assert_eq!(order("eve", "k3").await["error"]["code"], 503, "half is hers");
    assert!(order("bob", "k1").await["error"].is_null(), "half of the rest is for the next");
    assert_eq!(order("eve", "k1").await, first, "nothing is forgotten");
    assert_eq!(shop.done(), 3);
}

/// M6, Z3: a ledger without room for another byte refuses new rounds before they run, and forgets none.
pub(crate) async fn a_ledger_full_of_bytes_refuses_new_rounds(store: impl Store) {
    let (shop, ledger) = (store.shop(), store.bounded(usize::MAX, 1).await);
    let endpoint = endpoint(&shop, &ledger);
    let first = call(&endpoint, keyed("k", soup())).await;
    assert_eq!(call(&endpoint, keyed("other", soup())).await["error"]["code"], 503);
    assert_eq!(call(&endpoint, keyed("k", soup())).await, first);
    assert!(call(&endpoint, plain(soup())).await["error"].is_null(), "what needs no record runs");
    assert_eq!(shop.done(), 2);
}
