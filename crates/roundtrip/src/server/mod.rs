//! Servers: what they offer, how handlers are written, and how a request becomes a call.
//!
//! This room knows nothing of bytes, sockets or clients. Transports decode a message, hand it to an [`Endpoint`],
//! and poll the [`InFlight`] call they get back.

mod ask;
mod budget;
mod builder;
mod call;
mod catalog;
mod completer;
mod dispatch;
mod endpoint;
mod extract;
mod handler;
mod hook;
mod in_flight;
mod keyring;
pub mod ledger;
mod list;
mod outbox;
mod prompt;
mod reply;
mod resource;
mod run;
mod setup;
mod strings;
mod subscription;
mod tool;
mod traffic;
mod uri_template;

pub use ask::Step as OnceStep;
pub use ask::{
    Answered, Ask, AskError, Asked, Asking, Consent, Content, FormOf, May, Message, OpenLine, Optional,
    Plain, Query, Questions, Read, Refusals, Roots, Round, ThreeWay, YesOrNo,
};
pub use builder::{Limits, Listed, Server};
pub use call::{Call, Listens, Peer, Principal, Rejection};
pub use catalog::{Catalog, Offer};
pub use completer::Partial;
pub use endpoint::Endpoint;
pub use extract::{Args, Caller, Extension, FromCall, Log, Progress, State, Step, Uri};
pub use handler::{Function, Parameter, Parameters};
pub use hook::{CallInfo, Next, Outcome};
pub use in_flight::{Event, InFlight};
pub use keyring::{Keyring, KeysError};
pub use ledger::{Ledger, MemoryLedger};
pub use list::Cache;
pub use prompt::Prompt;
pub use reply::{Answer, IntoFailure, IntoReply, Json, ReadAt, Reply, ToolError};
pub use resource::{Resource, ResourceTemplate};
pub use setup::{Needs, ServeError, SetupError};
pub use tool::Tool;

pub(crate) use ask::{Disagreement, Trace, is_in_step, random};
pub(crate) use budget::{Budget, Owner, Reservation};
pub(crate) use endpoint::SUPPORTED;
pub(crate) use run::{given_up, panicked};
pub(crate) use subscription::Subscription;
