//! Requests that are not let in: 401, 400 and 503.

use roundtrip::authorize::Verified;
use roundtrip::testing::Issuer;
use roundtrip::{Authorize, Tool};
use serde_json::{Value, json};

use super::{Desk, ISSUER, METADATA, RESOURCE, bearer, issuer, param, server, text};
use crate::logged::logged;
use crate::support::{Answer, headers, message};

fn call() -> Value {
    message(1, "tools/call", json!({ "name": "whoami", "arguments": {} }))
}

async fn answer(desk: &Desk, verb: &str, headers: &[(String, String)]) -> Answer {
    let mut connection = desk.running.connect().await;
    connection.send(verb, headers, b"").await;
    let mut answer = connection.head().await;
    let length = answer.header("content-length").map_or(0, |length| length.parse().expect("a length"));
    answer.body = connection.exactly(length).await;
    answer
}

/// O1, O2, O3, O4, O9: without a token, POST, GET and DELETE of both eras are 401 with a challenge that names metadata and scopes,
/// and no error; the body is a JSON-RPC error.
#[tokio::test]
async fn without_a_token_every_request_is_challenged() {
    let desk = Desk::guarded(server(), |guard| guard.scopes(["files:read", "files:list"])).await;
    let session = ("Mcp-Session-Id".to_owned(), "guessed".to_owned());
    let handshake = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
    let answers = [
        desk.send(None, &call()).await,
        desk.send(None, &handshake).await,
        answer(&desk, "GET", &[]).await,
        answer(&desk, "GET", std::slice::from_ref(&session)).await,
        answer(&desk, "DELETE", std::slice::from_ref(&session)).await,
    ];
    for answer in answers {
        assert_eq!(answer.refusal(), (401, 401), "{answer:?}");
        assert_eq!(param(&answer, "resource_metadata").as_deref(), Some(METADATA));
        assert_eq!(param(&answer, "scope").as_deref(), Some("files:list files:read"));
        assert_eq!(param(&answer, "error"), None);
        assert_eq!(answer.json().get("id"), None);
    }
}

/// O1: the guard decides by the head: a long body behind a bad token, or none, is not waited for.
#[tokio::test]
async fn the_body_is_not_read_before_the_token() {
    let desk = Desk::open(server()).await;
    for authorization in ["", "Authorization: Bearer bad\r\n"] {
        let mut connection = desk.running.connect().await;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\n{authorization}Content-Length: 1000000\r\n\r\n{{"
        );
        connection.raw(head.as_bytes()).await;
        assert_eq!(connection.head().await.status, 401);
    }
}

/// O5: strangers do not write the log: of the tokens that are refused in a minute, one is above the level of debugging.
#[test]
fn refused_tokens_do_not_fill_the_log() {
    let log = logged(async {
        let desk = Desk::guarded(server(), |guard| guard.principal(|_| None)).await;
        for number in 0..50 {
            assert_eq!(desk.send(Some(&format!("invented-{number}")), &call()).await.status, 401);
            assert_eq!(desk.send(Some(&desk.token("nobody", "")), &call()).await.status, 401);
        }
    });
    let at = |level: &str| {
        log.lines()
            .filter(|line| line.starts_with(level) && line.contains("access token was refused"))
            .count()
    };
    assert_eq!((at("INFO"), at("DEBUG")), (1, 99), "{log}");
}

/// O39: a token that is bound to a key is refused as a plain bearer token, unless the author says that a proxy checks the proof.
#[tokio::test]
async fn a_bound_token_is_refused_without_its_proof() {
    let bound = |desk: &Desk| desk.issuer.token("alice").claim("cnf", json!({ "jkt": "0ZcOCORZNYy" })).sign();
    let desk = Desk::open(server()).await;
    assert_eq!(desk.send(Some(&bound(&desk)), &call()).await.refusal(), (401, 401));
    let desk = Desk::guarded(server(), Authorize::accept_bound_tokens).await;
    assert_eq!(desk.send(Some(&bound(&desk)), &call()).await.status, 200);
}

/// O4, O5: expired, foreign, mistyped and badly signed tokens get the same 401; the reason is in the log, and the token is not.
#[test]
fn bad_tokens_look_the_same() {
    let mut secrets = Vec::new();
    let log = logged(async {
        let desk = Desk::open(server()).await;
        let forger = Issuer::new(ISSUER, RESOURCE).expect("an issuer");
        let stranger = Issuer::new("https://other.example", RESOURCE).expect("an issuer");
        let good = desk.token("alice", "");
        let bad = [
            desk.issuer.token("alice").expired().sign(),
            desk.issuer.token("alice").audience("https://other.example/mcp").sign(),
            desk.issuer.token("alice").header("typ", "JWT").sign(),
            desk.issuer.token("alice").without("sub").without("client_id").sign(),
            forger.token("alice").sign(),
            stranger.token("alice").sign(),
            format!("{good}AA"),
            "opaque".to_owned(),
        ];
        assert_eq!(desk.send(Some(&good), &call()).await.status, 200);
        let mut seen: Vec<Answer> = Vec::new();
        for token in &bad {
            let mut answer = desk.send(Some(token), &call()).await;
            answer.headers.retain(|(name, _)| name != "date");
            assert_eq!(answer.refusal(), (401, 401), "{token}: {answer:?}");
            assert_eq!(param(&answer, "error").as_deref(), Some("invalid_token"));
            seen.push(answer);
        }
        for other in &seen[1..] {
            assert_eq!((&seen[0].headers, &seen[0].body), (&other.headers, &other.body));
        }
        secrets.extend(bad);
        secrets.push(good);
    });
    for reason in [
        "has expired",
        "`aud` is not this resource",
        "`typ` is not",
        "signature is wrong",
        "`iss` is not one",
    ] {
        assert!(log.contains(reason), "{reason}: {log}");
    }
    for secret in secrets.iter().filter(|secret| secret.len() > 10) {
        assert!(!log.contains(&**secret), "a token in the log: {log}");
    }
}

/// O6, O7: credentials that are sent wrongly are 400 `invalid_request`, and nothing of them is in the challenge.
#[tokio::test]
async fn malformed_credentials_are_a_mistake_of_the_request() {
    let desk = Desk::open(server()).await;
    let good = desk.token("alice", "");
    let wrong = [
        vec![("Authorization".to_owned(), "Bearer".to_owned())],
        vec![("Authorization".to_owned(), r#"Bearer a"b, error="x"#.to_owned())],
        vec![("Authorization".to_owned(), format!("Bearer {}", "a".repeat(20_000)))],
        vec![bearer(&good), bearer(&good)],
    ];
    for credentials in wrong {
        let mut headers = headers(&call());
        headers.extend(credentials);
        let answer = desk.running.connect().await.post(&headers, call().to_string().as_bytes()).await;
        assert_eq!(answer.refusal(), (400, -32600), "{answer:?}");
        let challenge = format!(r#"Bearer resource_metadata="{METADATA}", error="invalid_request""#);
        assert_eq!(answer.header("www-authenticate"), Some(&*challenge));
    }
}

/// O6: a token in the query is never accepted, and is a mistake beside one in the header.
#[tokio::test]
async fn a_token_in_the_query_is_not_accepted() {
    let desk = Desk::open(server()).await;
    let good = desk.token("alice", "");
    for (authorization, status) in [(String::new(), 401), (format!("Authorization: Bearer {good}\r\n"), 400)]
    {
        let body = call().to_string();
        let mut head =
            format!("POST /mcp?access_token={good} HTTP/1.1\r\nHost: localhost\r\n{authorization}");
        for (name, value) in headers(&call()) {
            head += &format!("{name}: {value}\r\n");
        }
        let mut connection = desk.running.connect().await;
        connection.raw(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
        assert_eq!(connection.head().await.status, status);
    }
}

/// O4: another scheme than `Bearer` is no token.
#[tokio::test]
async fn another_scheme_is_no_token() {
    let desk = Desk::open(server()).await;
    for scheme in ["Basic YTpi", "DPoP abc"] {
        let mut headers = headers(&call());
        headers.push(("Authorization".to_owned(), scheme.to_owned()));
        let answer = desk.running.connect().await.post(&headers, call().to_string().as_bytes()).await;
        assert_eq!((answer.status, param(&answer, "error")), (401, None), "{scheme}");
    }
}

/// O8: a page that may call can read the challenge; one that may not gets none.
#[tokio::test]
async fn pages_can_read_the_challenge() {
    let desk = Desk::open(server()).await;
    for (origin, status, exposed) in
        [("http://localhost:3000", 401, Some("WWW-Authenticate")), ("https://evil.example", 403, None)]
    {
        let mut headers = headers(&call());
        headers.push(("Origin".to_owned(), origin.to_owned()));
        let answer = desk.running.connect().await.post(&headers, call().to_string().as_bytes()).await;
        assert_eq!((answer.status, answer.header("access-control-expose-headers")), (status, exposed));
        assert_eq!(answer.header("www-authenticate").is_some(), exposed.is_some());
    }
}

/// O25: an issuer that cannot be reached is 503 with the time to come back, and no challenge.
#[tokio::test]
async fn an_outage_is_not_a_refusal() {
    let issuer = issuer();
    issuer.stop();
    let desk = Desk::with(issuer, server(), |guard| guard).await;
    let answer = desk.send(Some(&desk.token("alice", "")), &call()).await;
    assert_eq!(answer.refusal(), (503, 503), "{answer:?}");
    assert!(answer.header("retry-after").is_some() && answer.header("www-authenticate").is_none());
    let failing = Desk::guarded(server(), |guard| {
        guard.verify(async |_| Err::<Option<Verified>, _>("the database is down"))
    })
    .await;
    assert_eq!(failing.send(Some("any"), &call()).await.status, 503);
}

/// Z1: a function of the author's that panics fails its request alone, and lets none in.
#[tokio::test]
async fn a_verifier_that_panics_lets_none_in() {
    let desk = Desk::guarded(server().tool(Tool::new("other", async || "")), |guard| {
        guard.verify(async |token| {
            assert!(token.expose() != "bad", "a bug of the author's");
            let verified = Verified::new(ISSUER, "alice").audience(RESOURCE);
            Ok::<_, std::io::Error>(Some(verified))
        })
    })
    .await;
    assert_eq!(desk.send(Some("bad"), &call()).await.status, 500);
    assert!(text(&desk.send(Some("good"), &call()).await).contains("alice"));
}
