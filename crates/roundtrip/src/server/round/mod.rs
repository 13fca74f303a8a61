//! Rounds of a flow: questions, answers, steps, and the suspension of a handler.
//!
//! A question is a future. If the journal has its answer it is ready at once; if not, the question is recorded in the
//! [`RoundState`] and the future stays pending. The call's runner sees a handler that waits for nothing but answers,
//! drops it, and replies `input_required`, with every recorded question in `inputRequests` and the sealed journal in
//! `requestState`. So nothing in user code can catch, swallow or retry a suspension: there is nothing to catch. A client
//! of the handshake eras is asked while the call runs: the question is sent through [`LiveQuestions`] instead, and the
//! future is ready once its answer has arrived.

mod ask;
mod asked;
mod asking;
mod by_hand;
mod error;
mod flow;
mod input;
mod live;
mod once;
mod open;
mod read;
mod state;
mod trace;

pub use ask::{Ask, May};
pub use asked::Asked;
pub use asking::Asking;
pub use by_hand::Round;
pub use error::AskError;
pub use live::{Delivery, LiveEvent, LiveQuestions};
pub use once::Step;
pub use roundtrip_core::round::Answered;

pub(crate) use flow::{Flow, FlowConfig};
pub(crate) use input::RoundInput;
pub(crate) use open::OpenedState;
pub(crate) use state::{RoundState, Suspended};
pub(crate) use trace::{Disagreement, Trace, is_in_step};
