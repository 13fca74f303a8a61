//! The `roundtrip` command.

mod arguments;
mod ask;
mod commands;
mod demo;
mod exit;
mod files;
mod interrupt;
#[cfg(test)]
#[path = "../../roundtrip-core/tests/common/listed.rs"]
mod listed;
mod mark;
mod nearest;
mod output;
mod printable;
mod progress;
mod rows;
mod saved;
mod server;
mod session;
mod sign_in;
mod trace;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};

use crate::commands::Command;
use crate::exit::Failure;

fn main() -> ExitCode {
    let command = match Command::try_parse().map_err(advised) {
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

/// Takes back the advice to put a word that begins with a hyphen behind `--`: the command of a server stands there.
fn advised(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::StyledStrs(mut kept)) = error.remove(ContextKind::Suggested) else { return error };
    kept.retain(|line| !line.to_string().contains("as a value, use '-- "));
    if std::env::args_os().nth(1).is_some_and(|command| command == "task") {
        kept.push("give the identifier of a task that begins with a hyphen by '--id=ID'".into());
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(kept));
    error
}
