//! Grants without a person, and the grant of a device.

use std::sync::Arc;

use roundtrip_core::auth::*;
use serde_json::{Value, json};

use super::support::*;

fn tokens() -> Value {
    json!({ "access_token": "a", "token_type": "Bearer" })
}

/// Plays discovery and the issuer's metadata, for a client that names this issuer.
fn after_discovery(settings: Settings, server: &Value) -> Result<Play, AuthError> {
    let mut play = Play::to_issuer(&Arc::new(settings.registered_with(ISSUER)), Need::new(SERVER))?;
    play.ok(server)?;
    Ok(play)
}

/// Takes the request for an assertion, and answers it.
fn asserted(play: Play, settings: Settings) -> Result<Play, AuthError> {
    let Some(Step::Assert(request)) = play.step else { panic!("no assertion is wanted: {:?}", play.step) };
    let mut world = World::default();
    let assertion = Secret::new(format!("platform.jwt.for {}", request.issuer()));
    let step = SignIn::assert(Arc::new(settings), *request, assertion, &mut world)?;
    Ok(Play::of(step, world))
}

fn basic() -> Value {
    with(issuer(), "token_endpoint_auth_methods_supported", json!(["client_secret_basic", "private_key_jwt"]))
}

/// O62, O92: a machine signs in with its secret after the usual discovery, and without PKCE or registration.
#[test]
fn a_machine_signs_in_with_a_secret() {
    let server = without(without(basic(), "code_challenge_methods_supported"), "authorization_endpoint");
    let mut play = after_discovery(Settings::machine("id").secret("s".into()), &server).unwrap();
    assert_eq!(play.url(), "https://login.example/token");
    assert!(play.request().headers["authorization"].to_str().unwrap().starts_with("Basic "));
    let form = play.form();
    assert_eq!((form["grant_type"].as_str(), form["resource"].as_str()), ("client_credentials", SERVER));
    play.ok(&tokens()).unwrap();
    assert_eq!(play.grant().terms.client.client_id, "id");
}

/// O79, O92: a machine renews its token by itself, without discovery and without a refresh token; other grants begin anew.
#[test]
fn a_machine_renews_its_token() {
    let settings =
        || Settings::machine("id").secret("s".into()).scopes(ScopeChoice::Only("read".parse().unwrap()));
    let mut play = after_discovery(settings(), &basic()).unwrap();
    play.ok(&tokens()).unwrap();
    let grant = play.grant().clone();
    let step =
        SignIn::refresh(Arc::new(settings()), &grant, &mut World::default()).unwrap().expect("a request");
    let mut play = Play::of(step, World::default());
    let form = play.form();
    assert_eq!(play.url(), "https://login.example/token");
    assert_eq!((form["grant_type"].as_str(), form["resource"].as_str()), ("client_credentials", SERVER));
    assert_eq!(form["scope"], "read");
    play.ok(&with(tokens(), "access_token", json!("b"))).unwrap();
    assert_eq!((play.grant().access_token.expose(), &play.grant().terms), ("b", &grant.terms));

    for other in [Settings::workload("id"), enterprise(), Settings::device("x")] {
        assert!(SignIn::refresh(Arc::new(other), &grant, &mut World::default()).unwrap().is_none());
    }
}

/// O78: the assertion of a key has the issuer as its audience, and lives for less than five minutes.
#[test]
fn an_assertion_is_for_the_issuer() {
    let play = after_discovery(Settings::machine("id").key(Arc::new(TestKey)), &basic()).unwrap();
    let form = play.form();
    assert_eq!(form["client_assertion_type"], "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    let (header, claims) = parts(&form["client_assertion"]);
    assert_eq!(header["alg"], "ES256");
    assert_eq!(
        (&claims["iss"], &claims["sub"], &claims["aud"]),
        (&json!("id"), &json!("id"), &json!(ISSUER))
    );
    assert_eq!(claims["iat"], NOON);
    assert!((1..=300).contains(&(claims["exp"].as_u64().unwrap() - NOON)));
    assert_eq!(claims["jti"].as_str().unwrap().len(), 43);

    let other = with(basic(), "token_endpoint_auth_signing_alg_values_supported", json!(["RS256"]));
    let error = after_discovery(Settings::machine("id").key(Arc::new(TestKey)), &other).err().unwrap();
    assert!(error.to_string().contains("RS256"), "{error}");
}

/// O95: a workload's token is asked for once the issuer is known, sent once, and a refusal is final.
#[test]
fn a_workload_sends_its_token_once() {
    let settings = || Settings::workload("id").registered_with(ISSUER);
    let mut play = asserted(after_discovery(settings(), &issuer()).unwrap(), settings()).unwrap();
    let form = play.form();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(form["assertion"], format!("platform.jwt.for {ISSUER}"));
    assert_eq!(form["resource"], SERVER);
    play.ok(&tokens()).unwrap();
    assert!(play.grant().refresh_token.is_none());
    let mut play = asserted(after_discovery(settings(), &issuer()).unwrap(), settings()).unwrap();
    let error = play.answer(400, &json!({ "error": "invalid_grant" })).unwrap_err();
    assert!(matches!(error, AuthError::GrantOver(_)), "{error}");

    let play = after_discovery(settings(), &issuer()).unwrap();
    let error = asserted(play, Settings::workload("id").registered_with("https://new.example")).err();
    assert!(matches!(error, Some(AuthError::Settings(_))), "another issuer: {error:?}");
}

/// O60, O95: what a client shows goes to no issuer that only the server has named: secrets, assertions, identities, codes.
#[test]
fn a_registered_client_needs_its_issuer() {
    let clients = || {
        [
            Settings::workload("id"),
            enterprise(),
            Settings::machine("id").secret("s".into()),
            Settings::machine("id").key(Arc::new(TestKey)),
            Settings::browser("x", CALLBACK).unwrap().registered("id"),
            Settings::device("x").registered("id"),
        ]
    };
    for unbound in clients() {
        let error = Play::begin(&Arc::new(unbound.clone()), Need::new(SERVER)).err().expect("a mistake");
        assert!(error.to_string().contains("add `issuer`"), "{unbound:?}: {error}");
        assert_eq!(error.blame(), AuthBlame::Settings);
        let chosen = [
            unbound.clone().registered_with(ISSUER),
            unbound.clone().issuer(ISSUER),
            unbound.clone().any_issuer(),
        ];
        for chosen in chosen {
            assert!(Play::begin(&Arc::new(chosen), Need::new(SERVER)).is_ok());
        }
        let bound = Arc::new(unbound.registered_with(ISSUER));
        let mut play = Play::begin(&bound, Need::new(SERVER)).unwrap();
        let hostile = with(resource(), "authorization_servers", json!(["https://evil.example"]));
        let error = play.ok(&hostile).unwrap_err();
        assert!(matches!(error, AuthError::WrongIssuer { .. }), "{error}");
    }
}

fn enterprise() -> Settings {
    let provider = IdentityProvider::new("https://idp.example/token", "idp-id", "id.token.x".into()).unwrap();
    Settings::enterprise("id", provider.secret("idp-secret".into())).secret("s".into())
}

fn assertion(claims: &Value, kind: &str) -> Value {
    json!({
        "access_token": token(&json!({ "alg": "ES256", "typ": kind }), claims),
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "token_type": "N_A",
    })
}

fn claims() -> Value {
    json!({ "aud": ISSUER, "resource": SERVER, "client_id": "id" })
}

/// O93: the identity is exchanged at the provider, and the assertion at the issuer; no browser is opened.
#[test]
fn an_identity_is_exchanged_twice() {
    let mut play = after_discovery(enterprise(), &basic()).unwrap();
    assert_eq!(play.url(), "https://idp.example/token");
    let form = play.form();
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("audience", ISSUER),
        ("resource", SERVER),
        ("subject_token", "id.token.x"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("client_id", "idp-id"),
        ("client_secret", "idp-secret"),
    ] {
        assert_eq!(form[name], value, "{name}");
    }
    play.ok(&assertion(&claims(), "oauth-id-jag+jwt")).unwrap();
    assert_eq!(play.url(), "https://login.example/token");
    let form = play.form();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(parts(&form["assertion"]).1, claims());
    assert!(!form.contains_key("client_id"), "it is in the header");
    play.ok(&tokens()).unwrap();
    assert_eq!(play.grant().terms.client.client_id, "id");
}

/// O94: an assertion for another issuer, resource or client, or of another type, is not sent on.
#[test]
fn a_foreign_assertion_is_not_sent_on() {
    for (answer, name) in [
        (assertion(&claims(), "JWT"), "typ"),
        (assertion(&with(claims(), "aud", json!("https://evil.example")), "oauth-id-jag+jwt"), "aud"),
        (assertion(&with(claims(), "aud", json!([ISSUER, "x"])), "oauth-id-jag+jwt"), "aud"),
        (
            assertion(&with(claims(), "resource", json!("https://tools.example/other")), "oauth-id-jag+jwt"),
            "resource",
        ),
        (assertion(&without(claims(), "resource"), "oauth-id-jag+jwt"), "resource"),
        (assertion(&with(claims(), "client_id", json!("idp-id")), "oauth-id-jag+jwt"), "client_id"),
        (with(assertion(&claims(), "oauth-id-jag+jwt"), "access_token", json!("opaque")), "form"),
        (
            with(assertion(&claims(), "oauth-id-jag+jwt"), "issued_token_type", Value::Null),
            "issued_token_type",
        ),
    ] {
        let mut play = after_discovery(enterprise(), &basic()).unwrap();
        assert_eq!(play.ok(&answer), Err(AuthError::IdentityAssertion(name)), "{name}");
    }
    let provider = IdentityProvider::new("http://idp.example/token", "idp-id", "x".into()).unwrap();
    let error = after_discovery(Settings::enterprise("id", provider), &basic()).err().unwrap();
    assert!(matches!(error, AuthError::Issuer { why: UrlError::Insecure, .. }), "{error}");
}

fn device(answer: &Value) -> Result<Play, AuthError> {
    let server = with(issuer(), "device_authorization_endpoint", json!("https://login.example/device"));
    let mut play = after_discovery(Settings::device("Agent").registered("id"), &server)?;
    assert_eq!(play.url(), "https://login.example/device");
    assert_eq!((play.form()["client_id"].as_str(), play.form()["resource"].as_str()), ("id", SERVER));
    play.ok(answer)?;
    Ok(play)
}

fn code() -> Value {
    json!({
        "device_code": "d", "user_code": "ABCD\u{1b}-EFGH", "verification_uri": "https://login.example/enter",
        "expires_in": 600, "interval": 1,
    })
}

fn shown(play: Play) -> DevicePending {
    match play.step {
        Some(Step::ShowCode(device)) => *device,
        other => panic!("no code: {other:?}"),
    }
}

/// O97: a code is shown, asked about at the server's pace, and exchanged for tokens by any process.
#[test]
fn a_device_signs_in_with_a_code() {
    let settings = Arc::new(Settings::device("Agent").registered("id").registered_with(ISSUER));
    let pending = shown(device(&code()).unwrap());
    assert_eq!((pending.user_code(), pending.url().as_str()), ("ABCD -EFGH", "https://login.example/enter"));
    let mut pending: DevicePending = serde_json::from_str(&serde_json::to_string(&pending).unwrap()).unwrap();
    for (error, pause) in [("authorization_pending", 1), ("slow_down", 6), ("slow_down", 11)] {
        let step = SignIn::poll(Arc::clone(&settings), pending, &mut World::default()).unwrap();
        let mut play = Play::of(step, World::default());
        assert_eq!(play.form()["device_code"], "d");
        play.answer(400, &json!({ "error": error })).unwrap();
        pending = shown(play);
        assert_eq!(pending.pause().as_secs(), pause);
    }
    let step = SignIn::poll(Arc::clone(&settings), pending.clone(), &mut World::default()).unwrap();
    let mut play = Play::of(step, World::default());
    play.ok(&tokens()).unwrap();
    assert_eq!(play.grant().access_token.expose(), "a");

    let step = SignIn::poll(Arc::clone(&settings), pending.clone(), &mut World::default()).unwrap();
    let error =
        Play::of(step, World::default()).answer(400, &json!({ "error": "access_denied" })).unwrap_err();
    assert_eq!(error.blame(), AuthBlame::Refused);
    let mut late = World::after(600);
    assert_eq!(SignIn::poll(settings, pending, &mut late).err(), Some(AuthError::DeviceCodeExpired));
}

/// O55, O97: a device registers without a redirect URI, and one that is stored is used again.
#[test]
fn a_device_registers_itself() {
    let server = with(issuer(), "device_authorization_endpoint", json!("https://login.example/device"));
    let mut play = after_discovery(Settings::device("Agent"), &server).unwrap();
    assert_eq!(play.url(), "https://login.example/register");
    assert_eq!(
        play.json(),
        json!({
            "client_name": "Agent", "application_type": "native", "redirect_uris": [], "response_types": [],
            "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
        })
    );
    play.answer(201, &json!({ "client_id": "c7", "redirect_uris": [] })).unwrap();
    assert_eq!(
        (play.url().as_str(), play.form()["client_id"].as_str()),
        ("https://login.example/device", "c7")
    );
    play.ok(&code()).unwrap();
    let settings = Arc::new(Settings::device("Agent"));
    let step = SignIn::poll(Arc::clone(&settings), shown(play), &mut World::default()).unwrap();
    let mut play = Play::of(step, World::default());
    play.ok(&tokens()).unwrap();
    let held = play.grant().terms.client.clone();
    assert_eq!((held.source, &held.redirect_uri), (RegistrationSource::Dynamic, &None));

    let mut play = Play::to_issuer(&settings, Need::new(SERVER).registrations(vec![held])).unwrap();
    play.ok(&server).unwrap();
    assert_eq!(play.form()["client_id"], "c7");

    let error =
        after_discovery(Settings::device("Agent"), &issuer()).err().expect("no client is registered in vain");
    assert!(error.to_string().contains("device_authorization_endpoint"), "{error}");
    let closed = without(server, "registration_endpoint");
    let error = after_discovery(Settings::device("Agent"), &closed).err();
    assert!(matches!(error, Some(AuthError::NoRegistration(_))), "{error:?}");
}

/// O53, O97: a code is shown for a page that is https, and never for longer than an hour.
#[test]
fn a_device_shows_no_hostile_page() {
    for (member, value) in [
        ("verification_uri", json!("http://login.example/enter")),
        ("verification_uri", json!("javascript:alert(1)")),
        ("verification_uri_complete", json!("http://evil.example/")),
        ("expires_in", json!("x")),
    ] {
        let error = device(&with(code(), member, value)).err().unwrap();
        assert!(matches!(error, AuthError::TokenResponse(_)), "{member}: {error}");
    }
    let endless = shown(device(&with(code(), "expires_in", json!(u64::MAX))).unwrap());
    assert!(endless.is_over(roundtrip_core::seal::Timestamp::from_unix(NOON + 3600)));
    let slow = shown(device(&with(code(), "interval", json!(u64::MAX))).unwrap());
    assert_eq!(slow.pause().as_secs(), 60);
}
