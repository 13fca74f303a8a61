//! Asking: how a handler stops, and how whoever receives the answer carries on.
//!
//! A question is a future. When the journal has its answer it is ready at once; when it has not, the question goes
//! on the [`RoundState`] and the future stays pending. The call's runner sees a handler that waits for nothing but answers,
//! drops it, and replies with every question on the table and the sealed journal. So nothing in user code can catch,
//! swallow or retry a suspension: there is nothing to catch. Where the peer can be asked while a call runs, the question
//! goes out over an [`LiveQuestions`] instead, and the future is ready once its answer has come.

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
mod state;
mod trace;

pub use ask::{Ask, May};
pub use asked::Asked;
pub use asking::{
    Asking, Consent, Content, FormOf, Message, Optional, Plain, Read, Refusals, Roots, ThreeWay, YesOrNo,
};
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
