//! Properties that hold whatever a server replies.

use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{Action, Exchange, FlowLimits};
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

/// Rounds of a flow so far, and how many of them asked.
#[derive(Default)]
struct Count {
    rounds: u32,
    asking: u32,
}

/// Plays a round up to the next request, by way of storage. Fails where the flow ends.
fn play(exchange: Exchange<CallTool>, round: &Round, count: &mut Count) -> Result<Exchange<CallTool>, Error> {
    count.rounds += 1;
    let pending = match exchange.reply(round.result().as_ref(), Duration::ZERO)? {
        Action::Ask(mut pending) => {
            assert!(!round.questions.is_empty());
            count.asking += 1;
            for (key, people) in &round.questions {
                pending = match people {
                    1..=12 => pending.answer(key, json!({ "people": people }))?,
                    _ => pending.decline(key)?,
                };
            }
            pending
        }
        Action::Pause(pause, pending) => {
            assert!(round.questions.is_empty() && pause <= Duration::from_secs(2));
            pending
        }
        other @ (Action::Done(_) | Action::Wait(_)) => panic!("not done: {other:?}"),
    };
    assert_eq!(pending.round(), count.rounds);
    let stored = serde_json::to_string(&pending).expect("serialises");
    serde_json::from_str::<super::Pending>(&stored).expect("what was stored").resume()
}

proptest! {
    /// C2, C3, C4: whatever was asked before, a retry has the original parameters, the state of the last round or
    /// none, and the answers to the last round or none.
    #[test]
    fn a_retry_is_the_call_and_the_last_round(rounds in vec(round(), 0..8)) {
        let mut exchange = call().limits(FlowLimits { rounds: 99, ..FlowLimits::default() });
        let (original, mut count) = (sent(&exchange), Count::default());
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
        let limits = FlowLimits { rounds: most, ..FlowLimits::default() };
        let (mut exchange, mut count) = (call().limits(limits), Count::default());
        for round in &rounds {
            let nothing = round.questions.is_empty() && round.state.is_none();
            match play(exchange, round, &mut count) {
                Ok(next) => exchange = next,
                Err(Error::PeerMisbehaved(_)) => {
                    prop_assert!(nothing);
                    return Ok(());
                }
                Err(Error::GaveUp(_)) => {
                    prop_assert!(!round.questions.is_empty() && count.asking == most);
                    return Ok(());
                }
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
            prop_assert!(!nothing && count.asking <= most);
        }
    }

    /// No reply makes the machine panic.
    #[test]
    fn any_reply_is_an_action_or_an_error(result in "[{}\\[\\]\":,a-z_]{0,60}", took in any::<u64>()) {
        if let Ok(raw) = serde_json::from_str::<Raw>(&result) {
            let _ = call().reply(raw.as_ref(), Duration::from_secs(took));
        }
    }
}
