//! The built command: calls without a terminal, flows over several processes, questions in a pseudo-terminal, sign-ins,
//! completions in shells, the demo.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod call;
mod config;
mod consent;
mod demo;
mod flows;
#[cfg(unix)]
mod forms;
mod output;
mod shell;
mod sign_in;
mod support;
#[cfg(unix)]
mod terminal;
