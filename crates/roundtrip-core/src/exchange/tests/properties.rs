//! Properties that hold whatever a server replies.

use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{Exchange, Limits, Step};
use super::{call, people, sent};
use crate::error::Error;
use crate::wire::{CallTool, Raw};

/// A round: its questions by key with their answers, and its state.
#[derive(Debug, Clone)]
struct Round {
    questions: std::collections::BTreeMap<String, u8>,
    state: Option<String>,
}

fn round() -> impl Strategy<Value = Round> {
    (btree_map(".{0,6}", any::<u8>(), 0..4), option::of(".{0,40}"))
        .prop_map(|(questions, state)| Round { questions, state })
}

impl Round {
    fn result(&self) -> Raw {
        let mut result = json!({ "resultType": "input_required" });
        if !self.questions.is_empty() {
            result["inputRequests"] =
                self.questions.keys().map(|key| (key.clone(), people())).collect::<Map<_, _>>().into();
        }
        if let Some(state) = &self.state {
            result["requestState"] = json!(state);
        }
        result.into()
    }

    fn answers(&self) -> Option<Value> {
        let answer = |people: &u8| match people {
            1..=12 => json!({ "action": "accept", "content": { "people": people, "window": true } }),
            _ => json!({ "action": "decline" }),
        };
        let answers: Map<_, _> =
            self.questions.iter().map(|(key, people)| (key.clone(), answer(people))).collect();
        (!answers.is_empty()).then(|| answers.into())
    }
}

/// Plays a round up to the next request, by way of storage; `None` where the flow ended, as it must.
fn play(exchange: Exchange<CallTool>, round: &Round, rounds: &mut u32) -> Result<Exchange<CallTool>, Error> {
    let pending = match exchange.reply(round.result().as_ref(), Duration::ZERO)? {
        Step::Ask(mut pending) => {
            assert!(!round.questions.is_empty());
            *rounds += 1;
            assert_eq!(pending.round(), *rounds);
            for (key, people) in &round.questions {
                pending = match people {
                    1..=12 => pending.answer(key, json!({ "people": people }))?,
                    _ => pending.decline(key)?,
                };
            }
            pending
        }
        Step::Pause(pause, pending) => {
            assert!(round.questions.is_empty() && pause <= Duration::from_secs(2));
            pending
        }
        Step::Done(result) => panic!("not done: {result:?}"),
    };
    let stored = serde_json::to_string(&pending).expect("serialises");
    serde_json::from_str::<super::Pending>(&stored).expect("what was stored").resume()
}

proptest! {
    /// C2, C3, C4: whatever was asked before, a retry has the original parameters, the state of the last round or
    /// none, and the answers to the last round or none.
    #[test]
    fn a_retry_is_the_call_and_the_last_round(rounds in vec(round(), 0..8)) {
        let mut exchange = call().limits(Limits { rounds: 99, ..Limits::default() });
        let (original, mut count) = (sent(&exchange), 0);
        for round in rounds.iter().filter(|round| !round.questions.is_empty() || round.state.is_some()) {
            exchange = play(exchange, round, &mut count).expect("a flow that goes on");
            let mut expected = original.clone();
            if let Some(answers) = round.answers() {
                expected["inputResponses"] = answers;
            }
            if let Some(state) = &round.state {
                expected["requestState"] = json!(state);
            }
            prop_assert_eq!(sent(&exchange), expected);
        }
    }

    /// C5, C6: a flow ends whatever the server says: after as many rounds that ask as are allowed, or after as long a
    /// wait. Neither uses up the other.
    #[test]
    fn every_flow_ends(rounds in vec(round(), 1..40), most in 0_u32..12) {
        let limits = Limits { rounds: most, ..Limits::default() };
        let (mut exchange, mut count) = (call().limits(limits), 0);
        for round in &rounds {
            let nothing = round.questions.is_empty() && round.state.is_none();
            match play(exchange, round, &mut count) {
                Ok(next) => exchange = next,
                Err(Error::PeerMisbehaved(_)) => {
                    prop_assert!(nothing);
                    return Ok(());
                }
                Err(Error::GaveUp(_)) => {
                    prop_assert!(!round.questions.is_empty() && count == most);
                    return Ok(());
                }
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
            prop_assert!(!nothing && count <= most);
        }
    }

    /// No reply makes the machine panic.
    #[test]
    fn any_reply_is_a_step_or_an_error(result in "[{}\\[\\]\":,a-z_]{0,60}", took in any::<u64>()) {
        if let Ok(raw) = serde_json::from_str::<Raw>(&result) {
            let _ = call().reply(raw.as_ref(), Duration::from_secs(took));
        }
    }
}
