//! Tokens that are introspected.

use serde_json::{Value, json};

use super::*;

fn with_introspection(issuer: &Issuer, ahead: &Ahead) -> TokenChecker {
    let introspection = vec![issuer.introspection()];
    TokenChecker::new(CheckerSettings { introspection, clock: ahead.clock(), ..settings(issuer) })
}

/// O26: an active token is accepted, and remembered for a minute at most.
#[tokio::test]
async fn active_tokens_are_accepted_for_a_minute() {
    let (issuer, ahead) = (issuer(), Ahead::default());
    let checker = with_introspection(&issuer, &ahead);
    let token = alice(&issuer).opaque();
    for (seconds, asked) in [(0, 1), (30, 1), (59, 1), (61, 2), (100, 2)] {
        ahead.set(seconds);
        let claims = checker.check(&token).await.unwrap();
        assert_eq!((claims.subject.as_deref(), issuer.introspections()), (Some("alice"), asked), "{seconds}");
    }
    issuer.revoke(&token);
    assert!(checker.check_now(&token).unwrap().is_ok());
    ahead.set(200);
    assert_eq!(refusal(&checker, &token).await, TokenRefusal::Inactive);
}

/// O26: an answer is never remembered beyond the token's expiry.
#[tokio::test]
async fn answers_do_not_outlive_the_token() {
    let (issuer, ahead) = (issuer(), Ahead::default());
    let checker = with_introspection(&issuer, &ahead);
    let token = alice(&issuer).expires_in(Duration::from_secs(20)).opaque();
    assert!(checker.check(&token).await.is_ok());
    ahead.set(21);
    assert!(checker.check_now(&token).is_none(), "it has to be asked about again");
    ahead.set(90);
    assert_eq!(refusal(&checker, &token).await, TokenRefusal::Expired);
}

/// O26: an answer is held to the rules of any token, and a refusal is remembered for some seconds.
#[tokio::test]
async fn answers_are_checked() {
    let (issuer, ahead) = (issuer(), Ahead::default());
    let checker = with_introspection(&issuer, &ahead);
    let cases: [(IssuerToken, TokenRefusal); 8] = [
        (alice(&issuer).claim("active", false), TokenRefusal::Inactive),
        (alice(&issuer).claim("active", "true"), TokenRefusal::Inactive),
        (alice(&issuer).audience("https://other.example"), TokenRefusal::Audience),
        (alice(&issuer).without("aud"), TokenRefusal::Audience),
        (alice(&issuer).claim("iss", "https://evil.example"), TokenRefusal::Issuer),
        (alice(&issuer).without("exp"), TokenRefusal::NoExpiry),
        (alice(&issuer).expired(), TokenRefusal::Expired),
        (alice(&issuer).without("sub").without("client_id"), TokenRefusal::NoPrincipal),
    ];
    for (number, (token, expected)) in cases.into_iter().enumerate() {
        let token = token.opaque();
        ahead.set(0);
        for (seconds, asked) in [(0, 1), (4, 1), (6, 2)] {
            ahead.set(seconds);
            assert_eq!(refusal(&checker, &token).await, expected);
            assert_eq!(issuer.introspections(), number * 2 + asked, "{expected:?} after {seconds} s");
        }
    }
    assert_eq!(refusal(&checker, "unknown").await, TokenRefusal::Inactive);
    assert!(checker.check(&alice(&issuer).without("iss").opaque()).await.is_ok());
}

/// O25: an endpoint that is down, or does not know this server, is an outage: the token is not refused.
#[tokio::test]
async fn an_endpoint_that_fails_is_an_outage() {
    let (issuer, ahead) = (issuer(), Ahead::default());
    let token = alice(&issuer).opaque();
    let url = format!("{ISSUER}/introspect");
    for client in [Introspection::at(&url), Introspection::at(&url).client("resource", "wrong")] {
        let settings = CheckerSettings { introspection: vec![client], ..settings(&issuer) };
        let checked = TokenChecker::new(settings).check(&token).await;
        assert_eq!(checked.unwrap_err(), CheckError::Unavailable);
    }
    let checker = with_introspection(&issuer, &ahead);
    issuer.stop();
    assert_eq!(checker.check(&token).await.unwrap_err(), CheckError::Unavailable);
    issuer.start();
    assert!(checker.check(&token).await.is_ok());
}

/// O25: an answer that is none is an outage, too.
#[tokio::test]
async fn an_answer_that_is_none_is_an_outage() {
    let issuer = issuer();
    for (status, body) in [(200, "[]"), (200, r#"{"active":true,"active":false}"#), (302, "{}"), (500, "")] {
        let settings = CheckerSettings {
            introspection: vec![Introspection::at("https://login.example/i")],
            fetch: Some(Scripted::new([("https://login.example/i", status, body.to_owned())])),
            ..settings(&issuer)
        };
        let checked = TokenChecker::new(settings).check("opaque").await;
        assert_eq!(checked.unwrap_err(), CheckError::Unavailable, "{status} {body}");
    }
}

/// O26: of several endpoints, one that knows the token is enough; an outage of one is no refusal.
#[tokio::test]
async fn several_endpoints_are_asked() {
    let issuer = issuer();
    let (first, second) = ("https://login.example/1", "https://login.example/2");
    let active = json!({
        "active": true, "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": 9_999_999_999_u64
    });
    let inactive = json!({ "active": false });
    let cases: [(u16, &Value, Option<CheckError>); 3] = [
        (200, &active, None),
        (200, &inactive, Some(CheckError::Refused(TokenRefusal::Inactive))),
        (503, &inactive, Some(CheckError::Unavailable)),
    ];
    for (status, answer, expected) in cases {
        let fetch = Scripted::new([(first, 200, inactive.to_string()), (second, status, answer.to_string())]);
        let settings = CheckerSettings {
            introspection: [first, second].map(Introspection::at).into(),
            fetch: Some(fetch),
            ..settings(&issuer)
        };
        assert_eq!(TokenChecker::new(settings).check("opaque").await.err(), expected);
    }
}

/// O19, O26: an endpoint with a prefix sees tokens that have it, and no others.
#[tokio::test]
async fn a_prefix_keeps_tokens_from_other_endpoints() {
    let issuer = issuer();
    let (first, second) = ("https://login.example/1", "https://login.example/2");
    let active = json!({
        "active": true, "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": 9_999_999_999_u64
    });
    let inactive = json!({ "active": false }).to_string();
    let fetch = Scripted::new([(first, 200, inactive), (second, 200, active.to_string())]);
    let settings = CheckerSettings {
        introspection: vec![
            Introspection::at(first).prefix("one_"),
            Introspection::at(second).prefix("two_"),
        ],
        fetch: Some(fetch.clone()),
        ..settings(&issuer)
    };
    let checker = TokenChecker::new(settings);
    assert_eq!(refusal(&checker, "three_x").await, TokenRefusal::Malformed);
    assert_eq!(fetch.asked(), [""; 0]);
    assert!(checker.check("two_x").await.is_ok());
    assert_eq!(fetch.asked(), [second]);
    assert_eq!(refusal(&checker, "one_x").await, TokenRefusal::Inactive);
    assert_eq!(fetch.asked(), [second, first]);
}

/// O26: with several issuers, an answer counts for the issuer whose endpoint it is, or for the one it names.
#[tokio::test]
async fn an_answer_has_an_issuer() {
    let issuer = issuer();
    let named = IssuerSettings { name: "https://other.example".to_owned(), untyped: false, jwks: None };
    let check = async |endpoint: Introspection, token: IssuerToken| {
        let mut settings = CheckerSettings { introspection: vec![endpoint], ..settings(&issuer) };
        settings.issuers.push(named.clone());
        TokenChecker::new(settings).check(&token.opaque()).await.map(|claims| claims.principal.clone())
    };
    let unnamed = || alice(&issuer).without("iss");
    let refused = Err(CheckError::Refused(TokenRefusal::Issuer));
    let ours = check(issuer.introspection(), alice(&issuer)).await;
    assert!(ours.as_ref().is_ok_and(|principal| principal.contains(ISSUER)), "{ours:?}");
    assert_eq!(check(issuer.introspection(), unnamed()).await, refused);
    assert_eq!(check(issuer.introspection().issuer(ISSUER), unnamed()).await, ours);
    assert_eq!(check(issuer.introspection().issuer("https://other.example"), alice(&issuer)).await, refused);
}

/// O26: a signed token is verified by keys, and not sent anywhere.
#[tokio::test]
async fn signed_tokens_are_not_introspected() {
    let issuer = issuer();
    let checker = with_introspection(&issuer, &Ahead::default());
    assert!(checker.check(&alice(&issuer).sign()).await.is_ok());
    assert_eq!(refusal(&checker, &alice(&issuer).expired().sign()).await, TokenRefusal::Expired);
    assert_eq!(issuer.introspections(), 0);
}

/// A checker that introspects JWTs which do not say enough.
fn completing(issuer: &Issuer) -> TokenChecker {
    let introspection = vec![issuer.introspection().incomplete_jwts()];
    TokenChecker::new(CheckerSettings { introspection, ..settings(issuer) })
}

/// Answer of the endpoint about a good token.
fn active() -> Value {
    json!({ "active": true, "aud": RESOURCE, "sub": "alice", "scope": "files:read", "exp": 9_999_999_999_u64 })
}

/// JWTs of an issuer that do not say enough for an access token.
fn incomplete(issuer: &Issuer) -> [IssuerToken; 5] {
    [
        alice(issuer).header("typ", "JWT"),
        alice(issuer).header("typ", Value::Null).without("sub").without("client_id").without("scope"),
        alice(issuer).without("aud"),
        alice(issuer).without("exp"),
        alice(issuer).without("sub").without("client_id"),
    ]
}

/// O22, O26: a JWT that does not say enough is introspected where the author says so, and remembered as any other.
#[tokio::test]
async fn incomplete_jwts_are_introspected_where_the_author_says_so() {
    let issuer = issuer();
    let (checker, strict) = (completing(&issuer), with_introspection(&issuer, &Ahead::default()));
    for (number, token) in incomplete(&issuer).into_iter().enumerate() {
        let token = token.sign();
        issuer.keep_opaque(&token, active());
        let claims = checker.check(&token).await.unwrap();
        assert_eq!(claims.subject.as_deref(), Some("alice"));
        assert!(claims.scopes.contains("files:read"));
        assert!(checker.check_now(&token).unwrap().is_ok());
        assert_eq!(issuer.introspections(), number + 1);
        refusal(&strict, &token).await;
        assert_eq!(issuer.introspections(), number + 1, "the author has not said so");
    }
    assert!(checker.check(&alice(&issuer).sign()).await.is_ok());
    assert_eq!(issuer.introspections(), 5, "a token that says enough is not sent anywhere");
}

/// O18, O26: the answer about a JWT is held to the rules of any token.
#[tokio::test]
async fn answers_about_jwts_are_checked() {
    let issuer = issuer();
    let checker = completing(&issuer);
    let cases = [
        ("active", json!(false), TokenRefusal::Inactive),
        ("aud", json!("https://other.example"), TokenRefusal::Audience),
        ("iss", json!("https://other.example"), TokenRefusal::Issuer),
        ("exp", json!(1), TokenRefusal::Expired),
    ];
    for (name, value, expected) in cases {
        let token = alice(&issuer).header("typ", "JWT").claim("jti", name).sign();
        let mut answer = active();
        answer[name] = value;
        issuer.keep_opaque(&token, answer);
        assert_eq!(refusal(&checker, &token).await, expected);
    }
    issuer.stop();
    let unjudged = checker.check(&alice(&issuer).header("typ", "JWT").sign()).await;
    assert_eq!(unjudged.unwrap_err(), CheckError::Unavailable);
}

/// O18, O20, O22, O26: what an incomplete JWT does say counts: no answer makes a token for another resource, one that has
/// expired, or an ID token good, and none is asked for.
#[tokio::test]
async fn a_jwt_cannot_be_completed_against_its_own_claims() {
    let issuer = issuer();
    let checker = completing(&issuer);
    let untyped = || alice(&issuer).header("typ", "JWT");
    let cases = [
        (untyped().audience("https://other.example/mcp"), TokenRefusal::Audience),
        (untyped().claim("aud", json!([])), TokenRefusal::Audience),
        (untyped().claim("aud", 5), TokenRefusal::Type("aud")),
        (untyped().expired(), TokenRefusal::Expired),
        (untyped().without("exp").claim("nbf", 9_999_999_999_u64), TokenRefusal::NotYetValid),
        (untyped().claim("exp", "tomorrow"), TokenRefusal::Type("exp")),
        (untyped().claim("nonce", "n"), TokenRefusal::IdToken),
        (untyped().without("aud").claim("at_hash", "h"), TokenRefusal::IdToken),
        (alice(&issuer).header("typ", "dpop+jwt"), TokenRefusal::Kind),
    ];
    for (token, expected) in cases {
        let token = token.sign();
        issuer.keep_opaque(&token, active());
        assert_eq!(refusal(&checker, &token).await, expected);
    }
    assert_eq!(issuer.introspections(), 0);
}

/// O19, O21, O26: a JWT goes to the endpoint of the issuer that signed it, and to no other: neither one of a stranger, nor a forged
/// one, nor one of a second issuer, nor one by an algorithm that is not accepted is sent there.
#[tokio::test]
async fn a_jwt_goes_to_its_own_issuer_alone() {
    let (issuer, forger) = (issuer(), issuer());
    let stranger = Issuer::new("https://other.example", RESOURCE).unwrap();
    let mut settings = settings(&issuer);
    settings.introspection = vec![issuer.introspection().issuer(ISSUER).incomplete_jwts()];
    let second = json!({ "keys": stranger.published_keys()["keys"] }).to_string();
    let url = "https://other.example/keys";
    settings.issuers.push(IssuerSettings {
        name: "https://other.example".to_owned(),
        untyped: false,
        jwks: Some(url.to_owned()),
    });
    let keys = issuer.published_keys().to_string();
    settings.issuers[0].jwks = Some(issuer.jwks_uri());
    let fetch = Scripted::new([(&*issuer.jwks_uri(), 200, keys), (url, 200, second)]);
    settings.fetch = Some(fetch.clone());
    let checker = TokenChecker::new(settings);
    let untyped = |issuer: &Issuer| issuer.token("alice").header("typ", "JWT");
    let refused = [
        (untyped(&forger).sign(), TokenRefusal::Signature),
        (untyped(&stranger).claim("iss", ISSUER).sign(), TokenRefusal::Signature),
        (untyped(&stranger).sign(), TokenRefusal::Kind),
        (untyped(&issuer).claim("iss", "https://unknown.example").sign(), TokenRefusal::Issuer),
        (untyped(&issuer).without("iss").sign(), TokenRefusal::Issuer),
    ];
    for (token, expected) in refused {
        assert_eq!(refusal(&checker, &token).await, expected);
    }
    let signed = |name: &str, value: Value| alice(&issuer).header(name, value).sign();
    let unsigned = signed("alg", json!("none"));
    for token in [
        signed("alg", json!("HS256")),
        signed("alg", json!("ES512")),
        unsigned.rsplit_once('.').map(|(rest, _)| format!("{rest}.")).unwrap(),
        unsigned,
    ] {
        assert_eq!(refusal(&checker, &token).await, TokenRefusal::Algorithm, "{token}");
    }
    assert_eq!(refusal(&checker, &signed("typ", json!(5))).await, TokenRefusal::Malformed);
    assert!(fetch.asked().iter().all(|asked| asked.ends_with("/keys")), "{:?}", fetch.asked());
    for opaque in ["two.dots.inside", "e30.e30", "e30.e30.e30.e30.e30", "e30.~.e30", "NQ.e30.e30"] {
        assert_eq!(checker.check(opaque).await.unwrap_err(), CheckError::Unavailable, "{opaque} is no JWT");
    }
    let unjudged = checker.check(&untyped(&issuer).sign()).await;
    assert_eq!(unjudged.unwrap_err(), CheckError::Unavailable, "its endpoint is asked, which is not found");
    assert_eq!(fetch.asked().last().map(String::as_str), Some(&*format!("{ISSUER}/introspect")));
}
