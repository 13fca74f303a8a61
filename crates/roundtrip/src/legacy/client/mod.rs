//! The client's side: old servers, made to look like modern ones.
//!
//! The [`EraClient`] stands between the client and an edge. It finds out once which era a server belongs to. What goes to a
//! modern server passes through untouched; what goes to an old one is put into the old words, and what comes of it back
//! into the modern ones. A request of the server's own that arrives while a call is under way becomes the questions of
//! a round: the call stays open in here, and its handle is the round's state. The retry brings the answers to the call
//! that waits for them, so the rest of the client never learns which era it talks to.

mod call;
mod closing;
mod detect;
mod era_client;
mod link;
mod listen;
mod open_calls;
mod questions;
mod request;
mod server_request;
mod session;
mod translate;

pub(crate) use era_client::EraClient;
pub(crate) use link::{Failure, Link, Refusal};
