//! Servers of the handshake eras, which the call sites do not notice.

mod asking;
mod by_hand;
#[cfg(unix)]
mod closing;
mod declaring;
mod eras;
mod flooding;
mod listening;
#[cfg(unix)]
mod matrix;
mod own;
pub(crate) mod server;
mod sessions;
#[cfg(unix)]
mod stdio;
mod strangers;
mod tasks;
