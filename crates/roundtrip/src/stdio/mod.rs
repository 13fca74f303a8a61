//! stdio edge: one message a line, on both sides.
//!
//! The framing is not tied to standard streams: [`serve_lines`] serves any pair of byte streams, such as the two
//! halves of a Unix socket.

mod calls;
#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "legacy")]
mod legacy;
mod lines;
mod outgoing;
mod serve;
mod std_streams;

pub use serve::serve_lines;

/// Longest line that is accepted (I1).
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;
