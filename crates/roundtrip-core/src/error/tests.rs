//! Texts of errors.

use std::error::Error as _;

use serde_json::json;

use super::*;

#[derive(Debug, thiserror::Error)]
#[error("the terminal is gone")]
struct Gone(#[source] std::num::ParseIntError);

fn gone() -> Gone {
    Gone("x".parse::<u8>().expect_err("no number"))
}

#[test]
fn debug_is_the_text_with_its_sources() {
    let error = Error::from(GaveUp::TooManyRounds { method: "tools/call", rounds: 3, allowed: 3 });
    assert_eq!(format!("{error:?}"), "gave up: `tools/call` asks again after 3 rounds, and 3 are allowed");
    assert_eq!(
        format!("{:?}", Error::handler(gone())),
        "the terminal is gone\n\nCaused by:\n    invalid digit found in string"
    );
}

#[test]
fn no_source_repeats_the_text() {
    let cause = Some(Box::from("connection refused"));
    let why = Unreachable::NoConnection("cannot reach x: connection refused".to_owned());
    for error in [
        Error::Unreachable { why, sent: Sent::No, cause },
        ErrorObject::new(7, "no").into(),
        PeerMisbehaved::RepeatedCursor { method: "tools/list" }.into(),
        HttpRefusal::new(http::StatusCode::UNAUTHORIZED, http::HeaderMap::new()).into(),
    ] {
        assert!(error.source().is_none(), "{error}");
    }
    let handler = Error::handler(gone());
    assert_eq!(handler.to_string(), "the terminal is gone");
    assert_eq!(handler.source().map(ToString::to_string).as_deref(), Some("invalid digit found in string"));
}

#[test]
fn an_error_of_our_own_in_a_handler_stays_as_it_is() {
    assert!(matches!(Error::handler(Error::Closed), Error::Closed));
    let boxed: Box<dyn StdError + Send + Sync> = Box::new(Error::from(PeerIncompatible::NoChanges));
    assert!(matches!(Error::handler(boxed), Error::PeerIncompatible(PeerIncompatible::NoChanges)));
}

#[test]
fn rejections_are_sorted_by_code_and_reason() {
    let rejection = |code, reason: &str| {
        ServerRejection::from(ErrorObject::new(code, "no").with_data(json!({ "reason": reason })))
    };
    assert!(matches!(rejection(-32602, "invalid_request_state"), ServerRejection::StateRejected(_)));
    assert!(matches!(rejection(-32602, "other"), ServerRejection::Other(_)));
    assert!(matches!(rejection(-32603, "invalid_request_state"), ServerRejection::Other(_)));
    assert!(matches!(rejection(DECLINED, "declined"), ServerRejection::Declined(_)));
    assert!(matches!(rejection(DECLINED, "cancelled"), ServerRejection::Declined(_)));
    assert!(matches!(
        ServerRejection::from(ErrorObject::new(DECLINED, "forbidden")),
        ServerRejection::Other(_)
    ));
}

#[test]
fn errors_stay_small() {
    assert!(size_of::<Error>() <= 96, "{} bytes", size_of::<Error>());
}
