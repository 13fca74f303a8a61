//! Tokens that are not good, each by one thing.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::*;
use crate::authorize::Algorithm;

fn now() -> u64 {
    Clock::default().now().as_unix()
}

async fn refused(change: impl FnOnce(IssuerToken) -> IssuerToken) -> TokenRefusal {
    let issuer = issuer();
    refusal(&checker(&issuer), &change(alice(&issuer)).sign()).await
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Replaces one of the three parts of a token.
fn with_part(token: &str, at: usize, part: &str) -> String {
    let mut parts: Vec<&str> = token.split('.').collect();
    parts[at] = part;
    parts.join(".")
}

/// O19, O20, O21, O22: a good token is accepted, whatever it is signed with, and its claims are read.
#[tokio::test]
async fn good_tokens_are_accepted() {
    for algorithm in
        [Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA, Algorithm::RS256, Algorithm::PS512]
    {
        let issuer = Issuer::signing(algorithm, ISSUER, RESOURCE).unwrap();
        let claims = checker(&issuer).check(&alice(&issuer).claim("tenant", 7).sign()).await.unwrap();
        assert_eq!(claims.subject.as_deref(), Some("alice"), "{algorithm:?}");
        assert_eq!(claims.client_id.as_deref(), Some("test-client"));
        assert!(claims.scopes.contains("files:read"));
        assert_eq!(claims.all["tenant"], 7);
    }
}

/// O19: a token of another issuer is refused, and that issuer is not asked for keys.
#[tokio::test]
async fn other_issuers_are_refused() {
    for name in
        ["https://login.example/tenant1/", "https://login.example/TENANT1", "https://evil.example", ""]
    {
        assert_eq!(refused(|token| token.claim("iss", name)).await, TokenRefusal::Issuer, "{name}");
    }
    assert_eq!(refused(|token| token.without("iss")).await, TokenRefusal::Issuer);
    assert_eq!(refused(|token| token.claim("iss", json!([ISSUER]))).await, TokenRefusal::Issuer);
    let evil = Issuer::new("https://evil.example", RESOURCE).unwrap();
    let ours = issuer();
    assert_eq!(refusal(&checker(&ours), &evil.token("alice").sign()).await, TokenRefusal::Issuer);
    assert_eq!((evil.metadata_fetches(), ours.metadata_fetches()), (0, 0));
}

/// O19: a token that names one configured issuer and is signed by another is refused.
#[tokio::test]
async fn an_issuer_cannot_speak_for_another() {
    let (ours, theirs) = (issuer(), Issuer::new("https://other.example", RESOURCE).unwrap());
    let mut settings = settings(&ours);
    settings.issuers.push(IssuerSettings { name: theirs.name().to_owned(), untyped: false, jwks: None });
    let checker = TokenChecker::new(settings);
    let token = theirs.token("alice").claim("iss", ISSUER).sign();
    assert_eq!(refusal(&checker, &token).await, TokenRefusal::Signature);
}

/// O18: a token for another resource is refused.
#[tokio::test]
async fn other_audiences_are_refused() {
    for audience in
        [json!("https://tools.example"), json!(["https://other.example/mcp"]), json!([]), json!("")]
    {
        assert_eq!(refused(|token| token.claim("aud", audience.clone())).await, TokenRefusal::Audience);
    }
    assert_eq!(refused(|token| token.without("aud")).await, TokenRefusal::Audience);
    assert_eq!(refused(|token| token.claim("aud", 5)).await, TokenRefusal::Type("aud"));
}

/// O20: expiry is required and enforced, with a minute of leeway; a time of another type is not "absent".
#[tokio::test]
async fn times_are_enforced() {
    assert_eq!(refused(IssuerToken::expired).await, TokenRefusal::Expired);
    assert_eq!(refused(|token| token.without("exp")).await, TokenRefusal::NoExpiry);
    for name in ["exp", "nbf", "iat"] {
        for value in [json!("1785000100"), Value::Null, json!([now()]), json!(true), json!(-1)] {
            let refused = refused(|token| token.claim(name, value.clone())).await;
            assert_eq!(refused, TokenRefusal::Type(name), "{name} {value}");
        }
    }
    for name in ["nbf", "iat"] {
        let refused = refused(|token| token.claim(name, now() + 120)).await;
        assert_eq!(refused, TokenRefusal::NotYetValid, "{name}");
    }
}

/// O20: a clock that is off by less than a minute refuses nothing, and a token that was accepted ends with its expiry.
#[tokio::test]
async fn clocks_may_differ_by_a_minute() {
    let (issuer, ahead) = (issuer(), Ahead::default());
    let checker = TokenChecker::new(CheckerSettings { clock: ahead.clock(), ..settings(&issuer) });
    let token = alice(&issuer).expires_in(Duration::from_secs(300)).sign();
    for (seconds, good) in
        [(-90, false), (-50, true), (0, true), (299, true), (350, true), (365, false), (0, true)]
    {
        ahead.set(seconds);
        assert_eq!(checker.check(&token).await.is_ok(), good, "{seconds}");
    }
}

/// O21: `none`, symmetric algorithms and `crit` are refused before a key is looked for.
#[tokio::test]
async fn bad_algorithms_are_refused() {
    for alg in ["none", "None", "HS256", "HS512", "ES512", "RSA1_5", ""] {
        assert_eq!(refused(|token| token.header("alg", alg)).await, TokenRefusal::Algorithm, "{alg}");
    }
    let crit = |token: IssuerToken| token.header("crit", json!(["exp"]));
    assert_eq!(refused(crit).await, TokenRefusal::Critical);
    let issuer = issuer();
    let unsigned = with_part(&alice(&issuer).header("alg", "none").sign(), 2, "");
    assert_eq!(refusal(&checker(&issuer), &unsigned).await, TokenRefusal::Algorithm);
    assert_eq!(issuer.key_fetches(), 0);
}

/// O21: the public key does not do as the secret of an HMAC.
#[tokio::test]
async fn a_public_key_is_no_secret() {
    let issuer = Issuer::signing(Algorithm::RS256, ISSUER, RESOURCE).unwrap();
    let signed = alice(&issuer).header("alg", "HS256").sign();
    let (input, _) = signed.rsplit_once('.').unwrap();
    let published = issuer.published_keys()["keys"][0].to_string();
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, published.as_bytes()), input.as_bytes());
    let forged = with_part(&signed, 2, &URL_SAFE_NO_PAD.encode(tag));
    assert_eq!(refusal(&checker(&issuer), &forged).await, TokenRefusal::Algorithm);
}

/// O21: a key of another kind than the algorithm's is not tried, though its `kid` is the token's.
#[tokio::test]
async fn a_key_of_another_kind_is_not_tried() {
    let issuer = issuer();
    for alg in ["EdDSA", "RS256", "ES384"] {
        let token = alice(&issuer).header("alg", alg).sign();
        assert_eq!(refusal(&checker(&issuer), &token).await, TokenRefusal::UnknownKey, "{alg}");
    }
}

/// O21: claims, header and signature of a good token cannot be exchanged.
#[tokio::test]
async fn tampered_tokens_are_refused() {
    let issuer = issuer();
    let checker = checker(&issuer);
    let (alice, mallory) = (alice(&issuer).sign(), issuer.token("mallory").sign());
    let parts: Vec<&str> = mallory.split('.').collect();
    assert_eq!(refusal(&checker, &with_part(&alice, 1, parts[1])).await, TokenRefusal::Signature);
    assert_eq!(refusal(&checker, &with_part(&alice, 2, parts[2])).await, TokenRefusal::Signature);
    let untyped = part(&json!({ "alg": "ES256", "kid": "key-1" }));
    assert_eq!(refusal(&checker, &with_part(&alice, 0, &untyped)).await, TokenRefusal::Signature);
    assert!(checker.check(&alice).await.is_ok());
}

/// O21: a key that the token brings along is not used.
#[tokio::test]
async fn keys_inside_a_token_are_not_used() {
    let evil = Issuer::new(ISSUER, RESOURCE).unwrap();
    let own = evil.published_keys()["keys"][0].clone();
    let token = evil.token("alice").header("jwk", own).header("jku", "https://evil.example/keys").sign();
    let issuer = issuer();
    assert_eq!(refusal(&checker(&issuer), &token).await, TokenRefusal::Signature);
}

/// O22: a token of another type is refused: an ID token for one.
#[tokio::test]
async fn other_types_are_refused() {
    for kind in [json!("JWT"), json!("dpop+jwt"), json!("logout+jwt"), json!(""), Value::Null] {
        let refused = refused(|token| token.header("typ", kind.clone())).await;
        assert_eq!(refused, TokenRefusal::Kind, "{kind}");
    }
    assert_eq!(refused(|token| token.header("typ", json!(["at+jwt"]))).await, TokenRefusal::Malformed);
}

/// O22: where the author accepts untyped tokens of an issuer, its ID tokens are refused still.
#[tokio::test]
async fn untyped_tokens_are_accepted_where_the_author_says_so() {
    let issuer = issuer();
    let mut settings = settings(&issuer);
    settings.issuers[0].untyped = true;
    let checker = TokenChecker::new(settings);
    for kind in [json!("JWT"), json!("application/at+jwt"), Value::Null] {
        assert!(checker.check(&alice(&issuer).header("typ", kind).sign()).await.is_ok());
    }
    for claim in ["nonce", "at_hash"] {
        let token = alice(&issuer).header("typ", Value::Null).claim(claim, "x").sign();
        assert_eq!(refusal(&checker, &token).await, TokenRefusal::IdToken);
    }
}

/// O35: a token that names neither a subject nor a client is refused.
#[tokio::test]
async fn a_token_names_someone() {
    let nobody = refused(|token| token.without("sub").without("client_id")).await;
    assert_eq!(nobody, TokenRefusal::NoPrincipal);
    assert_eq!(refused(|token| token.claim("sub", "")).await, TokenRefusal::Type("sub"));
}

/// O27: what is too large is not decoded, and a claim that is there twice has no meaning.
#[tokio::test]
async fn malformed_tokens_are_refused() {
    let issuer = issuer();
    let checker = checker(&issuer);
    let header = r#"{"alg":"ES256","kid":"key-1","typ":"at+jwt"}"#;
    let twice =
        format!(r#"{{"iss":"{ISSUER}","sub":"alice","sub":"bob","aud":"{RESOURCE}","exp":9999999999}}"#);
    let once = twice.replacen(r#""sub":"bob","#, "", 1);
    assert!(checker.check(&issuer.sign_raw(header, &once)).await.is_ok());
    assert_eq!(refusal(&checker, &issuer.sign_raw(header, &twice)).await, TokenRefusal::Malformed);
    let headers = r#"{"alg":"ES256","alg":"none","kid":"key-1","typ":"at+jwt"}"#;
    assert_eq!(refusal(&checker, &issuer.sign_raw(headers, &once)).await, TokenRefusal::Malformed);
    for claims in ["[]", "5", "", "{", "null"] {
        assert_eq!(refusal(&checker, &issuer.sign_raw(header, claims)).await, TokenRefusal::Malformed);
    }
    let large = alice(&issuer).claim("padding", "x".repeat(LONGEST_TOKEN)).sign();
    assert_eq!(refusal(&checker, &large).await, TokenRefusal::TooLarge);
    for text in ["", ".", "..", "a.b", "a.b.c", "opaque", "\u{e9}.\u{e9}.\u{e9}"] {
        assert_eq!(refusal(&checker, text).await, TokenRefusal::Malformed, "{text}");
    }
}
