//! The specification as tests, a file for each part of it. Every test names the rule it shows; `SPEC.md` is made
//! from these names.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

mod answers;
mod asked;
mod asking;
#[cfg(feature = "authorize")]
mod authorize;
mod buffered;
mod by_hand;
mod by_name;
mod checked_questions;
mod clocks;
mod elicitation;
#[cfg(feature = "legacy")]
mod eras;
mod fleet;
#[cfg(all(feature = "chrono", feature = "jiff", feature = "time", feature = "url", feature = "uuid"))]
mod form_fields;
mod framing;
mod handler_errors;
mod heads;
mod hooks;
mod http;
mod keys;
mod ledger;
mod lists;
#[path = "../common/logged.rs"]
mod logged;
mod may;
mod messages;
#[cfg(not(feature = "legacy"))]
mod modern_only;
mod mrtr_server;
mod notifications;
mod panics;
#[cfg_attr(not(feature = "legacy"), expect(dead_code, reason = "most of it is for sessions"))]
mod peers;
mod rates;
mod replays;
mod resolve;
mod robustness;
mod rounds_told;
#[cfg(feature = "validation")]
mod schemas;
mod scripts;
mod seal;
mod seps;
mod server;
mod shares;
mod slow_clients;
mod stdio;
mod steps;
mod streaming;
mod support;
mod tasks;
mod tracing_spans;
mod visibility;
mod waiting;
