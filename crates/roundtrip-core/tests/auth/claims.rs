//! Tokens at a resource server: credentials, headers, claims, keys.

use std::time::Duration;

use roundtrip_core::auth::*;
use roundtrip_core::seal::Timestamp;
use serde_json::{Value, json};

use super::support::*;

fn rules() -> ClaimRules {
    ClaimRules::new(SERVER).issuer(ISSUER)
}

fn usual() -> Value {
    json!({ "iss": ISSUER, "aud": SERVER, "exp": NOON + 100, "iat": NOON, "sub": "alice", "client_id": "agent", "scope": "a b" })
}

fn header(kind: &str) -> Value {
    json!({ "alg": "ES256", "typ": kind, "kid": "k1" })
}

fn check_with(rules: &ClaimRules, header: &Value, claims: &Value) -> Result<Claims, TokenRefusal> {
    let token = token(header, claims);
    let jwt = Jwt::parse(&token)?;
    rules.check(jwt.header(), jwt.claims()?, Timestamp::from_unix(NOON))
}

fn check(claims: &Value) -> Result<Claims, TokenRefusal> {
    check_with(&rules(), &header("at+jwt"), claims)
}

fn refused(member: &str, value: Value) -> TokenRefusal {
    check(&with(usual(), member, value)).expect_err(member)
}

/// O6: one header, of a known scheme, with a token; the rest is malformed, or none.
#[test]
fn credentials_are_in_one_header() {
    let read = |fields: &[&str]| {
        let fields: Vec<_> = fields.iter().map(|field| ("authorization", *field)).collect();
        let map = headers(&fields);
        Credentials::read(&map).map(|found| found.map(|found| (found.scheme(), found.token().to_owned())))
    };
    assert_eq!(read(&["bEARER  abc.d-e_f~+/=="]), Ok(Some((TokenScheme::Bearer, "abc.d-e_f~+/==".into()))));
    assert_eq!(read(&["DPoP x"]), Ok(Some((TokenScheme::Dpop, "x".into()))));
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&["Basic YTpi"]), Ok(None));
    let huge = format!("Bearer {}", "x".repeat(LONGEST_TOKEN + 1));
    for fields in [
        &["Bearer"][..],
        &["Bearer "],
        &["Bearer a b"],
        &["Bearer a,b"],
        &["Bearer ="],
        &["Bearer é"],
        &[""],
        &[&huge],
        &["Bearer a", "Bearer a"],
        &["Bearer a", "Basic b"],
    ] {
        assert_eq!(read(fields), Err(MalformedCredentials), "{:.40}", fields.join("|"));
    }
    let map = headers(&[("authorization", "Bearer hush")]);
    assert!(!format!("{:?}", Credentials::read(&map)).contains("hush"));
}

/// O18: the audience contains the resource, or one that the author named; there is no way around.
#[test]
fn the_audience_is_always_checked() {
    assert!(check(&with(usual(), "aud", json!(["x", SERVER]))).is_ok());
    assert!(
        check_with(
            &rules().audience("api://files"),
            &header("at+jwt"),
            &with(usual(), "aud", json!("api://files"))
        )
        .is_ok()
    );
    for aud in [
        json!("https://tools.example/mcp/"),
        json!("https://tools.example"),
        json!("https://TOOLS.example/mcp"),
        json!([]),
        json!(""),
        json!(["x"]),
    ] {
        assert_eq!(refused("aud", aud), TokenRefusal::Audience);
    }
    for aud in [json!(5), json!([5]), json!({ "x": SERVER }), Value::Null] {
        assert_eq!(refused("aud", aud), TokenRefusal::Type("aud"));
    }
    assert_eq!(check(&without(usual(), "aud")).unwrap_err(), TokenRefusal::Audience);
}

/// O19: the issuer is one of the configured, as plain strings.
#[test]
fn the_issuer_is_an_exact_string() {
    for iss in [
        json!("https://login.example/tenant1/"),
        json!("https://LOGIN.example/tenant1"),
        json!("https://evil.example"),
    ] {
        assert_eq!(refused("iss", iss), TokenRefusal::Issuer);
    }
    for iss in [json!([ISSUER]), json!(""), Value::Null] {
        assert_eq!(refused("iss", iss), TokenRefusal::Type("iss"));
    }
    assert_eq!(check(&without(usual(), "iss")).unwrap_err(), TokenRefusal::Issuer);
    let none = ClaimRules::new(SERVER);
    assert_eq!(check_with(&none, &header("at+jwt"), &usual()).unwrap_err(), TokenRefusal::Issuer);
}

/// O20: `exp` is required, `nbf` and `iat` are not in the future, a minute of leeway at most, and a wrong type is no absence.
#[test]
fn times_are_enforced() {
    let ok = |member: &str, value: Value| check(&with(usual(), member, value)).is_ok();
    assert!(ok("exp", json!(NOON - 59)) && ok("exp", json!(NOON as f64 + 0.5)));
    assert_eq!(refused("exp", json!(NOON - 60)), TokenRefusal::Expired);
    assert_eq!(check(&without(usual(), "exp")).unwrap_err(), TokenRefusal::NoExpiry);
    for member in ["nbf", "iat"] {
        assert!(ok(member, json!(NOON + 60)), "{member}");
        assert_eq!(refused(member, json!(NOON + 61)), TokenRefusal::NotYetValid, "{member}");
    }
    for value in [json!("1785000100"), Value::Null, json!(-1), json!([NOON]), json!(true), json!(1e300)] {
        assert_eq!(refused("exp", value.clone()), TokenRefusal::Type("exp"), "{value}");
        assert_eq!(refused("nbf", value.clone()), TokenRefusal::Type("nbf"), "{value}");
        assert_eq!(refused("iat", value.clone()), TokenRefusal::Type("iat"), "{value}");
    }
    let strict = rules().leeway(Duration::ZERO);
    assert_eq!(
        check_with(&strict, &header("at+jwt"), &with(usual(), "exp", json!(NOON))).unwrap_err(),
        TokenRefusal::Expired
    );
    let generous = rules().leeway(Duration::from_secs(86_400));
    assert!(check_with(&generous, &header("at+jwt"), &with(usual(), "exp", json!(NOON - 60))).is_err());
}

/// O21: `none`, symmetric and unknown algorithms and `crit` are refused before any key is looked for.
#[test]
fn only_asymmetric_signatures_are_accepted() {
    for alg in [
        json!("none"),
        json!("None"),
        json!("HS256"),
        json!("HS512"),
        json!("es256"),
        json!("RSA1_5"),
        json!(""),
        Value::Null,
        json!(5),
    ] {
        let refusal = Jwt::parse(&token(&json!({ "alg": alg }), &usual())).unwrap_err();
        assert!(matches!(refusal, TokenRefusal::Algorithm | TokenRefusal::Malformed), "{alg}: {refusal}");
    }
    assert_eq!(Jwt::parse(&token(&json!({}), &usual())).unwrap_err(), TokenRefusal::Algorithm);
    let critical = json!({ "alg": "ES256", "crit": [] });
    assert_eq!(Jwt::parse(&token(&critical, &usual())).unwrap_err(), TokenRefusal::Critical);
}

/// O21: a key fits by its kind, curve, algorithm and use, and by the id that the token names.
#[test]
fn a_key_fits_or_is_not_tried() {
    let ec = |crv: &str, more: Value| {
        let mut key = json!({ "kty": "EC", "crv": crv, "x": "eA", "y": "eQ" });
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    };
    let set = |keys: &[Value]| KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
    let fits = |key: Value, header: &Value| {
        let token = token(header, &usual());
        set(&[key]).candidates(Jwt::parse(&token).unwrap().header()).count() == 1
    };
    let (named, unnamed) = (header("at+jwt"), json!({ "alg": "ES256" }));
    assert!(fits(
        ec("P-256", json!({ "kid": "k1", "use": "sig", "alg": "ES256", "key_ops": ["verify"] })),
        &named
    ));
    assert!(fits(ec("P-256", json!({ "kid": "k2" })), &unnamed));
    for wrong in [
        json!({ "kid": "k2" }),
        json!({}),
        json!({ "kid": "k1", "use": "enc" }),
        json!({ "kid": "k1", "alg": "ES384" }),
        json!({ "kid": "k1", "key_ops": ["sign"] }),
    ] {
        assert!(!fits(ec("P-256", wrong.clone()), &named), "{wrong}");
    }
    assert!(!fits(ec("P-384", json!({})), &unnamed) && !fits(ec("secp256k1", json!({})), &unnamed));
    let symmetric = json!({ "kty": "oct", "k": "c2VjcmV0" });
    assert!(!fits(symmetric.clone(), &unnamed));
    let rsa = json!({ "kty": "RSA", "n": "AQ", "e": "AQAB" });
    assert!(!fits(rsa.clone(), &unnamed) && fits(rsa.clone(), &json!({ "alg": "PS512" })));
    let okp = json!({ "kty": "OKP", "crv": "Ed25519", "x": "eA" });
    assert!(fits(okp, &json!({ "alg": "EdDSA" })));
    assert!(!fits(json!(["EC", "P-256", "eA", "eQ"]), &unnamed), "a list is not a key");
    let mixed = set(&[symmetric, json!(5), json!({}), rsa, ec("P-256", json!({ "kid": "k1" }))]);
    assert!(mixed.contains("k1") && !mixed.contains("k2"));
    assert!(KeySet::parse(b"{}").is_err() && KeySet::parse(b"[]").is_err());
}

/// O22: `at+jwt` is accepted; another type only where the author says so, and never an ID token.
#[test]
fn the_type_of_a_token_is_checked() {
    let untyped = ClaimRules::new(SERVER).untyped_issuer(ISSUER);
    for kind in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        assert!(check_with(&rules(), &header(kind), &usual()).is_ok(), "{kind}");
        assert!(check_with(&untyped, &header(kind), &usual()).is_ok(), "{kind}");
    }
    for kind in ["at+application/jwt", "application/application/at+jwt", "at+jwtapplication/"] {
        assert_eq!(check_with(&untyped, &header(kind), &usual()).unwrap_err(), TokenRefusal::Kind, "{kind}");
    }
    for header in [header("JWT"), json!({ "alg": "ES256" })] {
        assert_eq!(check_with(&rules(), &header, &usual()).unwrap_err(), TokenRefusal::Kind);
        assert!(check_with(&untyped, &header, &usual()).is_ok());
        for claim in ["nonce", "at_hash", "c_hash", "s_hash"] {
            let id_token = with(usual(), claim, json!("x"));
            assert_eq!(
                check_with(&untyped, &header, &id_token).unwrap_err(),
                TokenRefusal::IdToken,
                "{claim}"
            );
        }
    }
    for kind in ["dpop+jwt", "oauth-id-jag+jwt", "logout+jwt", "id_token", ""] {
        assert_eq!(check_with(&untyped, &header(kind), &usual()).unwrap_err(), TokenRefusal::Kind, "{kind}");
    }
}

/// O26: an introspection answer is held to the same rules, and must say that the token is active.
#[test]
fn introspected_tokens_are_held_to_the_same_rules() {
    let check = |claims: Value| {
        let claims = claims.as_object().unwrap().clone();
        rules().check_introspected(ISSUER, claims, Timestamp::from_unix(NOON))
    };
    let active = with(usual(), "active", json!(true));
    assert!(check(active.clone()).is_ok());
    assert_eq!(
        check(without(active.clone(), "iss")).unwrap().principal,
        check(active.clone()).unwrap().principal
    );
    for value in [json!(false), json!("true"), json!(1), Value::Null] {
        assert_eq!(check(with(active.clone(), "active", value)).unwrap_err(), TokenRefusal::Inactive);
    }
    assert_eq!(check(usual()).unwrap_err(), TokenRefusal::Inactive);
    assert_eq!(
        check(with(active.clone(), "iss", json!("https://evil.example"))).unwrap_err(),
        TokenRefusal::Issuer
    );
    assert_eq!(check(without(active.clone(), "aud")).unwrap_err(), TokenRefusal::Audience);
    assert_eq!(check(without(active, "exp")).unwrap_err(), TokenRefusal::NoExpiry);
}

/// O26: an answer about a refresh token or an ID token is refused, by whichever member says what the token is.
#[test]
fn an_introspected_token_is_an_access_token() {
    let check = |member: &str, value: Value| {
        let claims = with(with(usual(), "active", json!(true)), member, value);
        rules().check_introspected(ISSUER, claims.as_object().unwrap().clone(), Timestamp::from_unix(NOON))
    };
    for (member, use_of_it) in [
        ("token_use", "access"),
        ("token_use", "access_token"),
        ("typ", "Bearer"),
        ("typ", "at+jwt"),
        ("typ", "JWT"),
        ("typ", "application/at+jwt"),
        ("typ", "Application/AT+JWT"),
        ("token_type", "bearer"),
        ("token_type", "access_token"),
        ("token_type", "urn:ietf:params:oauth:token-type:access_token"),
    ] {
        assert!(check(member, json!(use_of_it)).is_ok(), "{member} {use_of_it}");
    }
    for (member, use_of_it) in [
        ("token_use", json!("refresh_token")),
        ("token_use", json!("refresh")),
        ("token_use", json!("id")),
        ("typ", json!("Refresh")),
        ("typ", json!("Offline")),
        ("typ", json!("ID")),
        ("typ", json!("application/refresh")),
        ("token_type", json!("refresh_token")),
        ("token_type", json!("urn:ietf:params:oauth:token-type:refresh_token")),
        ("token_type", json!("mac")),
    ] {
        assert_eq!(check(member, use_of_it.clone()).unwrap_err(), TokenRefusal::Kind, "{member} {use_of_it}");
    }
    assert_eq!(check("token_use", json!(5)).unwrap_err(), TokenRefusal::Type("token_use"));
}

/// O39: a token that is bound to a key or a certificate is not good as a plain bearer token, however it was judged.
#[test]
fn a_bound_token_is_not_a_bearer_token() {
    let now = Timestamp::from_unix(NOON);
    let bindings =
        [json!({ "jkt": "0ZcOCORZNYy" }), json!({ "x5t#S256": "bwcK0esc" }), json!({}), Value::Null];
    for binding in bindings {
        let bound = with(usual(), "cnf", binding);
        let object = |claims: &Value| claims.as_object().unwrap().clone();
        let introspected = with(bound.clone(), "active", json!(true));
        let header = header("at+jwt");
        let token = token(&header, &bound);
        let jwt = Jwt::parse(&token).unwrap();
        let check = |rules: &ClaimRules| {
            [
                check_with(rules, &header, &bound).map(drop),
                rules.check_introspected(ISSUER, object(&introspected), now).map(drop),
                rules.check_verified(object(&bound), now).map(drop),
                rules.check_incomplete(jwt.header(), &object(&bound), now),
            ]
        };
        assert_eq!(check(&rules()), [Err(TokenRefusal::Bound); 4], "{bound}");
        assert_eq!(check(&rules().accept_bound()), [Ok(()); 4], "{bound}");
    }
    let proven = with(with(usual(), "active", json!(true)), "token_type", json!("DPoP"));
    let check = |rules: ClaimRules| {
        rules.check_introspected(ISSUER, proven.as_object().unwrap().clone(), now).map(drop)
    };
    assert_eq!((check(rules()), check(rules().accept_bound())), (Err(TokenRefusal::Bound), Ok(())));
}

/// O18: what an author's own check found is held to the same rules; its issuer is a configured one.
#[test]
fn claims_of_an_authors_check_are_held_to_the_same_rules() {
    let check = |claims: Value| {
        rules().check_verified(claims.as_object().unwrap().clone(), Timestamp::from_unix(NOON))
    };
    assert!(check(usual()).is_ok());
    assert_eq!(check(without(usual(), "aud")).unwrap_err(), TokenRefusal::Audience);
    assert_eq!(check(without(usual(), "iss")).unwrap_err(), TokenRefusal::Issuer);
    assert_eq!(check(with(usual(), "iss", json!("https://evil.example"))).unwrap_err(), TokenRefusal::Issuer);
    assert_eq!(check(with(usual(), "exp", json!(NOON - 60))).unwrap_err(), TokenRefusal::Expired);
}

/// O26: the request of an introspection has the token in its body and the credentials in a header, and shows neither.
#[test]
fn an_introspection_request_shows_no_secret() {
    let url = HttpUrl::parse("https://login.example/introspect").unwrap();
    let secret = Secret::new("p&ss:word");
    let request = introspection_request(url.clone(), Some(("files", &secret)), "a+b/c=").unwrap();
    assert_eq!(request.body.as_ref().unwrap().expose(), "token=a%2Bb%2Fc%3D&token_type_hint=access_token");
    let header = &request.headers["authorization"];
    assert_eq!(header, "Basic ZmlsZXM6cCUyNnNzJTNBd29yZA==");
    assert!(header.is_sensitive() && !format!("{request:?}").contains("a%2B"));
    let alone = introspection_request(url, None, "t").unwrap();
    assert!(!alone.headers.contains_key("authorization"));
    assert!(read_introspection(br#"{"active":true,"active":false}"#).is_err());
    assert_eq!(read_introspection(br#"{"active":true}"#).unwrap()["active"], true);
}

/// O27: too large, not a token, encrypted, or with a claim twice: refused, and nothing of it is in the text.
#[test]
fn hostile_tokens_are_refused() {
    assert_eq!(Jwt::parse(&"x".repeat(LONGEST_TOKEN + 1)).unwrap_err(), TokenRefusal::TooLarge);
    for text in [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "a.b.c.d.e",
        "eyJhbGciOiJFUzI1NiJ9.e30.=",
        "eyJhbGciOiJFUzI1NiJ9.e30.\u{e9}",
        "eyJhbGciOiJFUzI1NiJ9. e30.eA",
    ] {
        assert_eq!(Jwt::parse(text).unwrap_err(), TokenRefusal::Malformed, "{text:?}");
    }
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let twice = format!("{}.{}.eA", encode(r#"{"alg":"ES256"}"#), encode(r#"{"sub":"alice","sub":"bob"}"#));
    assert_eq!(Jwt::parse(&twice).unwrap().claims().unwrap_err(), TokenRefusal::Malformed);
    let deep =
        format!("{}.{}.eA", encode(r#"{"alg":"ES256"}"#), encode(&format!("{{\"a\":{}", "[".repeat(9_000))));
    assert_eq!(Jwt::parse(&deep).unwrap().claims().unwrap_err(), TokenRefusal::Malformed);
    let headers = format!("{}.e30.eA", encode(r#"{"alg":"ES256","alg":"none"}"#));
    assert_eq!(Jwt::parse(&headers).unwrap_err(), TokenRefusal::Malformed);
    let good = token(&header("at+jwt"), &usual());
    assert!(!format!("{:?}", Jwt::parse(&good).unwrap()).contains("eyJ"));
    assert!(!format!("{:?}", check(&usual()).unwrap()).contains("alice"));
}

/// O30: scopes are read from `scope` and from `scp`, as text or as a list.
#[test]
fn scopes_are_read_in_both_forms() {
    let scopes = |claims: Value| check(&claims).map(|claims| claims.scopes.to_string());
    assert_eq!(scopes(usual()).unwrap(), "a b");
    assert_eq!(scopes(with(without(usual(), "scope"), "scp", json!(["c", "a"]))).unwrap(), "a c");
    assert_eq!(scopes(with(usual(), "scp", json!("c"))).unwrap(), "a b c");
    assert_eq!(scopes(without(usual(), "scope")).unwrap(), "");
    for scope in [json!(5), json!([5]), json!("a\"b"), json!({}), Value::Null] {
        assert_eq!(refused("scope", scope), TokenRefusal::Type("scope"));
    }
}

/// O35: issuer and subject, or issuer and client; refresh and step-up keep it, another issuer does not.
#[test]
fn the_principal_is_issuer_and_subject() {
    let principal = |claims: Value| check(&claims).map(|claims| claims.principal);
    let alice = principal(usual()).unwrap();
    for (member, value) in [
        ("scope", json!("x")),
        ("exp", json!(NOON + 5)),
        ("jti", json!("other")),
        ("client_id", json!("other")),
    ] {
        assert_eq!(principal(with(usual(), member, value)).unwrap(), alice, "{member}");
    }
    assert_ne!(principal(with(usual(), "sub", json!("bob"))).unwrap(), alice);
    let machine = principal(without(usual(), "sub")).unwrap();
    assert_ne!(
        machine,
        principal(with(usual(), "sub", json!("agent"))).unwrap(),
        "a client is no subject of its name"
    );
    let azp = with(without(without(usual(), "sub"), "client_id"), "azp", json!("agent"));
    assert_eq!(principal(azp).unwrap(), machine);
    let nameless = without(without(usual(), "sub"), "client_id");
    assert_eq!(check(&nameless).unwrap_err(), TokenRefusal::NoPrincipal);
    for sub in [json!(""), json!(5), Value::Null, json!(["alice"])] {
        assert_eq!(refused("sub", sub), TokenRefusal::Type("sub"));
    }
    let two = rules().issuer("https://other.example");
    let other = check_with(&two, &header("at+jwt"), &with(usual(), "iss", json!("https://other.example")));
    assert_ne!(other.unwrap().principal, alice);
}
