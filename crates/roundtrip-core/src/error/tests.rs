//! Texts of errors.

use std::error::Error as _;

use serde_json::json;

use super::*;
use crate::exchange::Answer;
use crate::wire::{CallToolResult, ElicitSchema};

#[derive(Debug, thiserror::Error)]
#[error("the terminal is gone")]
struct Gone(#[source] std::num::ParseIntError);

fn book() -> RequestName {
    RequestName::new("tools/call", Some("book".to_owned()))
}

fn gone() -> Gone {
    Gone("x".parse::<u8>().expect_err("no number"))
}

#[test]
fn debug_is_the_text_with_its_sources() {
    let error = Error::from(GaveUp::TooManyRounds { request: book(), rounds: 3, allowed: 3 });
    assert_eq!(
        format!("{error:?}"),
        "gave up: `tools/call` of `book` asks again after 3 rounds, and 3 are allowed"
    );
    assert_eq!(
        format!("{:?}", Error::handler(gone())),
        "the terminal is gone\n\nCaused by:\n    invalid digit found in string"
    );
}

#[test]
fn a_request_without_a_name_is_its_method() {
    assert_eq!(book().to_string(), "`tools/call` of `book`");
    assert_eq!(RequestName::new("tools/call", Some(String::new())).to_string(), "`tools/call`");
}

/// One error of every kind.
fn every_kind() -> Vec<Error> {
    let cause = Some(Box::from("connection refused"));
    let why = Unreachable::NoConnection("cannot reach x: connection refused".to_owned());
    let failed = CallToolResult { is_error: Some(true), ..CallToolResult::default() };
    let misfit = Answer::fill(&people(), json!({ "people": "many" })).expect_err("no number");
    vec![
        ApiMisuse::Unanswered { keys: vec!["party".to_owned()] }.into(),
        PeerIncompatible::NoChanges.into(),
        PeerMisbehaved::RepeatedCursor { method: "tools/list" }.into(),
        ErrorObject::new(7, "no").into(),
        HttpRefusal::new(http::StatusCode::UNAUTHORIZED, http::HeaderMap::new()).into(),
        Error::Unreachable { why, sent: Sent::No, cause },
        GaveUp::TooManyOpenCalls { allowed: 256 }.into(),
        TaskError::Cancelled { request: book(), message: None }.into(),
        failed.into_result().expect_err("failed").into(),
        Error::Closed,
        Error::timeout(book(), Duration::from_secs(1)),
        Error::handler(misfit),
        Error::handler(gone()),
    ]
}

fn people() -> ElicitSchema {
    let fields = json!({ "type": "object", "properties": { "people": { "type": "integer" } } });
    serde_json::from_value(fields).expect("a schema")
}

#[test]
fn no_error_of_a_chain_repeats_another() {
    for error in every_kind() {
        let mut said = vec![error.to_string()];
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            assert!(!said.iter().any(|earlier| earlier.contains(&text)), "{text:?} after {said:?}");
            said.push(text);
            source = cause.source();
        }
    }
    let handler = Error::handler(gone());
    assert_eq!(handler.to_string(), "the terminal is gone");
    assert_eq!(handler.source().map(ToString::to_string).as_deref(), Some("invalid digit found in string"));
}

#[test]
fn errors_of_a_connection_name_the_request_and_its_fate() {
    let unreachable = |sent| Error::unreachable(Unreachable::Broken("it broke".to_owned()), sent);
    assert_eq!(
        unreachable(Sent::Maybe).about(&book()).to_string(),
        "`tools/call` of `book` got no answer: it broke"
    );
    assert_eq!(
        unreachable(Sent::No).about(&"tools/list".into()).to_string(),
        "`tools/list` was not sent: it broke"
    );
    let timeout = Error::timeout(book(), Duration::from_secs(9));
    assert_eq!(timeout.to_string(), "no answer to `tools/call` of `book` within 9s");
}

/// Our own refusals say that nothing was sent; those of the server say that it answered.
#[test]
fn our_refusals_are_told_from_the_servers() {
    let ours = [
        Error::from(ApiMisuse::Settings("x".to_owned())),
        ApiMisuse::Unserializable("x".to_owned()).into(),
        ApiMisuse::ReservedMeta("x".to_owned()).into(),
        ApiMisuse::Header("x".to_owned()).into(),
        ApiMisuse::NotAsked { method: "tools/call", key: "x".to_owned() }.into(),
        ApiMisuse::UnfitAnswer("x".to_owned()).into(),
        ApiMisuse::Unanswered { keys: vec!["x".to_owned()] }.into(),
        ApiMisuse::CallNotOpen("x".to_owned()).into(),
    ];
    for error in ours {
        assert!(error.to_string().starts_with("not sent: "), "{error}");
    }
    assert_eq!(Error::from(ErrorObject::new(7, "no")).to_string(), "the server answered: no (7)");
    let mut refusal = HttpRefusal::new(http::StatusCode::NOT_FOUND, http::HeaderMap::new());
    refusal.url = Some("https://x.example/mcp".to_owned());
    let text = "the server at https://x.example/mcp answered HTTP 404 Not Found and no body";
    assert_eq!(Error::from(refusal).to_string(), text);
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
