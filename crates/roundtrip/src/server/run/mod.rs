//! Run of a call: polls its handler, sends its notifications, ends its round.

pub(crate) mod hook;
pub(crate) mod in_flight;
pub(crate) mod outbox;
pub(crate) mod runner;
pub(crate) mod subscription;

pub use hook::{CallInfo, Next};
pub use in_flight::{Event, InFlight};
