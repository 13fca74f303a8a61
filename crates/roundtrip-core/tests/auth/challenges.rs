//! Challenges: every form that servers write, hostile ones, and the demand that a client reads from them.

use http::StatusCode;
use roundtrip_core::auth::*;

use super::support::headers;

fn parse(field: &str) -> Vec<Challenge> {
    Challenge::parse(field).unwrap_or_else(|error| panic!("{error}: {field}"))
}

fn scopes(text: &str) -> ScopeSet {
    text.parse().unwrap()
}

/// O40: several challenges in one field, quoted pairs, any order, any case, empty elements, blanks around `=`.
#[test]
fn every_form_of_a_challenge_is_read() {
    let field = r#", Negotiate, NTLM abc==,bEaReR  realm = "a \"b\" \\c, d" ,, ERROR=invalid_token, Digest nonce="x""#;
    let found = parse(field);
    let schemes: Vec<_> = found.iter().map(Challenge::scheme).collect();
    assert_eq!(schemes, ["Negotiate", "NTLM", "bEaReR", "Digest"]);
    assert_eq!(found[1].token(), Some("abc=="));
    assert!(found[2].is("bearer"));
    assert_eq!(found[2].param("REALM"), Some(r#"a "b" \c, d"#));
    assert_eq!(found[2].param("error"), Some("invalid_token"));
    assert_eq!(found[2].param("nonce"), None, "it is the next challenge's");
    assert_eq!(found[3].param("nonce"), Some("x"));
    assert_eq!(parse(" , "), []);
}

/// O40: a URL without quotes is read as it was meant.
#[test]
fn a_bare_url_is_tolerated() {
    let found = parse("Bearer resource_metadata=https://tools.example/x?a=b, scope=one");
    assert_eq!(found[0].param("resource_metadata"), Some("https://tools.example/x?a=b"));
    assert_eq!(found[0].param("scope"), Some("one"));
}

/// O40: what is no list of challenges, names a parameter twice, or is too long is refused.
#[test]
fn broken_challenges_are_refused() {
    for field in [
        "=",
        "\"x\"",
        "Bearer\u{0}",
        r#"Bearer realm="x"#,
        r#"Bearer realm="x\"#,
        r#"Bearer realm="x"scope="y""#,
        "Bearer realm=\"a\u{7}b\"",
        "Bearer realm=\"a\\\u{1}b\"",
        "Bearer Basic x",
        "Bearer a=b, realm=",
        "Bearer a b c",
    ] {
        assert_eq!(Challenge::parse(field), Err(ChallengeError::Malformed), "{field:?}");
    }
    assert_eq!(Challenge::parse("Bearer scope=a, SCOPE=b"), Err(ChallengeError::Duplicate));
    let many =
        |what: &str, times: usize| (0..times).map(|n| what.replace('#', &n.to_string())).collect::<String>();
    for field in [many("S# a=b, ", 17), format!("Bearer {}", many("p#=v, ", 33)), "B ".repeat(5_000)] {
        assert_eq!(Challenge::parse(&field), Err(ChallengeError::TooMany), "{} bytes", field.len());
    }
    assert_eq!(Challenge::parse(&many("S# a=b, ", 16)).unwrap().len(), 16);
}

/// O40: fields that cannot be read hide none of the others, and a thousand fields are not all read.
#[test]
fn a_broken_field_hides_no_other() {
    let map = headers(&[
        ("www-authenticate", "Bearer realm=\""),
        ("www-authenticate", "Basic \u{e9}\""),
        ("www-authenticate", r#"Basic realm="x", Bearer scope="a b""#),
    ]);
    let demand = Demand::of(&map, false).unwrap();
    assert_eq!(demand.scope, Some(scopes("a b")));
    let many: Vec<_> = (0..1_000).map(|_| ("www-authenticate", "Bearer a=b, Foo, Bar")).collect();
    assert!(Challenge::parse_all(headers(&many).get_all("www-authenticate")).len() <= 16);
}

/// O40: a client with a key prefers `DPoP`, one without prefers `Bearer`, and each takes the other where it is alone.
#[test]
fn the_demand_is_of_a_scheme_that_the_client_has() {
    let both = headers(&[
        ("www-authenticate", r#"DPoP algs="ES256", resource_metadata="/d""#),
        ("www-authenticate", "Bearer"),
        ("www-authenticate", r#"Bearer resource_metadata="/b", error="insufficient_scope", scope="w""#),
    ]);
    let bearer = Demand::of(&both, false).unwrap();
    assert_eq!((bearer.scheme, bearer.resource_metadata.as_deref()), (TokenScheme::Bearer, Some("/b")));
    assert!(
        bearer.wants_more_scope(StatusCode::FORBIDDEN) && !bearer.wants_more_scope(StatusCode::UNAUTHORIZED)
    );
    assert_eq!(Demand::of(&both, true).unwrap().scheme, TokenScheme::Dpop);
    let alone = headers(&[("www-authenticate", r#"dpop error="use_dpop_nonce""#)]);
    let demand = Demand::of(&alone, false).unwrap();
    assert!(demand.scheme == TokenScheme::Dpop && demand.wants_nonce());
    assert_eq!(Demand::of(&headers(&[("www-authenticate", "Basic realm=x")]), false), None);
    let odd = headers(&[("www-authenticate", "Bearer scope=\"a \\\"b\"")]);
    assert_eq!(Demand::of(&odd, false).unwrap().scope, None, "no scope has a quote");
}

/// O2, O3, O4, O30: challenges of a resource server, with and without an error.
#[test]
fn challenges_of_a_server_say_what_is_needed() {
    let metadata = HttpUrl::parse("https://tools.example/.well-known/oauth-protected-resource/mcp").unwrap();
    let first = Challenge::bearer().resource_metadata(&metadata).scope(&scopes("b a"));
    let expected = r#"Bearer resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp", scope="a b""#;
    assert_eq!(first.to_string(), expected);
    assert_eq!(first.to_header().unwrap(), expected);
    let later = first.clone().code(&ChallengeCode::InsufficientScope);
    assert_eq!(later.to_string(), format!("{expected}, error=\"insufficient_scope\""));
    assert_eq!(Challenge::bearer().scope(&ScopeSet::new()).to_string(), "Bearer");
    assert_eq!(
        Challenge::dpop().code(&ChallengeCode::UseDpopNonce).to_string(),
        r#"DPoP error="use_dpop_nonce""#
    );
}

/// O7: values are quoted and escaped, and nothing that splits a header can be written.
#[test]
fn nothing_escapes_its_quotes() {
    let challenge = Challenge::bearer().with("realm", r#"a", error="x\"#).unwrap();
    assert_eq!(challenge.to_string(), r#"Bearer realm="a\", error=\"x\\""#);
    assert_eq!(parse(&challenge.to_string()), std::slice::from_ref(&challenge));
    for (name, value) in [("a", "x\r\nSet-Cookie: y"), ("a b", "x"), ("", "x"), ("a", "\u{0}")] {
        assert_eq!(
            Challenge::bearer().with(name, value),
            Err(ChallengeError::Character),
            "{name:?} {value:?}"
        );
    }
    assert_eq!(challenge.with("REALM", "again"), Err(ChallengeError::Duplicate));
    let odd = Challenge::bearer().code(&ChallengeCode::Other("a\nb".into()));
    assert_eq!(odd.to_header(), Err(ChallengeError::Character));
}
