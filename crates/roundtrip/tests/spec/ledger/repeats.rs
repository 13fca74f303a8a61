//! What comes twice runs once.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use roundtrip::seal::Timestamp;
use roundtrip::wire::ErrorObject;
use roundtrip::{Ask, Form, Keyring, MemoryLedger, Prompt, Question, Reply, Round, State, Tool, ToolError};
use serde_json::{Value, json};

use super::stores::Noting;
use super::{Shop, answer, begin_as, call, call_as, end, endpoint, keyed, plain, poll, server, soup, text};

/// M6: a first round whose reply was lost is repeated with its caller's key, and gets the same questions and state.
#[tokio::test]
async fn a_lost_first_reply_is_sent_again() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
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
    assert_eq!(ledger.len(), 2);
}

/// M6: an intermediate round and the final one are answered from the record, as often as their tokens come, though other
/// answers come with them; and what each round does outside `once` is done once.
#[tokio::test]
async fn lost_intermediate_and_final_replies_are_sent_again() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
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
    assert_eq!(ledger.len(), 2);
}

/// M6: without a ledger a repeated round runs again, which is what the manual says.
#[tokio::test]
async fn without_a_ledger_a_repeat_runs_again() {
    let shop = Shop::default();
    let endpoint = server(&shop).build().expect("a server");
    let first = call(&endpoint, keyed("k", soup())).await;
    assert_ne!(call(&endpoint, keyed("k", soup())).await, first);
    call(&endpoint, answer(&first, "sure", true)).await;
    call(&endpoint, answer(&first, "sure", true)).await;
    assert_eq!(shop.done(), 4);
    assert_eq!(call(&endpoint, keyed(7, soup())).await["error"], Value::Null, "nobody looks at the key");
}

/// M6: a repeat that lands on another instance gets the reply that the first one recorded.
#[tokio::test]
async fn instances_that_share_a_ledger_share_replies() {
    let (shop, ledger, keys) =
        (Shop::default(), Arc::new(MemoryLedger::new()), Keyring::random().expect("a key"));
    let instance = || server(&shop).seal(keys.clone()).ledger(Arc::clone(&ledger)).build().expect("a server");
    let (one, two) = (instance(), instance());
    let first = call(&one, keyed("k", soup())).await;
    assert_eq!(call(&two, keyed("k", soup())).await, first);
    let second = call(&two, answer(&first, "sure", true)).await;
    assert_eq!(call(&one, answer(&first, "sure", true)).await, second);
    let last = call(&one, answer(&second, "pay", true)).await;
    assert_eq!(call(&two, answer(&second, "pay", true)).await, last);
    assert_eq!(shop.done(), 3);
}

/// M6: duplicates that come while the first one runs wait for it, run nothing, and get its reply.
#[tokio::test]
async fn concurrent_duplicates_run_once_and_share_the_reply() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let endpoint = endpoint(&shop, &ledger);
    let calls = (0..20).map(|_| {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { call(&endpoint, keyed("k", json!({ "name": "slow" }))).await })
    });
    let calls: Vec<_> = calls.collect();
    while shop.done() == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    shop.go.notify_one();
    for call in calls {
        assert_eq!(text(&call.await.expect("an answer")), "run 1");
    }
    assert_eq!((shop.done(), ledger.len()), (1, 1));
}

/// M6: a run that is dropped before its end gives the round back: to the one who waits, or who comes next.
#[tokio::test]
async fn a_dropped_run_releases_its_round() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let endpoint = endpoint(&shop, &ledger);
    let slow = || begin_as(None, &endpoint, "tools/call", keyed("k", json!({ "name": "slow" })));
    let (mut first, mut waiting, mut gone) = (slow(), slow(), slow());
    assert!(ledger.is_empty(), "nothing is claimed before it is polled");
    poll(&mut first);
    poll(&mut gone);
    poll(&mut waiting);
    assert_eq!((shop.done(), ledger.len()), (1, 1));
    drop(gone);
    drop(first);
    assert!(ledger.is_empty());
    shop.go.notify_one();
    assert_eq!(text(&end(&endpoint, waiting).await), "run 2");
    assert_eq!(text(&end(&endpoint, slow()).await), "run 2");
}

/// M6: panics and internal errors are not recorded, so that a retry can run; a tool's own error is a result.
#[tokio::test]
async fn failures_release_and_tool_errors_are_recorded() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let endpoint = endpoint(&shop, &ledger);
    let shaky = || call(&endpoint, keyed("k", json!({ "name": "shaky" })));
    for _ in 0..2 {
        assert_eq!(shaky().await["error"]["code"], -32603);
        assert!(ledger.is_empty());
    }
    for _ in 0..2 {
        let answer = shaky().await;
        assert_eq!((text(&answer), &answer["result"]["isError"]), ("sold out", &json!(true)));
    }
    assert_eq!(shop.done(), 3);
}

/// M6: prompts and resources are recorded as tools are, and refusals as results are.
#[tokio::test]
async fn every_method_that_may_ask_is_recorded() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
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
#[tokio::test]
async fn a_key_stands_for_one_call() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
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
#[tokio::test]
async fn a_reply_is_for_its_own_principal() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
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

/// M6: the handler of a dropped run is gone before anybody else may run the round.
#[tokio::test]
async fn a_round_is_released_after_its_handler_is_gone() {
    struct Leaving(MemoryLedger, Shop);
    impl Drop for Leaving {
        fn drop(&mut self) {
            assert_eq!(self.0.len(), 1, "still claimed");
            self.1.work();
        }
    }
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let (own, count) = (ledger.clone(), shop.clone());
    let stay = move || {
        let leaving = Leaving(own.clone(), count.clone());
        async move {
            std::future::pending::<()>().await;
            drop(leaving);
            "never"
        }
    };
    let endpoint =
        server(&shop).tool(Tool::new("stay", stay)).ledger(ledger.clone()).build().expect("a server");
    let mut call = begin_as(None, &endpoint, "tools/call", keyed("k", json!({ "name": "stay" })));
    poll(&mut call);
    drop(call);
    assert_eq!((shop.done(), ledger.len()), (1, 0));
}

/// M6: where a flow has no state, its answers tell a later round from the first, and each is recorded.
#[tokio::test]
async fn rounds_without_state_are_told_apart_by_their_answers() {
    #[derive(Form)]
    struct Size {
        number: u8,
    }
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let size = async |State(shop): State<Shop>, round: Round| {
        shop.work();
        let round = round.by_key_alone();
        let Some(Size { number }) = round.answer::<Size>("size")? else {
            return Ok(round.ask([Question::form::<Size>("size", "Which size?")]));
        };
        Ok::<Reply, ToolError>(Reply::text(format!("size {number}")))
    };
    let endpoint = server(&shop).tool(Tool::new("size", size)).ledger(ledger).build().expect("a server");
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
#[tokio::test]
async fn a_refused_round_is_not_used_up() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let endpoint = endpoint(&shop, &ledger);
    let misfit = keyed("k", json!({ "name": "order", "arguments": { "what": 7 } }));
    assert_eq!(call(&endpoint, misfit).await["result"]["isError"], true);
    assert!(ledger.is_empty());
    let first = call(&endpoint, keyed("k", soup())).await;
    let mut malformed = answer(&first, "sure", true);
    malformed["inputResponses"] = json!({ "sure": { "action": "bogus" } });
    assert_eq!(call(&endpoint, malformed).await["error"]["code"], -32602);
    let second = call(&endpoint, answer(&first, "sure", true)).await;
    assert_eq!(second["result"]["resultType"], "input_required", "{second}");
    assert_eq!((shop.done(), ledger.len()), (2, 2));
}

/// The call that repeats a round without any answer.
fn without_answers(asked: &Value) -> Value {
    let mut params = answer(asked, "sure", true);
    params.as_object_mut().expect("an object").remove("inputResponses");
    params
}

/// M6, M9, M12: a round that settled no answer and began no step is not recorded: the honest retry with the same token still
/// counts, whatever came before it. But one answer counts, whichever of the tokens it comes with.
#[tokio::test]
async fn a_round_that_settles_nothing_leaves_its_token_good() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let endpoint = endpoint(&shop, &ledger);
    let first = call(&endpoint, plain(soup())).await;
    let mut misfit = answer(&first, "sure", true);
    misfit["inputResponses"]["sure"]["content"] = json!({ "confirm": "perhaps" });
    let again = call(&endpoint, misfit).await;
    let missing = call(&endpoint, without_answers(&again)).await;
    for asked in [&again, &missing] {
        assert!(asked["result"]["inputRequests"].get("sure").is_some(), "{asked}");
    }
    assert!(ledger.is_empty());
    let second = call(&endpoint, answer(&first, "sure", true)).await;
    assert!(second["result"]["inputRequests"].get("pay").is_some(), "{second}");
    assert_eq!((shop.done(), ledger.len()), (4, 1));
    for token in [&first, &again, &missing] {
        assert_eq!(call(&endpoint, answer(token, "sure", false)).await, second, "the first answer counts");
    }
    let last = call(&endpoint, answer(&second, "pay", true)).await;
    assert_eq!((text(&last), shop.done(), ledger.len()), ("soup ordered", 5, 2));
}

/// M6: a step that began, and state that a round by hand has kept, are progress: their rounds are recorded.
#[tokio::test]
async fn a_round_that_began_a_step_or_kept_state_is_recorded() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
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
    let server = server(&shop).tool(Tool::new("stepping", stepping)).tool(Tool::new("by_hand", by_hand));
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
    assert_eq!(ledger.len(), 4);
}

/// M6: the tokens of one round do not all expire at once: its record is kept for as long as any of them is good.
#[tokio::test]
async fn a_record_outlives_every_token_of_its_round() {
    let (shop, ledger) = (Shop::default(), Noting::new());
    let endpoint = server(&shop).ledger(ledger.clone()).answer_within(Duration::from_secs(1000));
    let endpoint = endpoint.build().expect("a server");
    let first = call(&endpoint, plain(soup())).await;
    let asked = Timestamp::from(SystemTime::now());
    call(&endpoint, without_answers(&first)).await;
    call(&endpoint, answer(&first, "sure", true)).await;
    let kept = ledger.0.lock().expect("no panic").clone();
    let enough = asked.plus(Duration::from_secs(1000));
    assert!(kept.len() == 3 && kept.iter().all(|until| *until >= enough), "{kept:?}");
}
