//! Asking: how a handler stops, and how whoever receives the answer carries on.
//!
//! A question is a future. When the journal has its answer it is ready at once; when it has not, the question goes
//! on the [`Table`] and the future stays pending. The call's runner sees a handler that waits for nothing but answers,
//! drops it, and replies with every question on the table and the sealed journal. So nothing in user code can catch,
//! swallow or retry a suspension: there is nothing to catch. Where the peer can be asked while a call runs, the question
//! goes out over an [`OpenLine`] instead, and the future is ready once its answer has come.

mod asked;
mod error;
mod handle;
mod line;
mod once;
mod opening;
mod pending;
mod round;
mod runner;
mod start;
mod table;
mod trace;

pub use asked::Asked;
pub use error::AskError;
pub use handle::{Ask, May};
pub use line::{OpenLine, Query, Questions};
pub use once::Step;
pub use pending::{
    Asking, Consent, Content, FormOf, Message, Optional, Plain, Read, Refusals, Roots, ThreeWay, YesOrNo,
};
pub use round::Round;
pub use roundtrip_core::round::Answered;

pub(crate) use opening::{Begin, PutOff};
pub(crate) use runner::{Flow, Flows, now, random};
pub(crate) use start::{BoundArguments, Start};
pub(crate) use table::{Suspended, Table};
pub(crate) use trace::{Disagreement, Trace, is_in_step};
