//! Flows of rounds whose tokens change: refresh, step-up, and other callers.

use roundtrip::seal::TokenVersion;
use roundtrip::testing::Effects;
use roundtrip::{Ask, Caller, Form, MemoryLedger, Server, State, Tool, ToolError};
use serde_json::{Value, json};

use super::{Desk, capable, issuer, lacking, text};
use crate::seal::ring;
use crate::support::{Answer, accept, message};

#[derive(Form)]
struct Sure {
    sure: bool,
}

/// A handler of three rounds that needs more rights in the end.
async fn publish(ask: Ask, caller: Caller, State(effects): State<Effects>) -> Result<String, ToolError> {
    let Sure { sure } = ask.form("first", "Begin?").await?;
    ask.remember("draft", async || effects.happened("draft")).await?;
    let Sure { sure: really } = ask.form("second", "Publish?").await?;
    ask.remember("print", async || effects.happened("print")).await?;
    caller.need_scopes(["publish"])?;
    ask.remember("send", async || effects.happened("send")).await?;
    Ok(format!("{sure} {really} by {}", caller.principal.map(|who| who.to_string()).unwrap_or_default()))
}

fn server(effects: &Effects) -> Server {
    Server::new("press", "1").seal(ring(&[1])).state(effects.clone()).tool(Tool::new("publish", publish))
}

/// One round: the call, with the state of the round before and an answer.
async fn round(desk: &Desk, token: &str, before: Option<&Answer>, answers: Value) -> Answer {
    let mut params = json!({ "name": "publish", "arguments": {}, "_meta": capable() });
    if let Some(before) = before {
        params["requestState"] = before.result()["requestState"].clone();
        params["inputResponses"] = answers;
    }
    desk.send(Some(token), &message(1, "tools/call", params)).await
}

fn asks(answer: &Answer) -> Vec<String> {
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    result["inputRequests"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

fn yes(key: &str) -> Value {
    json!({ key: accept(&json!({ "sure": true })) })
}

/// O34, O35: the principal survives refresh and step-up: a flow of rounds over two instances goes on with each new token of its
/// caller. A 403 costs nothing: state and answers are good for the wider token, no question is asked twice, no step runs twice.
#[tokio::test]
async fn a_flow_goes_on_with_a_wider_token() {
    let effects = Effects::new();
    let issuer = issuer();
    let one = Desk::with(issuer.clone(), server(&effects), |guard| guard).await;
    let two = Desk::with(issuer, server(&effects), |guard| guard).await;
    let first = round(&one, &one.token("alice", ""), None, json!(null)).await;
    assert_eq!(asks(&first), ["first"]);
    let second = round(&two, &one.token("alice", "other"), Some(&first), yes("first")).await;
    assert_eq!(asks(&second), ["second"]);
    // A step was run before the refusal: the round ends with its state alone, and the next one is refused.
    let narrow = one.token("alice", "");
    let third = round(&one, &narrow, Some(&second), yes("second")).await;
    assert!(asks(&third).is_empty());
    for _ in 0..2 {
        let refused = round(&two, &narrow, Some(&third), json!({})).await;
        assert_eq!(lacking(&refused), (403, Some("publish".to_owned())));
    }
    let done = round(&one, &one.token("alice", "publish"), Some(&third), json!({})).await;
    assert!(text(&done).starts_with("true true by sub:"), "{done:?}");
    assert_eq!(["draft", "print", "send"].map(|step| effects.count(step)), [1, 1, 1]);
}

/// O34: a ledger records no refusal for lack of scopes, and repeats nothing.
#[tokio::test]
async fn a_ledger_records_no_refusal() {
    let effects = Effects::new();
    let desk = Desk::open(server(&effects).ledger(MemoryLedger::new())).await;
    let narrow = desk.token("alice", "");
    let first = round(&desk, &narrow, None, json!(null)).await;
    let second = round(&desk, &narrow, Some(&first), yes("first")).await;
    let third = round(&desk, &narrow, Some(&second), yes("second")).await;
    assert!(asks(&third).is_empty());
    assert_eq!(lacking(&round(&desk, &narrow, Some(&third), json!({})).await).0, 403);
    let wide = desk.token("alice", "publish");
    for _ in 0..2 {
        let done = round(&desk, &wide, Some(&third), json!({})).await;
        assert!(text(&done).starts_with("true true"), "{done:?}");
    }
    assert_eq!(["draft", "print", "send"].map(|step| effects.count(step)), [1, 1, 1]);
}

/// O34: a tool whose scopes a later token lacks is refused before its state is opened, which stays good.
#[tokio::test]
async fn a_narrower_token_in_a_later_round_costs_nothing() {
    let effects = Effects::new();
    let server = Server::new("press", "1").seal(ring(&[1])).state(effects.clone());
    let desk = Desk::open(server.tool(Tool::new("publish", publish).scopes(["press"]))).await;
    let (wide, narrow) = (desk.token("alice", "press publish"), desk.token("alice", "publish"));
    let first = round(&desk, &wide, None, json!(null)).await;
    let refused = round(&desk, &narrow, Some(&first), yes("first")).await;
    assert_eq!(lacking(&refused), (403, Some("press".to_owned())));
    let second = round(&desk, &wide, Some(&first), yes("first")).await;
    let done = round(&desk, &wide, Some(&second), yes("second")).await;
    assert!(text(&done).starts_with("true true"), "{done:?}");
    assert_eq!(["draft", "print", "send"].map(|step| effects.count(step)), [1, 1, 1]);
}

/// O17, O36: `requestState` is no authentication, and that of another caller is refused.
#[tokio::test]
async fn the_state_of_another_is_refused() {
    let effects = Effects::new();
    let desk = Desk::open(server(&effects)).await;
    let first = round(&desk, &desk.token("alice", ""), None, json!(null)).await;
    let others = round(&desk, &desk.token("bob", ""), Some(&first), yes("first")).await;
    assert_eq!(others.refusal().1, -32602);
    assert_eq!(others.json()["error"]["data"]["reason"], "invalid_request_state");
    let nobody = round(&desk, "none", Some(&first), yes("first")).await;
    assert_eq!(nobody.status, 401);
    assert_eq!(asks(&round(&desk, &desk.token("alice", ""), Some(&first), yes("first")).await), ["second"]);
}

/// A token of alice's, through an OAuth client.
fn through(desk: &Desk, client: &str, scopes: &str) -> String {
    desk.issuer.token("alice").client_id(client).scopes(scopes.split_whitespace()).sign()
}

/// S4, S6, O36: from the second version on a state is bound to the OAuth client, too: it is refused in another client of the same user,
/// and in a token that names none, with the error of every other reason. Refresh and step-up keep the client.
#[tokio::test]
async fn the_state_of_another_client_of_the_same_user_is_refused() {
    let effects = Effects::new();
    let desk = Desk::open(server(&effects).token_version(TokenVersion::V2)).await;
    let first = round(&desk, &through(&desk, "agent", ""), None, json!(null)).await;
    let nameless = desk.issuer.token("alice").without("client_id").sign();
    for other in [through(&desk, "browser", ""), nameless] {
        let refused = round(&desk, &other, Some(&first), yes("first")).await;
        assert_eq!(refused.refusal().1, -32602);
        assert_eq!(refused.error_message(), "Invalid or expired requestState");
    }
    let second = round(&desk, &through(&desk, "agent", "more"), Some(&first), yes("first")).await;
    assert_eq!(asks(&second), ["second"]);
    let refused = round(&desk, &through(&desk, "browser", "publish"), Some(&second), yes("second")).await;
    assert_eq!(refused.refusal().1, -32602, "the next round is bound, too");
    let done = round(&desk, &through(&desk, "agent", "publish"), Some(&second), yes("second")).await;
    assert!(text(&done).starts_with("true true by sub:"), "{done:?}");
}

/// S4: a rolling update: instances that are not set to the second version write the first, without a client, and open both. A flow
/// that has the second version keeps it, and one of the first is bound from its next round at an instance of the second.
#[tokio::test]
async fn versions_of_tokens_in_a_rolling_update() {
    let (effects, issuer) = (Effects::new(), issuer());
    let before = Desk::with(issuer.clone(), server(&effects), |guard| guard).await;
    let after = server(&effects).token_version(TokenVersion::V2);
    let after = Desk::with(issuer, after, |guard| guard).await;
    let (agent, browser) = (through(&before, "agent", "publish"), through(&before, "browser", "publish"));
    let unbound = round(&before, &agent, None, json!(null)).await;
    for desk in [&before, &after] {
        assert_eq!(asks(&round(desk, &browser, Some(&unbound), yes("first")).await), ["second"]);
    }
    let bound = round(&after, &agent, Some(&unbound), yes("first")).await;
    for desk in [&before, &after] {
        let refused = round(desk, &browser, Some(&bound), yes("second")).await;
        assert_eq!(refused.refusal().1, -32602);
        let done = round(desk, &agent, Some(&bound), yes("second")).await;
        assert!(text(&done).starts_with("true true"), "{done:?}");
    }
    let bound = round(&after, &agent, None, json!(null)).await;
    let still = round(&before, &agent, Some(&bound), yes("first")).await;
    assert_eq!(asks(&still), ["second"]);
    assert_eq!(round(&before, &browser, Some(&still), yes("second")).await.refusal().1, -32602);
}
