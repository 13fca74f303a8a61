//! Authorization responses: which of them gives a code, and what is never acted on.

use roundtrip_core::auth::*;

use super::support::{CALLBACK, ISSUER};

const ISS: &str = "iss=https%3A%2F%2Flogin.example%2Ftenant1";

fn read_with(query: &str, promises_iss: bool) -> Result<String, CallbackError> {
    let state = Secret::new("s3cret");
    let expected = Expected { state: &state, issuer: ISSUER, promises_iss, redirect_uri: CALLBACK };
    let url = if query.contains("://") { query.to_owned() } else { format!("{CALLBACK}?{query}") };
    read_callback(&url, &expected).map(|code| code.expose().to_owned())
}

fn read(query: &str) -> Result<String, CallbackError> {
    read_with(query, false)
}

/// O65: another state, no state, two states and another place are dropped, and the wait goes on.
#[test]
fn callbacks_of_others_are_dropped() {
    assert_eq!(read("code=c&state=s3cret").unwrap(), "c");
    assert_eq!(read("state=s3cret&code=a%2Bb+c&x=y#_=_").unwrap(), "a+b c");
    for query in [
        "code=c&state=other",
        "code=c&state=s3cre",
        "code=c&state=s3cret%00",
        "code=c",
        "code=c&state=",
        "code=c&state=s3cret&state=other",
        "code=c&state=s3cret&state=s3cret",
        "error=access_denied&state=other",
        "http://127.0.0.1:7777/other?code=c&state=s3cret",
        "http://127.0.0.1:7778/callback?code=c&state=s3cret",
        "https://127.0.0.1:7777/callback?code=c&state=s3cret",
        "http://evil.example/callback?code=c&state=s3cret",
        "http://127.0.0.1:7777/callback",
        "http://127.0.0.1:7777/callback#code=c&state=s3cret",
    ] {
        assert_eq!(read(query), Err(CallbackError::NotOurs), "{query}");
    }
}

/// O67: `iss` is compared when it is there, and required when it is promised, without any normalisation.
#[test]
fn the_issuer_of_a_response_is_compared() {
    for promised in [true, false] {
        assert_eq!(read_with(&format!("code=c&state=s3cret&{ISS}"), promised).unwrap(), "c");
        for iss in [
            "iss=https://login.example/tenant1/",
            "iss=https://LOGIN.example/tenant1",
            "iss=https://evil.example",
            "iss=",
            "iss=https%3A%2F%2Flogin.example:443%2Ftenant1",
        ] {
            let query = format!("{CALLBACK}?code=c&state=s3cret&{iss}");
            assert_eq!(read_with(&query, promised), Err(CallbackError::Issuer(IssError::Different)), "{iss}");
        }
    }
    assert_eq!(read_with("code=c&state=s3cret", true), Err(CallbackError::Issuer(IssError::Missing)));
    assert_eq!(read_with("code=c&state=s3cret", false).unwrap(), "c");
}

/// O68: nothing of an error is shown where `iss` does not hold.
#[test]
fn an_error_of_another_issuer_is_not_shown() {
    let query = "state=s3cret&error=access_denied&error_description=call+this+number&iss=x";
    let error = read(query).unwrap_err();
    assert_eq!(error, CallbackError::Issuer(IssError::Different));
    assert!(!error.to_string().contains("number") && !error.to_string().contains("denied"));
    assert_eq!(
        read_with("state=s3cret&error=access_denied", true),
        Err(CallbackError::Issuer(IssError::Missing))
    );

    let shown = read(&format!(
        "state=s3cret&error=access_denied&error_description=no%0A%1b%5B2J{}&{ISS}",
        "x".repeat(999)
    ));
    let Err(CallbackError::Refused(error)) = shown else { panic!("{shown:?}") };
    assert_eq!(error.code, "access_denied");
    let description = error.description.unwrap();
    assert!(description.starts_with("no  [2Jxxx") && description.chars().count() <= 201, "{description}");
}

/// O69: each parameter may be there once.
#[test]
fn parameters_are_there_once() {
    for (query, name) in [
        ("code=a&code=b&state=s3cret", "code"),
        ("error=a&error=b&state=s3cret", "error"),
        ("code=a&state=s3cret&iss=x&iss=y", "iss"),
    ] {
        assert_eq!(read(query), Err(CallbackError::Repeated(name)), "{query}");
    }
    assert!(
        matches!(read("code=c&error=x&state=s3cret"), Err(CallbackError::Refused(_))),
        "an error is no success"
    );
}

/// O65: what cannot be read is refused in bounded work.
#[test]
fn broken_callbacks_are_refused() {
    assert_eq!(read("state=s3cret"), Err(CallbackError::NoCode));
    assert_eq!(read("state=s3cret&code="), Err(CallbackError::NoCode));
    for query in [
        "state=s3cret&code=%zz",
        "state=s3cret&code=%f",
        "state=s3cret&code=%ff",
        &"a=b&".repeat(100),
        &"x".repeat(20_000),
    ] {
        assert_eq!(read(query), Err(CallbackError::Malformed), "{query:.30}");
    }
}

/// O61: the challenge of the published example (RFC 7636, appendix B), from a verifier of 43 characters.
#[test]
fn the_challenge_is_the_digest_of_the_verifier() {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    assert_eq!(challenge_of(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    let own = Verifier::from_random([7; 32]);
    assert_eq!(own.secret().expose().len(), 43);
    assert_eq!(own.challenge(), challenge_of(own.secret().expose()));
    assert!(!format!("{own:?}").contains(own.secret().expose()));
}
