//! Client side of the handshake eras: makes legacy servers look like modern ones.
//!
//! The [`EraClient`] stands between the client and an edge. It detects the era of a server once. Requests to a modern
//! server pass through unchanged; requests to a legacy server are translated, and their outcomes translated back. A
//! question that the server sends during a call becomes an `input_required` round: the call stays open in here, and
//! its handle is the `requestState`. The retry brings the `inputResponses` to the open call, so the rest of the
//! client never learns which era it talks to. Tasks of 2025-11-25 are served in the words of the extension in the same way.

mod call;
mod detect;
mod era_client;
mod keys;
mod link;
mod listen;
mod open_calls;
mod questions;
mod request;
mod revisions;
mod server_request;
mod session;
mod task_support;
mod tasks;
mod translate;
mod unfold;

pub(crate) use era_client::EraClient;
pub(crate) use link::{SessionFailure, SessionLink};
pub(crate) use unfold::unfold;
