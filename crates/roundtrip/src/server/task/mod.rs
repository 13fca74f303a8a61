//! Tasks of a server: calls that go on after their reply.
//!
//! A call becomes a task at once, after a while, or where its handler says so ([`promotion`]). From then on it is run under a
//! [`Lease`](lease::Lease) of the store, which keeps its journal at every step and every question. A process that dies loses its
//! leases, and the workers of any other ([`service`]) carry on from the journal.

pub(crate) mod bare_requests;
pub(crate) mod caller;
pub(crate) mod config;
pub(crate) mod dialect;
pub(crate) mod errors;
pub(crate) mod kept_extension;
pub(crate) mod lease;
pub(crate) mod part_sender;
pub(crate) mod promotion;
pub(crate) mod request_state;
pub(crate) mod requests;
pub(crate) mod run;
pub(crate) mod service;
mod sweep;
mod waiting;

pub use config::Tasks;
