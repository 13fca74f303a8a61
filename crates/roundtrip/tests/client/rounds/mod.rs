//! Calls that take several rounds, against servers that ask whatever a test wants them to ask.

mod by_hand;
mod capabilities;
mod clock;
mod handlers;
mod pages;
mod restart;
mod retries;
pub(crate) mod script;
mod wire;
