//! Rounds of a flow: their state, from the `requestState` they begin with to the one they end with.
//!
//! A question is a future. If the journal has its answer it is ready at once; if not, the question is recorded in the
//! [`RoundState`] and the future stays pending. The call's runner sees a handler that waits for nothing but answers,
//! drops it, and replies `input_required`, with every recorded question in `inputRequests` and the sealed journal in
//! `requestState`. So nothing in user code can catch, swallow or retry a suspension: there is nothing to catch. A client
//! of the handshake eras is asked while the call runs: its transport sends the question
//! ([`LiveQuestions`](super::LiveQuestions)), and the future is ready once the answer has arrived.
//!
//! Handlers meet a round through their parameters: `Ask`, `Asked`, `Resolved` and `Round` are in `handler`, one floor up.

mod error;
mod flow;
mod input;
mod keeper;
mod open;
mod shown;
mod state;
mod trace;

pub use error::AskError;

pub(crate) use flow::{Flow, FlowConfig, OpenedState};
pub(crate) use input::RoundInput;
pub(crate) use keeper::{Keeper, Moment, ParkedRound, Pieces, ShownQuestions};
pub(crate) use open::AskingRequest;
pub(crate) use state::{Begun, Parked, RoundState, Suspended};
pub(crate) use trace::{AskedAgain, Branch, Disagreement, Trace, in_step, is_in_step};
