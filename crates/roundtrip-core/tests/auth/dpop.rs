//! Proofs of possession, and keys.

use std::sync::Arc;

use http::HeaderMap;
use roundtrip_core::auth::*;
use roundtrip_core::seal::Timestamp;
use serde_json::{Value, json};

use super::support::*;

fn settings() -> Arc<Settings> {
    Arc::new(Settings::browser("x", CALLBACK).unwrap().dpop(Arc::new(TestKey)))
}

fn takes_proofs() -> Value {
    with(issuer(), "dpop_signing_alg_values_supported", json!(["ES256"]))
}

fn to_token(settings: &Arc<Settings>) -> Play {
    let play = Play::to_browser(settings, Need::new(SERVER), &takes_proofs()).unwrap();
    assert_eq!(query(play.pending().url())["dpop_jkt"], TestKey.public_key().thumbprint());
    let state = query(play.pending().url()).remove("state").unwrap();
    let answered = play.pending().answered(&format!("{CALLBACK}?code=abc&state={state}")).unwrap();
    let mut world = World::default();
    let step = SignIn::resume(Arc::clone(settings), answered, &mut world).unwrap();
    Play::of(step, world)
}

fn proof(play: &Play) -> (Value, Value) {
    parts(play.request().headers["dpop"].to_str().unwrap())
}

/// O96: a proof names method, URL without query, time, a fresh id, and the digest of the token that it is sent with.
#[test]
fn a_proof_is_of_its_request() {
    let url = HttpUrl::parse("https://tools.example/mcp?x=y").unwrap();
    let token = Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
    let (now, random) = (Timestamp::from_unix(NOON), [1; 32]);
    let proof = Proof { method: "POST", url: &url, token: Some(&token), nonce: Some("n"), now, random };
    let (header, claims) = parts(&proof.sign(&TestKey).unwrap());
    assert_eq!(
        header,
        json!({ "alg": "ES256", "typ": "dpop+jwt", "jwk": { "kty": "EC", "crv": "P-256", "x": "eA", "y": "eQ" } })
    );
    assert_eq!(
        (&claims["htm"], &claims["htu"], &claims["nonce"]),
        (&json!("POST"), &json!(SERVER), &json!("n"))
    );
    assert_eq!(claims["iat"], NOON);
    // RFC 9449, 7.1.
    assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
}

/// O96: a token request has a proof; a nonce that is demanded is sent once, with a new one, and never before.
#[test]
fn a_demanded_nonce_is_sent_once() {
    let demand = json!({ "error": "use_dpop_nonce" });
    let mut play = to_token(&settings());
    let first = proof(&play).1;
    assert_eq!((&first["htu"], first.get("nonce")), (&json!("https://login.example/token"), None));
    let nonce = headers(&[("dpop-nonce", "n1")]);
    play.raw(400, &nonce, demand.to_string().as_bytes()).unwrap();
    let second = proof(&play).1;
    assert_eq!(second["nonce"], "n1");
    assert_ne!(first["jti"], second["jti"]);
    let error = play.raw(400, &nonce, demand.to_string().as_bytes()).unwrap_err();
    assert!(matches!(error, AuthError::TokenRefused(_)), "{error}");

    for (_, headers) in [("none", HeaderMap::new()), ("broken", headers(&[("dpop-nonce", "a\"b")]))] {
        assert!(to_token(&settings()).raw(400, &headers, demand.to_string().as_bytes()).is_err());
    }
}

/// O96: the scheme of the token says how it is presented; one that is bound to no key stays a bearer token.
#[test]
fn the_type_of_the_token_says_its_scheme() {
    for (kind, expected) in [("DPoP", "DPoP a1"), ("dpop", "DPoP a1"), ("Bearer", "Bearer a1")] {
        let mut play = to_token(&settings());
        play.ok(&json!({ "access_token": "a1", "token_type": kind })).unwrap();
        assert_eq!(play.grant().authorization(&HttpUrl::parse(SERVER).unwrap()).unwrap(), expected);
    }
}

/// O96: where the resource, the author or the grant before has bound tokens, one that is not bound is refused (RFC 9449, 5).
#[test]
fn a_bound_token_is_not_taken_back() {
    let bearer = json!({ "access_token": "a1", "token_type": "Bearer", "refresh_token": "r1" });
    let bound = with(bearer.clone(), "token_type", json!("DPoP"));
    let refused = |play: &mut Play| {
        let error = play.ok(&bearer).expect_err("a token that is not bound");
        assert!(matches!(error, AuthError::TokenResponse(why) if why.contains("DPoP")), "{error}");
    };
    let begun = |settings: &Arc<Settings>, resource: &Value, need: Need| {
        let mut play = Play::begin(settings, need).unwrap();
        play.ok(resource).unwrap();
        play.ok(&issuer()).unwrap();
        play.answer(201, &json!({ "client_id": "c1" })).unwrap();
        let pending = play.pending();
        let state = query(pending.url()).remove("state").unwrap();
        let answered = pending.answered(&format!("{CALLBACK}?code=abc&state={state}")).unwrap();
        let mut world = World::default();
        Play::of(SignIn::resume(Arc::clone(settings), answered, &mut world).unwrap(), world)
    };
    let required = with(resource(), "dpop_bound_access_tokens_required", json!(true));
    refused(&mut begun(&settings(), &required, Need::new(SERVER)));
    let demand = Demand::of(&headers(&[("www-authenticate", "DPoP algs=\"ES256\"")]), true);
    refused(&mut begun(&settings(), &resource(), Need::new(SERVER).demand(demand)));
    let by_author = Settings::browser("x", CALLBACK).unwrap().dpop(Arc::new(TestKey)).require_dpop();
    let by_author = Arc::new(by_author);
    refused(&mut begun(&by_author, &resource(), Need::new(SERVER)));

    let before = |issuer: &str| Need::new(SERVER).bound_by(Some(issuer.to_owned()));
    refused(&mut begun(&settings(), &resource(), before(ISSUER)));
    // Another issuer has not bound any, and without a key there is none to bind.
    begun(&settings(), &resource(), before("https://login.example/other")).ok(&bearer).unwrap();
    begun(&browser(), &resource(), before(ISSUER)).ok(&bearer).unwrap();

    // An issuer may well answer so where both kinds are good.
    let both = Demand::of(&headers(&[("www-authenticate", "DPoP algs=\"ES256\", Bearer")]), true);
    begun(&settings(), &resource(), Need::new(SERVER).demand(both)).ok(&bearer).unwrap();

    let mut play = to_token(&settings());
    play.ok(&bound).unwrap();
    let grant = play.grant().clone();
    let refresh = |settings: Arc<Settings>, grant: &Grant| {
        let step = SignIn::refresh(settings, grant, &mut World::default()).unwrap();
        step.map(|step| Play::of(step, World::default()))
    };
    refused(&mut refresh(settings(), &grant).unwrap());
    refresh(settings(), &grant).unwrap().ok(&bound).unwrap();

    let without_key = Play::to_browser(&settings(), Need::new(SERVER), &issuer()).unwrap();
    let mut unbound = grant;
    unbound.terms = without_key.pending().terms().clone();
    assert!(refresh(settings(), &unbound).is_some());
    assert!(refresh(by_author, &unbound).is_none(), "it begins anew, with a key");
}

/// O96: a server that wants proofs says so to a client without a key, and a sign-in is finished with the key it began with.
#[test]
fn a_missing_key_is_said() {
    let demand = Demand::of(&headers(&[("www-authenticate", "DPoP algs=\"ES256\"")]), false);
    let error = Play::to_browser(&browser(), Need::new(SERVER).demand(demand), &issuer()).err();
    assert_eq!(error, Some(AuthError::DpopKey));
    let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&with(resource(), "dpop_bound_access_tokens_required", json!(true))).unwrap();
    assert_eq!(play.ok(&issuer()), Err(AuthError::DpopKey), "no client is registered in vain");

    let play = Play::to_browser(&settings(), Need::new(SERVER), &takes_proofs()).unwrap();
    let state = query(play.pending().url()).remove("state").unwrap();
    let answered = play.pending().answered(&format!("{CALLBACK}?code=abc&state={state}")).unwrap();
    let error = SignIn::resume(browser(), answered, &mut World::default()).err();
    assert_eq!(error, Some(AuthError::DpopKey));

    let play = Play::to_browser(&settings(), Need::new(SERVER), &issuer()).unwrap();
    assert_eq!(play.pending().terms().dpop, None, "the server takes no proofs");
}

/// O96: nonces are kept by origin, and only for one that has asked for them.
#[test]
fn nonces_are_kept_by_origin() {
    let url = |text: &str| HttpUrl::parse(text).unwrap();
    let mut nonces = Nonces::default();
    let given = |nonce: &str| headers(&[("dpop-nonce", nonce)]);
    assert!(!nonces.take(&url("https://a.example/x"), &given("n0"), false), "it did not ask");
    assert!(nonces.take(&url("https://a.example/x"), &given("n1"), true));
    assert_eq!(nonces.get(&url("https://A.example:443/y")), Some("n1"));
    assert_eq!(nonces.get(&url("https://b.example/")), None);
    assert!(nonces.take(&url("https://a.example/"), &given("n2"), false), "the next one");
    assert_eq!(nonces.get(&url("https://a.example/")), Some("n2"));
    assert!(!nonces.take(&url("https://a.example/"), &given(&"x".repeat(2_000)), true));
    for n in 0..100 {
        nonces.take(&url(&format!("https://h{n}.example/")), &given("n"), true);
    }
    assert_eq!(nonces.get(&url("https://h99.example/")), None, "there are only so many");
}

/// O96: the thumbprint of the published key (RFC 7638, 3.1).
#[test]
fn a_thumbprint_is_the_published_one() {
    let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W\
             -5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt\
             -bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    let key = PublicKey::Rsa { n: n.into(), e: "AQAB".into() };
    assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
}
