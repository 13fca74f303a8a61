//! Token responses, refresh, and the grant that a client stores.

use std::sync::Arc;

use http::HeaderMap;
use roundtrip_core::auth::*;
use roundtrip_core::seal::Timestamp;
use serde_json::{Value, json};

use super::support::*;

/// Plays a sign-in up to the token request.
fn to_token() -> Play {
    let play = Play::to_browser(&browser(), Need::new(SERVER), &issuer()).unwrap();
    let state = query(play.pending().url()).remove("state").unwrap();
    let answered = play.pending().answered(&format!("{CALLBACK}?code=abc&state={state}")).unwrap();
    let mut world = World::default();
    let step = SignIn::resume(browser(), answered, &mut world).unwrap();
    Play::of(step, world)
}

fn signed_in(response: &Value) -> Grant {
    let mut play = to_token();
    play.ok(response).unwrap();
    play.grant().clone()
}

fn refresh(grant: &Grant) -> Play {
    let mut world = World::after(100);
    let step = SignIn::refresh(browser(), grant, &mut world).unwrap().expect("a refresh token");
    Play::of(step, world)
}

fn usual() -> Value {
    json!({ "access_token": "a1", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r1", "scope": "b a" })
}

/// O79: expiry is an absolute time, a token is due 30 seconds before it, and an unknown one is no error.
#[test]
fn expiry_is_an_absolute_time() {
    let at = |seconds: u64| Timestamp::from_unix(NOON + seconds);
    let grant = signed_in(&usual());
    let stored: Grant = serde_json::from_str(&serde_json::to_string(&grant).unwrap()).unwrap();
    assert_eq!(stored, grant);
    assert!(
        !stored.is_due(at(29)) && stored.is_due(at(30)) && !stored.is_over(at(59)) && stored.is_over(at(60))
    );
    for unknown in [Value::Null, json!("soon"), json!(-5), json!([]), json!(1e40)] {
        let grant = signed_in(&with(usual(), "expires_in", unknown));
        assert!(grant.expires_at.is_none() && !grant.is_due(at(1 << 40)));
    }
    assert_eq!(signed_in(&with(usual(), "expires_in", json!("3600"))).expires_at, Some(NOON + 3600));
    assert_eq!(signed_in(&with(usual(), "expires_in", json!(59.9))).expires_at, Some(NOON + 59));
    assert!(signed_in(&with(usual(), "expires_in", json!(u64::MAX))).expires_at.unwrap() < NOON * 2);
}

/// O75, O76: the token goes into the header of requests to its own resource, and to nothing else.
#[test]
fn a_token_goes_to_its_resource_alone() {
    let grant = signed_in(&usual());
    let to = |url: &str| grant.authorization(&HttpUrl::parse(url).unwrap());
    let header = to("https://tools.example/mcp?x=y").unwrap();
    assert!(header == "Bearer a1" && header.is_sensitive());
    for url in [
        "https://tools.example/other",
        "https://evil.example/mcp",
        "http://tools.example/mcp",
        "https://login.example/token",
    ] {
        assert_eq!(to(url), None, "{url}");
    }
}

/// O77: a response that is no token, or one that cannot be presented, is refused.
#[test]
fn broken_token_responses_are_refused() {
    for response in [
        json!({}),
        json!({ "access_token": "a" }),
        with(usual(), "access_token", json!("")),
        with(usual(), "access_token", json!("a b")),
        with(usual(), "access_token", json!("a\r\nX-Evil: 1")),
        with(usual(), "access_token", json!("x".repeat(20_000))),
        with(usual(), "access_token", json!(["a"])),
        with(usual(), "token_type", json!("mac")),
        with(usual(), "token_type", json!("DPoP")),
        with(usual(), "refresh_token", json!(5)),
        json!([usual()]),
    ] {
        let error = to_token().ok(&response).unwrap_err();
        assert!(matches!(error, AuthError::TokenResponse(_)), "{response:.80}: {error}");
        assert_eq!(error.blame(), AuthBlame::Peer);
    }
    let twice = br#"{"access_token":"a","access_token":"b","token_type":"Bearer"}"#;
    assert!(to_token().raw(200, &HeaderMap::new(), twice).is_err());
}

/// O62, O83: a refresh names the resource, and what its response leaves out stays.
#[test]
fn a_refresh_keeps_what_is_left_out() {
    let mut play = refresh(&signed_in(&usual()));
    let form = play.form();
    assert_eq!((form["grant_type"].as_str(), form["refresh_token"].as_str()), ("refresh_token", "r1"));
    assert_eq!((form["resource"].as_str(), form["client_id"].as_str()), (SERVER, "c1"));
    assert!(!form.contains_key("scope"));
    play.ok(&json!({ "access_token": "a2", "token_type": "Bearer" })).unwrap();
    let renewed = play.grant();
    assert_eq!(renewed.access_token.expose(), "a2");
    assert_eq!(renewed.refresh_token.as_ref().unwrap().expose(), "r1");
    assert_eq!((renewed.granted.to_string().as_str(), renewed.expires_at), ("a b", None));

    let mut play = refresh(renewed);
    play.ok(&json!({ "access_token": "a3", "token_type": "Bearer", "refresh_token": "r2", "scope": "a" }))
        .unwrap();
    assert_eq!(play.grant().refresh_token.as_ref().unwrap().expose(), "r2");
    assert_eq!(play.grant().granted.to_string(), "a");

    let mut play = refresh(renewed);
    play.ok(&json!({ "access_token": "a3", "token_type": "Bearer", "refresh_token": "" })).unwrap();
    assert_eq!(play.grant().refresh_token.as_ref().unwrap().expose(), "r1", "an empty one is none");
    assert_eq!(signed_in(&with(usual(), "refresh_token", json!(""))).refresh_token, None);
}

/// O85: a grant without a refresh token is no error; there is nothing to refresh.
#[test]
fn a_refresh_token_need_not_come() {
    let grant = signed_in(&json!({ "access_token": "a", "token_type": "Bearer" }));
    assert!(SignIn::refresh(browser(), &grant, &mut World::default()).unwrap().is_none());
}

/// O84: `invalid_grant` ends the grant, if the store still has that token; an outage ends nothing.
#[test]
fn only_a_refusal_ends_a_grant() {
    let mut grant = signed_in(&usual());
    let refused = grant.refresh_token.clone().unwrap();
    let error = refresh(&grant).answer(400, &json!({ "error": "invalid_grant" })).unwrap_err();
    assert!(matches!(&error, AuthError::GrantOver(_)) && error.blame() == AuthBlame::SignIn, "{error}");
    for (status, body) in [(500, "x"), (503, r#"{"error":"invalid_grant"}"#), (429, "")] {
        let error = refresh(&grant).raw(status, &HeaderMap::new(), body.as_bytes()).unwrap_err();
        assert_eq!(error.blame(), AuthBlame::Unreachable, "{status}");
    }
    let error = refresh(&grant).answer(401, &json!({ "error": "invalid_client" })).unwrap_err();
    assert!(matches!(error, AuthError::TokenRefused(_)), "{error}");

    let mut renewed = grant.clone();
    renewed.refresh_token = Some("r2".into());
    assert!(!renewed.drop_refused(&refused) && renewed.refresh_token.is_some(), "another process was faster");
    assert!(grant.drop_refused(&refused) && grant.refresh_token.is_none());
    assert_eq!(grant.access_token.expose(), "a1", "an access token that is good stays");
}

/// O51: a token request is not redirected, and a page for people is no answer.
#[test]
fn a_token_request_is_not_redirected() {
    for (status, body) in [(302, ""), (308, ""), (400, "<html>"), (404, "")] {
        let to = headers(&[("location", "https://login.example/elsewhere")]);
        let error = to_token().raw(status, &to, body.as_bytes()).unwrap_err();
        assert!(matches!(error, AuthError::Unexpected { .. }), "{status}: {error}");
    }
}

/// O77: id and secret are encoded like a form before they are put side by side.
#[test]
fn basic_credentials_are_encoded() {
    use base64::Engine as _;
    let settings = Arc::new(Settings::machine("a:b c").secret("p%ü".into()).registered_with(ISSUER));
    let mut play = Play::to_issuer(&settings, Need::new(SERVER)).unwrap();
    play.ok(&without(issuer(), "token_endpoint_auth_methods_supported")).unwrap();
    let header = &play.request().headers["authorization"];
    assert!(header.is_sensitive());
    let text = base64::engine::general_purpose::STANDARD.encode("a%3Ab+c:p%25%C3%BC");
    assert_eq!(header, &format!("Basic {text}"));
    assert!(!play.form().contains_key("client_id") && !play.form().contains_key("client_secret"));
}

/// O59: a secret that a registration gave is used for the code and for refresh too.
#[test]
fn a_registered_secret_is_used_for_refresh() {
    let server = with(issuer(), "token_endpoint_auth_methods_supported", json!(["client_secret_post"]));
    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&server).unwrap();
    play.answer(201, &json!({ "client_id": "c1", "client_secret": "s1" })).unwrap();
    let state = query(play.pending().url()).remove("state").unwrap();
    let answered = play.pending().answered(&format!("{CALLBACK}?code=abc&state={state}")).unwrap();
    let mut play =
        Play::of(SignIn::resume(browser(), answered, &mut World::default()).unwrap(), World::default());
    assert_eq!(play.form()["client_secret"], "s1");
    play.ok(&usual()).unwrap();
    assert_eq!(refresh(play.grant()).form()["client_secret"], "s1");
}
