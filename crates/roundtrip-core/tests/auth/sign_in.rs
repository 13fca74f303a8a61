//! The authorization request, and a sign-in that any process finishes.

use std::sync::Arc;

use roundtrip_core::auth::*;
use serde_json::{Value, json};

use super::support::*;

fn scope_of(settings: Settings, need: Need, resource: &Value, server: &Value) -> Option<String> {
    let mut play = Play::begin(&Arc::new(settings), need).unwrap();
    play.ok(resource).unwrap();
    play.ok(server).unwrap();
    play.answer(201, &json!({ "client_id": "c" })).unwrap();
    query(play.pending().url()).remove("scope")
}

fn settings() -> Settings {
    Settings::browser("Travel agent", CALLBACK).unwrap()
}

fn demanded(scope: &str) -> Need {
    let field = format!("Bearer scope=\"{scope}\"");
    Need::new(SERVER).demand(Demand::of(&headers(&[("www-authenticate", &field)]), false))
}

/// O61, O62, O65: the request has PKCE, the resource as published, and a state of 128 bits.
#[test]
fn an_authorization_request_is_complete() {
    let play = Play::to_browser(&browser(), Need::new(SERVER), &issuer()).unwrap();
    let url = play.pending().url();
    assert_eq!(url.without_query(), "https://login.example/authorize");
    let mut parameters = query(url);
    assert_eq!(parameters.remove("state").unwrap().len(), 22);
    assert_eq!(parameters.remove("code_challenge").unwrap().len(), 43);
    let rest: Vec<_> = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        rest,
        [
            ("client_id", "c1"),
            ("code_challenge_method", "S256"),
            ("redirect_uri", CALLBACK),
            ("resource", SERVER),
            ("response_type", "code"),
        ]
    );
    let other = Play::to_browser(&browser(), Need::new(SERVER), &issuer()).unwrap();
    assert_eq!(other.pending().begun_at().as_unix(), NOON);
}

/// O61: a server without S256 is not signed in to, and no client is registered with it.
#[test]
fn a_server_without_pkce_is_refused() {
    for methods in [Value::Null, json!(["plain"])] {
        let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
        let error = play.ok(&with(issuer(), "code_challenge_methods_supported", methods)).unwrap_err();
        assert!(matches!(&error, AuthError::ServerMetadata { why: MetadataError::NoPkce, .. }), "{error}");
    }
}

/// O62: the resource is sent as the metadata published it, a parent without a slash included.
#[test]
fn the_resource_is_sent_as_published() {
    for published in ["https://tools.example", "https://tools.example/", "HTTPS://tools.example/mcp"] {
        let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
        // What is of the whole host is published at its root.
        play.answer(404, &json!({})).unwrap();
        play.ok(&with(resource(), "resource", json!(published))).unwrap();
        play.ok(&issuer()).unwrap();
        play.answer(201, &json!({ "client_id": "c" })).unwrap();
        assert_eq!(query(play.pending().url())["resource"], published);
    }
}

/// O63: scopes of the challenge, else all of the resource's, else none; never those of the authorization server.
#[test]
fn scopes_come_from_the_resource() {
    let lists = with(resource(), "scopes_supported", json!(["r", "w", "bad scope"]));
    let server = with(issuer(), "scopes_supported", json!(["everything"]));
    assert_eq!(scope_of(settings(), demanded("x"), &lists, &server).as_deref(), Some("x"));
    assert_eq!(scope_of(settings(), Need::new(SERVER), &lists, &server).as_deref(), Some("r w"));
    assert_eq!(scope_of(settings(), Need::new(SERVER), &resource(), &server), None);
    let more = settings().scopes(ScopeChoice::And("z".parse().unwrap()));
    assert_eq!(scope_of(more, demanded("x"), &lists, &server).as_deref(), Some("x z"));
    let only = settings().scopes(ScopeChoice::Only("z".parse().unwrap()));
    assert_eq!(scope_of(only, demanded("x"), &lists, &server).as_deref(), Some("z"));
}

/// O64: `offline_access` is asked for when, and only when, the authorization server lists it.
#[test]
fn offline_access_is_asked_for_where_it_is_listed() {
    let offers = with(issuer(), "scopes_supported", json!(["offline_access"]));
    assert_eq!(
        scope_of(settings(), demanded("x"), &resource(), &offers).as_deref(),
        Some("offline_access x")
    );
    assert_eq!(
        scope_of(settings(), demanded("x offline_access"), &resource(), &issuer()).as_deref(),
        Some("x")
    );
    assert_eq!(
        scope_of(settings(), Need::new(SERVER), &resource(), &offers),
        None,
        "it would replace the default"
    );
    let play = Play::to_browser(&browser(), demanded("x"), &offers).unwrap();
    assert_eq!(query(play.pending().url())["prompt"], "consent");
}

/// O88: a step-up asks for the union, at an issuer that is found anew.
#[test]
fn a_step_up_asks_for_the_union() {
    let need = demanded("mcp:write").step_up("mcp:read mcp:write".parse().unwrap());
    let lists = with(resource(), "scopes_supported", json!(["mcp:profile"]));
    assert_eq!(scope_of(settings(), need, &lists, &issuer()).as_deref(), Some("mcp:read mcp:write"));
}

/// O64: `offline_access` that was requested before is not asked of an issuer that does not list it, unless the author named it.
#[test]
fn offline_access_of_another_issuer_is_not_asked_for() {
    let need = || demanded("x").step_up("offline_access x".parse().unwrap());
    assert_eq!(scope_of(settings(), need(), &resource(), &issuer()).as_deref(), Some("x"));
    let named = settings().scopes(ScopeChoice::And("offline_access".parse().unwrap()));
    assert_eq!(scope_of(named, need(), &resource(), &issuer()).as_deref(), Some("offline_access x"));
    let offers = with(issuer(), "scopes_supported", json!(["offline_access"]));
    assert_eq!(scope_of(settings(), need(), &resource(), &offers).as_deref(), Some("offline_access x"));
}

/// O63: a sign-in asks for many scopes, within the length that servers take; the error of a longer one blames no server.
#[test]
fn an_authorization_url_may_be_long() {
    let asking_for = |count: usize| {
        let scopes = ScopeSet::of((0..count).map(|number| format!("files:{number:014}"))).unwrap();
        let settings = Arc::new(settings().scopes(ScopeChoice::And(scopes)));
        Play::to_browser(&settings, Need::new(SERVER), &issuer())
    };
    let play = asking_for(200).unwrap();
    assert!(play.pending().url().as_str().len() > 4000);
    let stored = serde_json::to_string(play.pending()).unwrap();
    assert_eq!(&serde_json::from_str::<Pending>(&stored).unwrap(), play.pending());
    let error = asking_for(500).err().unwrap();
    assert!(error.blame() == AuthBlame::Settings && error.to_string().contains("scopes"), "{error}");
}

/// O53: an authorization endpoint that is no web page, or repeats our parameters, is not opened.
#[test]
fn hostile_authorization_endpoints_are_not_opened() {
    for endpoint in [
        "javascript:alert(1)",
        "file:///bin/sh",
        "http://login.example/authorize",
        "https://127.0.0.1/authorize",
        "https://a@login.example/authorize",
        "https://login.example/authorize#x",
        "https://login.example/authorize?state=fixed",
        "https://login.example/authorize?redirect%5Furi=https://evil.example",
        "https://login.example/$(calc)`x`",
    ] {
        let server = with(issuer(), "authorization_endpoint", json!(endpoint));
        let error = Play::to_browser(&browser(), Need::new(SERVER), &server).err().expect(endpoint);
        let member = matches!(&error, AuthError::ServerMetadata { why: MetadataError::Endpoint { member, .. }, .. } if *member == "authorization_endpoint");
        assert!(member, "{endpoint}: {error}");
    }
    let server = with(issuer(), "authorization_endpoint", json!("https://login.example/a?tenant=x&y"));
    let play = Play::to_browser(&browser(), Need::new(SERVER), &server).unwrap();
    assert!(
        play.pending().url().as_str().starts_with("https://login.example/a?tenant=x&y&response_type=code&")
    );
}

/// O66, O73: a pending sign-in is finished by another process, with the issuer that was recorded before.
#[test]
fn any_process_finishes_a_sign_in() {
    let server = with(issuer(), "authorization_response_iss_parameter_supported", json!(true));
    let play = Play::to_browser(&browser(), demanded("x"), &server).unwrap();
    let stored = serde_json::to_string(play.pending()).unwrap();
    let state = query(play.pending().url()).remove("state").unwrap();
    let challenge = query(play.pending().url()).remove("code_challenge").unwrap();
    drop(play);

    let pending: Pending = serde_json::from_str(&stored).unwrap();
    let callback = |iss: &str| format!("{CALLBACK}?code=abc&state={state}{iss}");
    assert_eq!(pending.answered("http://127.0.0.1:7777/favicon.ico?").err(), Some(CallbackError::NotOurs));
    assert_eq!(pending.answered(&callback("")).err(), Some(CallbackError::Issuer(IssError::Missing)));
    let answered = pending.answered(&callback(&format!("&iss={ISSUER}"))).unwrap();

    let mut world = World::default();
    let step = SignIn::resume(browser(), answered, &mut world).unwrap();
    let mut play = Play::of(step, world);
    assert_eq!(play.url(), "https://login.example/token");
    let form = play.form();
    assert_eq!(challenge_of(&form["code_verifier"]), challenge);
    assert_eq!((form["grant_type"].as_str(), form["code"].as_str()), ("authorization_code", "abc"));
    assert_eq!((form["resource"].as_str(), form["redirect_uri"].as_str()), (SERVER, CALLBACK));
    assert_eq!(form["client_id"], "c1");
    play.ok(
        &json!({ "access_token": "at", "token_type": "bearer", "expires_in": 60, "refresh_token": "rt" }),
    )
    .unwrap();
    let grant = play.grant();
    assert_eq!((grant.terms.issuer.as_str(), grant.terms.resource.as_str()), (ISSUER, SERVER));
    assert_eq!((grant.granted.to_string().as_str(), grant.expires_at), ("x", Some(NOON + 60)));
}

/// O27, O86: no secret of a sign-in is shown by `Debug`.
#[test]
fn debug_shows_no_secrets() {
    let settings =
        Arc::new(settings().registered("mine").secret("hush-secret".into()).registered_with(ISSUER));
    let server = with(
        issuer(),
        "token_endpoint_auth_methods_supported",
        json!(["client_secret_post", "client_secret_basic"]),
    );
    let play = Play::to_browser(&settings, Need::new(SERVER), &server).unwrap();
    let stored: Value = serde_json::to_value(play.pending()).unwrap();
    let verifier = stored["verifier"].as_str().unwrap();
    let state = query(play.pending().url()).remove("state").unwrap();
    let answered = play.pending().answered(&format!("{CALLBACK}?code=hush-code&state={state}")).unwrap();
    let shown = format!("{:?} {answered:?}", play.pending());
    let step = SignIn::resume(Arc::clone(&settings), answered, &mut World::default()).unwrap();
    let shown = format!("{shown} {settings:?} {step:?}");
    for secret in ["hush-secret", "hush-code", verifier, "aHVzaC"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
