//! The `roundtrip` command.

mod demo;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The Model Context Protocol from a terminal.
#[derive(Parser)]
#[command(name = "roundtrip", version)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Run a server and a client in this process, and show every message between them
    Demo,
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Command::parse().what {
        What::Demo => demo::run().await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("roundtrip: {error}");
            ExitCode::FAILURE
        }
    }
}
