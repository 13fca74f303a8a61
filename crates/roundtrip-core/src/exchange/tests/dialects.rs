//! Tasks in SEP-2322's dialect, whatever their server says.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Action, Exchange, TaskDialect};
use super::{call, done, people, reply};
use crate::error::Error;
use crate::wire::{CallTool, ErrorObject, INVALID_PARAMS};

/// An answer of the server, as far as the request can have it.
#[derive(Debug, Clone, Copy)]
enum Said {
    Working,
    InputRequired,
    Asks,
    Refused(i64),
}

fn said() -> impl Strategy<Value = Said> {
    let refused = prop_oneof![Just(INVALID_PARAMS), Just(503)].prop_map(Said::Refused);
    prop_oneof![Just(Said::Working), Just(Said::InputRequired), Just(Said::Asks), refused]
}

fn bare(status: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "ttl": null, "pollInterval": 0,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
    })
}

/// Takes what the server has said to a request.
fn take(exchange: Exchange<CallTool>, said: Said) -> Result<Action<CallTool>, Error> {
    assert_eq!(exchange.dialect(), Some(TaskDialect::Sep2322));
    let result = match (exchange.method(), said) {
        ("tasks/get", Said::Working) => bare("working"),
        ("tasks/get", _) => bare("input_required"),
        (_, Said::Refused(code)) => {
            let error = exchange.failed(Error::from(ErrorObject::new(code, "no")));
            return exchange.refused(error);
        }
        ("tasks/input_response", _) => json!({ "resultType": "complete" }),
        (_, Said::Asks) => json!({ "resultType": "input_required", "inputRequests": { "a": people() } }),
        (_, Said::Working | Said::InputRequired) => {
            json!({ "resultType": "input_required", "requestState": "s" })
        }
    };
    reply(exchange, result)
}

fn created() -> Exchange<CallTool> {
    let mut exchange = call();
    exchange.ask_for_task(None);
    match reply(exchange, json!({ "resultType": "complete", "task": bare("working") })) {
        Ok(Action::Wait(task)) => task.poll(),
        other => panic!("a task, not {other:?}"),
    }
}

/// T26: a call that asked for a task may have a result at once.
#[test]
fn a_call_that_asked_for_a_task_may_be_done() {
    let mut exchange = call();
    exchange.ask_for_task(Some(Duration::from_secs(60)));
    assert!(matches!(reply(exchange, done()), Ok(Action::Done(_))));
}

proptest! {
    /// C5, C6, T26: whatever the server says, no task is asked about without a pause for long, and no user is asked more often than
    /// allowed.
    #[test]
    fn no_task_is_asked_about_in_haste(said in vec(said(), 1..7)) {
        let (mut exchange, mut slept, mut asked) = (created(), Duration::ZERO, 0);
        for said in said.iter().cycle().take(300) {
            exchange = match take(exchange, *said) {
                Ok(Action::Wait(task)) => {
                    slept += task.pause_after(Duration::ZERO);
                    task.poll()
                }
                Ok(Action::Ask(pending)) => {
                    asked += 1;
                    pending.answer("a", json!({ "people": 2 })).and_then(super::Pending::resume).expect("fits")
                }
                Ok(other) => panic!("it has no end: {other:?}"),
                Err(Error::GaveUp(_) | Error::Rejected(_)) => return Ok(()),
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            };
            prop_assert!(asked <= 10);
        }
        prop_assert!(slept >= Duration::from_millis(300 / 4 * 50), "{slept:?}");
    }
}
