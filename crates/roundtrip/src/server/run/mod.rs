//! Running a call: its handler is polled, its notifications are sent, its round ends.

pub(crate) mod hook;
pub(crate) mod in_flight;
pub(crate) mod outbox;
pub(crate) mod runner;
pub(crate) mod subscription;

pub use hook::{CallInfo, Next};
pub use in_flight::{Event, InFlight};

pub(crate) use subscription::Subscription;
