//! The handshake eras: revisions 2025-11-25 and before, translated at the edges.
//!
//! A legacy request becomes a modern call, and the outcome of that call is translated back. The rest of the library
//! is written for one revision.

#[cfg(feature = "client")]
pub(crate) mod client;
mod handshake;
pub(crate) mod server;

pub use crate::server::Handshake;
pub use server::ResumableStream;
