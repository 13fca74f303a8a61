//! Servers: their offers, their handlers, and the way of a request through them.
//!
//! This module knows nothing of bytes, sockets or clients. Transports decode a message, hand it to an [`Endpoint`],
//! and poll the [`InFlight`] call they get back.

mod budget;
mod builder;
mod clock;
mod deferred;
mod endpoint;
mod handler;
mod keyring;
pub mod ledger;
mod limits;
mod methods;
mod offer;
mod outcome;
mod peer;
mod round;
mod run;

pub use builder::{Listed, Server};
pub use endpoint::Endpoint;
pub use handler::{
    Args, Call, Caller, Extension, FromCall, Function, HandlerResult, IntoFailure, IntoReply, Json, Log,
    Parameter, Parameters, Progress, ProgressStep, ReadAt, Rejection, Reply, State, ToolError, Uri,
};
pub use keyring::{Keyring, KeysError};
pub use ledger::{Ledger, MemoryLedger};
pub use limits::Limits;
pub use offer::{
    Cache, Catalog, Needs, Offer, Partial, Prompt, Resource, ResourceTemplate, ServeError, SetupError, Tool,
};
pub use outcome::Outcome;
pub use peer::{Listens, Peer, Principal};
pub use round::{
    Answered, Ask, AskError, Asked, Asking, Delivery, LiveEvent, LiveQuestions, May, Round, Step,
};
pub use run::{CallInfo, Event, InFlight, Next};

pub(crate) use budget::{Budget, Owner, Reservation};
pub(crate) use clock::random;
pub(crate) use endpoint::SUPPORTED;
pub(crate) use outcome::{given_up, panicked};
pub(crate) use round::{Disagreement, Trace, is_in_step};
pub(crate) use run::Subscription;
