//! Servers: their offers, their handlers, and the way of a request through them.
//!
//! This module knows nothing of bytes, sockets or clients. Transports decode a message, hand it to an [`Endpoint`],
//! and poll the [`InFlight`] call they get back.

mod access;
mod budget;
mod builder;
mod cache;
mod clock;
mod deferred;
mod delivery;
mod endpoint;
mod handler;
#[cfg(feature = "legacy")]
mod handshake;
mod hook;
mod keyring;
pub mod ledger;
mod limits;
mod methods;
mod notify;
mod offer;
mod outcome;
mod peer;
pub mod rate;
mod round;
mod run;
mod started;
mod target;
mod task;
mod task_methods;
mod tool_work;
mod when;

pub use access::Access;
pub use builder::{Listed, Server};
pub use cache::Cache;
pub use delivery::{AskKind, CannotAsk, Delivery, LiveQuestion, LiveQuestions, Reentry};
pub use endpoint::Endpoint;
pub use handler::{
    Args, Ask, Asked, Asking, Call, Caller, Extension, FromCall, Function, HandlerResult, IntoFailure,
    IntoReply, Json, JsonWithText, Log, May, Needs, Parameter, Parameters, Parts, Progress, ProgressStep,
    ReadAt, Rejection, Reply, Resolve, ResolveFrom, Resolved, Round, State, Status, Step, ToolError, Uri,
};
#[cfg(feature = "legacy")]
pub use handshake::Handshake;
pub use hook::{CallInfo, Next, Viewer};
pub use keyring::{Keyring, KeysError};
pub use ledger::{Ledger, MemoryLedger};
pub use limits::Limits;
pub use offer::{
    Catalog, Group, Offer, Partial, Prompt, Resource, ResourceTemplate, ServeError, SetupError, Tool,
};
pub use outcome::Outcome;
pub use peer::{Listens, Peer, Principal};
pub use rate::RateLimit;
pub use round::AskError;
pub use roundtrip_core::auth::{Claims, ScopeSet};
pub use roundtrip_core::round::{
    Answered, Askable, AskedAs, Page, QuestionKind, Roots, Sampled, Samples, Visited, Visits,
};
pub use run::{Event, InFlight};
pub use task::Tasks;
pub use when::When;

#[cfg(feature = "authorize")]
pub(crate) use access::ScopeRules;
pub(crate) use budget::{Budget, Owner, Reservation};
pub(crate) use endpoint::refuse_handshake;
#[cfg(feature = "legacy")]
pub(crate) use hook::HeldViewer;
pub(crate) use outcome::panicked;
pub(crate) use round::{AskedAgain, Disagreement, Trace, is_in_step};
pub(crate) use started::SUPPORTED;
#[cfg(feature = "legacy")]
pub(crate) use {
    clock::now, clock::random, delivery::pause_after, endpoint::INITIALIZE, handshake::Served,
    handshake::YEAR, notify::subscription::Subscription, outcome::given_up,
};
