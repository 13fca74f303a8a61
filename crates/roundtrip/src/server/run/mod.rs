//! Run of a call: hooks, the handler, the end of its round, its events.

pub(crate) mod hook;
pub(crate) mod in_flight;
pub(crate) mod runner;

pub use hook::{CallInfo, Next};
pub use in_flight::{Event, InFlight};
