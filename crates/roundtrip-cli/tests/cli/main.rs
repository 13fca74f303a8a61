//! The built command: calls without a terminal, flows over several processes, questions in a pseudo-terminal, the demo.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod call;
mod demo;
mod flows;
mod support;
#[cfg(unix)]
mod terminal;
