//! The handshake eras: 2025-11-25 and before, translated at the door.
//!
//! What comes in on an old wire becomes a modern call, and what that call comes to is put into the old words. Nothing
//! else in this library knows of it: the rest is written for one revision, and this folder can be deleted.

#[cfg(feature = "client")]
pub(crate) mod client;
mod handshake;
pub(crate) mod server;

pub use server::{Connection, Handshake};
