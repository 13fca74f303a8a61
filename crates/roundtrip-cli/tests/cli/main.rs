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
#[cfg(unix)]
mod hostile_text;
mod output;
mod saved_urls;
mod shell;
mod sign_in;
#[cfg(unix)]
mod signals;
mod support;
#[cfg(unix)]
mod terminal;
mod urls;
