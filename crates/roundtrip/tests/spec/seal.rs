//! The seal, as a client meets it: state that is good for its own call, for its own time, on every instance of its
//! service, and nowhere else.

use std::time::{Duration, SystemTime};

use roundtrip::seal::dangerous::Plaintext;
use roundtrip::seal::{
    Binding, BindingParts, CLOCK_SKEW, Claims, FlowId, Key, Keyring, Sealer, Timestamp, TokenLimits,
    digest_arguments,
};
use roundtrip::server::Endpoint;
use roundtrip::wire::JsonObject;
use roundtrip::{Args, Ask, Form, Principal, Round, Server, Tool, ToolError};
use roundtrip_core::round::{Journal, PinKey};
use serde_json::{Value, json};

use crate::logged::logged;
use crate::support::{Call, Running, Turn, accept, headers};

#[derive(Form)]
pub(crate) struct Secret {
    pub(crate) word: String,
}

pub(crate) async fn remember(ask: Ask) -> Result<String, ToolError> {
    let secret: Secret = ask.form("secret", "Which word?").await?;
    let noted: String =
        ask.once("noted", async |_| Ok::<_, ToolError>("a remembered value".to_owned())).await?;
    let sure = ask.confirm("sure", "Sure?").await?;
    Ok(format!("{} {noted} {sure}", secret.word))
}

/// The same with any arguments.
pub(crate) async fn remember_all(ask: Ask, _: Args<JsonObject>) -> Result<String, ToolError> {
    remember(ask).await
}

pub(crate) fn ring(keys: &[u8]) -> Keyring {
    Keyring::new(keys.iter().map(|byte| Key::generate([*byte; 32]))).expect("a ring")
}

/// An instance of a service.
pub(crate) fn named(name: &str, sealer: impl Into<Sealer>) -> Endpoint {
    let server = Server::new(name, "1").seal(sealer);
    server.tool(Tool::new("remember", remember)).build().expect("a server")
}

pub(crate) fn instance(keys: &[u8]) -> Endpoint {
    named("vault", ring(keys))
}

pub(crate) fn secret() -> Value {
    json!({ "secret": accept(&json!({ "word": "swordfish" })) })
}

pub(crate) fn sure() -> Value {
    json!({ "sure": accept(&json!({ "confirm": true })) })
}

pub(crate) const DONE: &str = "swordfish a remembered value true";

#[track_caller]
pub(crate) fn assert_refused(turn: &Turn, case: &str) {
    let error = json!({
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": { "reason": "invalid_request_state" },
    });
    assert_eq!(turn.0["error"], error, "{case}");
}

/// S1: a server that says nothing about sealing seals all the same, with a key of its own; plain state has to be
/// spelled out as dangerous.
#[tokio::test]
async fn state_is_sealed_unless_dangerous_is_spelled_out() {
    let plain_server = || Server::new("vault", "1").tool(Tool::new("remember", remember));
    let (one, other) = (plain_server().build().expect("a server"), plain_server().build().expect("a server"));
    let call = Call::tool("remember");
    let first = call.begin(&one).await;
    let second = call.answer(&one, &first, secret()).await;
    assert!(!shows(&second, "swordfish"));
    assert_refused(&call.answer(&other, &second, sure()).await, "another process");
    assert_eq!(call.answer(&one, &second, sure()).await.text(), DONE);

    let dangerous = named("vault", Sealer::with_codec(Plaintext));
    let first = call.begin(&dangerous).await;
    let second = call.answer(&dangerous, &first, secret()).await;
    assert!(shows(&second, "swordfish"));
    assert_eq!(call.answer(&dangerous, &second, sure()).await.text(), DONE);
}

/// Whether a text can be read in a state, decoded or not.
fn shows(turn: &Turn, text: &str) -> bool {
    let state = turn.state().expect("state");
    let sextet = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        _ => 63,
    };
    let mut decoded = Vec::new();
    for chunk in state.as_bytes().chunks(4) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 6 | u32::from(sextet(*byte)));
        decoded.extend_from_slice(&(bits << (6 * (4 - chunk.len()))).to_be_bytes()[1..chunk.len()]);
    }
    state.contains(text) || decoded.windows(text.len()).any(|window| window == text.as_bytes())
}

/// S3: no change to a state goes unnoticed, in any character, nor any other way of writing it.
#[tokio::test]
async fn every_change_to_a_state_is_refused() {
    let endpoint = instance(&[1]);
    let call = Call::tool("remember");
    let first = call.begin(&endpoint).await;
    let state = first.state().expect("state").to_owned();
    let mut spellings = vec![
        format!("{state} "),
        format!(" {state}"),
        format!("{state}\n"),
        format!("{state}="),
        format!("{state}=="),
        format!("{state}A"),
        format!("{state}{state}"),
        state[1..].to_owned(),
        state[..state.len() - 1].to_owned(),
        state.to_ascii_uppercase(),
    ];
    if state.contains(['-', '_']) {
        spellings.push(state.replace('-', "+").replace('_', "/"));
    }
    for (index, found) in state.char_indices() {
        let other = if found == 'A' { 'B' } else { 'A' };
        spellings.push(format!("{}{other}{}", &state[..index], &state[index + 1..]));
    }
    for spelling in &spellings {
        assert_refused(&call.send(&endpoint, Some(spelling), Some(secret())).await, spelling);
    }
    assert_eq!(call.answer(&endpoint, &first, secret()).await.keys(), ["sure"]);
}

/// S4: a state is bound to its principal, also to there being none, to its tool and to its arguments, in every round.
#[tokio::test]
async fn a_state_is_bound_to_its_call() {
    let server = Server::new("vault", "1")
        .tool(Tool::new("remember", remember_all))
        .tool(Tool::new("other", remember_all));
    let endpoint = server.build().expect("a server");
    let alice = Call::tool("remember").with(json!({ "a": 1, "b": [1, 2] })).by("alice");
    let nobody = Call::tool("remember").with(json!({ "a": 1, "b": [1, 2] }));
    for (own, strangers) in [
        (&alice, [nobody.clone(), nobody.clone().by("bob"), nobody.clone().by("")]),
        (&nobody, [alice.clone(), nobody.clone().by("bob"), nobody.clone().by("")]),
    ] {
        let first = own.begin(&endpoint).await;
        let second = own.answer(&endpoint, &first, secret()).await;
        for stranger in strangers {
            assert_refused(&stranger.answer(&endpoint, &first, secret()).await, "first");
            assert_refused(&stranger.answer(&endpoint, &second, sure()).await, "second");
        }
        assert_eq!(own.answer(&endpoint, &second, sure()).await.text(), DONE);
    }
    let first = alice.begin(&endpoint).await;
    let changed = [
        Call::tool("other").with(json!({ "a": 1, "b": [1, 2] })).by("alice"),
        Call::tool("remember").with(json!({ "a": 2, "b": [1, 2] })).by("alice"),
        Call::tool("remember").with(json!({ "a": 1, "b": [2, 1] })).by("alice"),
        Call::tool("remember").with(json!({ "a": "1", "b": [1, 2] })).by("alice"),
        Call::tool("remember").with(json!({ "a": 1 })).by("alice"),
        Call::tool("remember").with(json!({})).by("alice"),
        Call::tool("remember").by("alice"),
    ];
    for call in changed {
        assert_refused(&call.answer(&endpoint, &first, secret()).await, "another call");
    }
    let reordered = Call::tool("remember").with(json!({ "b": [1, 2], "a": 1 })).by("alice");
    assert_eq!(reordered.answer(&endpoint, &first, secret()).await.keys(), ["sure"], "the same by value");
}

/// The claims of a state for the usual call: issued and expiring so many seconds from now.
pub(crate) fn claims(issued: i64, expires: i64) -> Claims {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock").as_secs();
    let at = |seconds: i64| Timestamp::from_unix(now.saturating_add_signed(seconds));
    let binding = Binding::new(BindingParts {
        audience: "vault",
        method: "tools/call",
        target: "remember",
        arguments: digest_arguments(None).expect("no arguments"),
        principal: None,
    });
    let mut claims = Claims::begin(FlowId::new([7; 16]), binding, at(issued), Duration::ZERO);
    claims.expires_at = at(expires);
    claims
}

/// A state made by hand for the usual call.
fn forged(keys: &[u8], issued: i64, expires: i64) -> String {
    let journal = Journal::new(PinKey::new([3; 16])).encode([]);
    ring(keys).seal(&claims(issued, expires), &journal, [9; 24], &TokenLimits::default()).expect("a token")
}

/// Z1: where states are not sealed, a forged number of the round is counted on from without overflowing.
#[tokio::test]
async fn a_forged_round_number_does_not_overflow() {
    let sealer = Sealer::with_codec(Plaintext);
    let journal = Journal::new(PinKey::new([3; 16])).encode([]);
    let last = Claims { round: u32::MAX, ..claims(0, 600) };
    let state = sealer.seal(&last, &journal, [9; 24]).await.expect("a token");
    let number = async |ask: Ask| ask.round().to_string();
    let by_hand = async |round: Round| round.number().to_string();
    for tool in [Tool::new("remember", number), Tool::new("remember", by_hand)] {
        let server = Server::new("vault", "1").seal(Sealer::with_codec(Plaintext));
        let endpoint = server.tool(tool).build().expect("a server");
        let turn = Call::tool("remember").send(&endpoint, Some(&state), None).await;
        assert_eq!(turn.text(), u32::MAX.to_string());
    }
}

/// S5: a state is good until it expires, and with a shared key for a minute more in which clocks may differ.
#[tokio::test]
async fn an_expired_state_is_refused() {
    let endpoint = instance(&[1]);
    let call = Call::tool("remember");
    let skew = i64::try_from(CLOCK_SKEW.as_secs()).expect("seconds");
    for (issued, expires, good) in [
        (0, 600, true),
        (-600, -skew + 10, true),
        (skew - 10, 600, true),
        (-600, -skew - 10, false),
        (-600, -3600, false),
        (skew + 10, 3600, false),
    ] {
        let turn = call.send(&endpoint, Some(&forged(&[1], issued, expires)), None).await;
        if good {
            assert_eq!(turn.keys(), ["secret"], "{issued} {expires}");
        } else {
            assert_refused(&turn, &format!("{issued} {expires}"));
        }
    }
}

/// What a state says about its time, opened with the key.
fn lifetime(turn: &Turn) -> u64 {
    let binding = Binding::new(BindingParts {
        audience: "vault",
        method: "tools/call",
        target: "ask",
        arguments: digest_arguments(None).expect("no arguments"),
        principal: None,
    });
    let state = turn.state().expect("state");
    let opened =
        ring(&[1]).open(state, &binding, SystemTime::now().into(), &TokenLimits::default()).expect("a token");
    opened.claims.expires_at.as_unix() - opened.claims.issued_at.as_unix()
}

/// S5: a round waits 600 s for its answers, unless the server or one of its questions says otherwise.
#[tokio::test]
async fn a_round_waits_as_long_as_its_questions_say() {
    async fn usual(ask: Ask) -> Result<String, ToolError> {
        Ok(ask.confirm("sure", "?").await?.to_string())
    }
    async fn patient(ask: Ask) -> Result<String, ToolError> {
        let days = ask.confirm("days", "?").valid_for(Duration::from_secs(86_400)).optional();
        tokio::try_join!(days, ask.confirm("sure", "?"))?;
        Ok("done".into())
    }
    async fn hasty(ask: Ask) -> Result<String, ToolError> {
        Ok(ask.confirm("sure", "?").valid_for(Duration::from_secs(5)).await?.to_string())
    }
    let server = |tool: Tool| Server::new("vault", "1").seal(ring(&[1])).tool(tool);
    let call = Call::tool("ask");
    for (server, seconds) in [
        (server(Tool::new("ask", usual)), 600),
        (server(Tool::new("ask", usual)).answer_within(Duration::from_secs(7200)), 7200),
        (server(Tool::new("ask", patient)), 86_400),
        (server(Tool::new("ask", hasty)), 5),
    ] {
        assert_eq!(lifetime(&call.begin(&server.build().expect("a server")).await), seconds);
    }
}

/// S5: a flow may be capped as a whole, however quick its rounds are.
#[tokio::test]
async fn a_flow_can_be_too_old() {
    let limits = TokenLimits::default().max_flow_age(Duration::from_secs(100));
    let capped = named("vault", Sealer::new(ring(&[1])).limits(limits));
    let call = Call::tool("remember");
    assert_refused(&call.send(&capped, Some(&forged(&[1], -500, 600)), None).await, "begun too long ago");
    assert_eq!(call.send(&capped, Some(&forged(&[1], -50, 600)), None).await.keys(), ["secret"]);
    assert_eq!(call.send(&instance(&[1]), Some(&forged(&[1], -500, 600)), None).await.keys(), ["secret"]);
}

/// S6: whatever is wrong with a state, the client is told the same; the log has the reason and the key's name, and
/// never the content.
#[test]
fn one_error_for_every_cause_and_the_reason_in_the_log() {
    let log = logged(async {
        let endpoint = instance(&[1]);
        let call = Call::tool("remember").by("alice-the-principal");
        let first = call.begin(&endpoint).await;
        let second = call.answer(&endpoint, &first, secret()).await;
        let state = second.state().expect("state").to_owned();
        let (before, after) = state.split_at(state.len() / 2);
        let other = if after.starts_with('A') { 'B' } else { 'A' };
        let tampered = format!("{before}{other}{}", &after[1..]);
        let elsewhere = call.answer(&instance(&[2]), &second, sure()).await;
        let stranger = Call::tool("remember").answer(&endpoint, &second, sure()).await;
        let turns = [
            ("malformed", call.send(&endpoint, Some("!"), None).await),
            ("long", call.send(&endpoint, Some(&"A".repeat(70_000)), None).await),
            ("tampered", call.send(&endpoint, Some(&tampered), None).await),
            ("another key", elsewhere),
            ("another principal", stranger),
            ("expired", Call::tool("remember").send(&endpoint, Some(&forged(&[1], -900, -800)), None).await),
        ];
        for (case, turn) in turns {
            assert_refused(&turn, case);
        }
    });
    for reason in [
        "malformed",
        "longer than allowed",
        "changed or forged",
        "not on the ring",
        "another principal",
        "expired",
    ] {
        assert!(log.contains(reason), "{reason}: {log}");
    }
    let key = ring(&[1]).key_ids().next().expect("a key").to_string();
    assert!(log.contains(&key), "{key}: {log}");
    for content in ["swordfish", "a remembered value", "alice-the-principal"] {
        assert!(!log.contains(content), "{log}");
    }
}

/// S7: neither answers nor remembered values nor the principal can be read from a state; what it shows is its length.
#[tokio::test]
async fn nothing_can_be_read_from_a_state() {
    let endpoint = instance(&[1]);
    let call = Call::tool("remember").by("alice");
    let first = call.begin(&endpoint).await;
    let second = call.answer(&endpoint, &first, secret()).await;
    for text in ["swordfish", "remembered", "alice", "secret", "sure", "vault", "tools/call"] {
        assert!(!shows(&second, text), "{text}");
    }
    let (one, two) = (call.begin(&endpoint).await, call.begin(&endpoint).await);
    let (one, two) = (one.state().expect("state"), two.state().expect("state"));
    assert_eq!(one.len(), two.len());
    assert_ne!(one[8..], two[8..], "no two are alike");
}

/// S8: a state that would grow past its cap is an error that names the key that grew, and half of it is a warning.
#[test]
fn a_state_that_grows_too_large_names_the_key() {
    async fn growing(ask: Ask) -> Result<String, ToolError> {
        ask.once("small", async |_| Ok::<_, ToolError>(1)).await?;
        for turn in 1.. {
            let size = turn * 20_000;
            ask.once(format!("pile-{turn}"), async |_| Ok::<_, ToolError>("x".repeat(size))).await?;
            ask.confirm(format!("more-{turn}"), "More?").await?;
        }
        Ok("never".into())
    }
    async fn by_hand(round: Round) -> Result<roundtrip::Reply, ToolError> {
        Ok(round.hand_off(&"x".repeat(60_000)))
    }
    let log = logged(async {
        let server =
            Server::new("vault", "1").tool(Tool::new("growing", growing)).tool(Tool::new("by_hand", by_hand));
        let endpoint = server.build().expect("a server");
        let call = Call::tool("growing");
        let mut turn = call.begin(&endpoint).await;
        assert_eq!(turn.keys(), ["more-1"], "20 kB are fine");
        turn = call.answer(&endpoint, &turn, json!({ "more-1": accept(&json!({ "confirm": true })) })).await;
        let (code, told) = turn.error();
        assert_eq!(code, -32603);
        assert!(told.contains("`pile-2`, 40002 bytes"), "{told}");
        assert!(told.contains("65536 are allowed"), "{told}");
        let turn = Call::tool("by_hand").begin(&endpoint).await;
        assert!(turn.error().1.contains("state"), "{turn:?}");
        assert!(!turn.error().1.contains("``"), "its own state has a name: {turn:?}");
    });
    assert!(!log.contains("half"), "{log}");
    let log = logged(async {
        let limits = TokenLimits::default().max_token(40_000);
        let server = Server::new("vault", "1")
            .seal(Sealer::new(ring(&[1])).limits(limits))
            .tool(Tool::new("growing", growing));
        let turn = Call::tool("growing").begin(&server.build().expect("a server")).await;
        assert_eq!(turn.keys(), ["more-1"]);
    });
    assert!(log.contains("WARN") && log.contains("half") && log.contains("key=\"pile-1\""), "{log}");
}

/// S4: over HTTP the principal is whoever the author's function finds in the request's head.
#[tokio::test]
async fn over_http_a_state_is_bound_to_whom_the_author_finds() {
    let http = Server::new("vault", "1").tool(Tool::new("remember", remember)).into_http().expect("a server");
    let user =
        |parts: &http::request::Parts| Some(Principal::new(parts.headers.get("x-user")?.to_str().ok()?));
    let running = Running::start_http(http.principal(user)).await;
    let send = async |user: Option<&str>, state: Option<&str>, answers: Option<Value>| {
        let request = Call::tool("remember").request(state, answers);
        let mut head = headers(&request);
        head.extend(user.map(|user| ("X-User".to_owned(), user.to_owned())));
        Turn::of(&running.connect().await.post(&head, request.to_string().as_bytes()).await)
    };
    let first = send(Some("alice"), None, None).await;
    let second = send(Some("alice"), first.state(), Some(secret())).await;
    for stranger in [None, Some("bob"), Some("Alice")] {
        assert_refused(&send(stranger, second.state(), Some(sure())).await, &format!("{stranger:?}"));
    }
    assert_eq!(send(Some("alice"), second.state(), Some(sure())).await.text(), DONE);
}
