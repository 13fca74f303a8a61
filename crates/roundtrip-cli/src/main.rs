//! The `roundtrip` command.

mod arguments;
mod ask;
mod commands;
mod demo;
mod exit;
mod files;
mod interrupt;
mod nearest;
mod output;
mod printable;
mod progress;
mod saved;
mod server;
mod session;
mod sign_in;
mod trace;

use std::process::ExitCode;

use clap::Parser as _;

use crate::commands::Command;
use crate::exit::Failure;

fn main() -> ExitCode {
    let command = match Command::try_parse() {
        Ok(command) => command,
        Err(error) if error.use_stderr() && wants_json() => {
            let failure = Failure::usage(error.to_string().trim_end());
            failure.report(true);
            return failure.exit.into();
        }
        Err(error) => error.exit(),
    };
    // One thread is enough for one call, and starts faster than many.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::from(Box::<dyn std::error::Error>::from(error));
            failure.report(false);
            return failure.exit.into();
        }
    };
    let code = runtime.block_on(command.run());
    // A prompt that was given up still waits for a key, in a thread of its own.
    runtime.shutdown_background();
    code
}

/// Returns whether errors are wanted as JSON, though the command line is wrong.
fn wants_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}
