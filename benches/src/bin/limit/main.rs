//! The yardstick: the cheapest server that is still a correct one.
//!
//! ```text
//! limit http PORT [--tools N]
//! limit stdio
//! ```
//!
//! It is written against hyper, serde_json and an AEAD alone, with no SDK in between, and does what revision 2026-07-28
//! requires of any server that answers `tools/call` and `tools/list`: it parses the envelope, requires the
//! request's `_meta`, compares the mirrored headers with the body, and checks `Origin` and `Content-Type`. Its
//! tool `deploy` asks, and seals what it must know again into the `requestState`; its tool `parts` sends its result
//! in parts over HTTP. What another server costs beyond
//! this is the price of its abstractions. PORT 0 picks a free port, and
//! `listening on 127.0.0.1:PORT` says which; `--tools N` registers N more tools.
//!
//! On stdio it reads and writes in blocking calls on one thread: with nothing to wait for but its peer, a
//! runtime would only add cost.

mod flow;
mod http;
mod message;
#[path = "../../part.rs"]
mod part;
mod parts;
mod stdio;
mod tools;

use std::{env, error::Error, process::ExitCode};

use tools::Tools;

#[expect(clippy::print_stderr, reason = "standard error is where a command says why it failed")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("limit: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["stdio"] => Ok(stdio::serve(&Tools::new(0)?)?),
        ["http", port] => Ok(http::serve(port.parse()?, Tools::new(0)?)?),
        ["http", port, "--tools", fillers] => Ok(http::serve(port.parse()?, Tools::new(fillers.parse()?)?)?),
        _ => Err("usage: limit (http PORT [--tools N] | stdio)".into()),
    }
}
