//! Tasks of a server: calls that go on after their reply.
//!
//! A call becomes a task at once, after a while, or where its handler says so ([`promotion`]). From then on it is run under a
//! [`Lease`](lease::Lease) of the store, which keeps its journal at every step and every question. A process that dies loses its
//! leases, and the workers of any other ([`worker`]) continue from the journal.

mod adoption;
mod announcer;
mod announcing;
pub(crate) mod bare_requests;
pub(crate) mod caller;
pub(crate) mod config;
pub(crate) mod dialect;
pub(crate) mod errors;
mod held;
pub(crate) mod kept_extension;
pub(crate) mod lease;
pub(crate) mod part_sender;
mod places;
pub(crate) mod promotion;
mod renewal;
pub(crate) mod request_state;
pub(crate) mod requests;
mod resting;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod service;
mod start;
mod sweep;
mod validity;
mod waiting;
mod worker;

pub use config::Tasks;
