//! The `roundtrip` command.

mod demo;
mod instance;
mod printable;
mod terminal;

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
    /// Play one call over three processes that share nothing but a key
    Demo,
    /// Serve one instance of the demo, which starts it
    #[command(hide = true)]
    DemoInstance,
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Command::parse().what {
        What::Demo => demo::run().await,
        What::DemoInstance => instance::serve().await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The text may quote a server.
            anstream::eprintln!("roundtrip: {}", printable::printable(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}
