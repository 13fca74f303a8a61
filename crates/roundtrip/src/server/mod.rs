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
#[cfg(feature = "legacy")]
mod handshake;
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
    Answer, Args, Call, Caller, Extension, FromCall, Function, IntoFailure, IntoReply, Json, Log, Parameter,
    Parameters, Progress, ProgressStep, ReadAt, Rejection, Reply, State, ToolError, Uri,
};
#[cfg(feature = "legacy")]
pub use handshake::Handshake;
pub use keyring::{Keyring, KeysError};
pub use ledger::{Ledger, MemoryLedger};
pub use limits::Limits;
pub use offer::{
    Cache, Catalog, Needs, Offer, Partial, Prompt, Resource, ResourceTemplate, ServeError, SetupError, Tool,
};
pub use outcome::Outcome;
pub use peer::{Listens, Peer, Principal};
pub use round::{
    Answered, Ask, AskError, Asked, Asking, Consent, Content, Delivery, FormOf, LiveQuestion, LiveQuestions,
    May, Message, Optional, Plain, Read, Refusals, Roots, Round, Step, ThreeWay, YesOrNo,
};
pub use run::{CallInfo, Event, InFlight, Next};

pub(crate) use budget::{Budget, Owner, Reservation};
pub(crate) use endpoint::{SUPPORTED, refuse_handshake};
pub(crate) use outcome::panicked;
pub(crate) use round::{Disagreement, Trace, is_in_step};
#[cfg(feature = "legacy")]
pub(crate) use {
    clock::random, endpoint::INITIALIZE, handshake::Served, outcome::given_up,
    run::subscription::Subscription,
};
