//! Run of a call: the handler, the end of its round, its events.

pub(crate) mod commitment;
pub(crate) mod in_flight;
pub(crate) mod runner;
pub(crate) mod span;

pub use in_flight::{Event, InFlight};
