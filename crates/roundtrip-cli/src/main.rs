//! The `roundtrip` command.

mod demo;
mod demo_tasks;
mod instance;
mod printable;
mod stage;
mod tasks_folder;
mod terminal;

use std::path::PathBuf;
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
    Demo {
        /// Play a task on SQLite instead, whose process is killed while it asks
        #[arg(long)]
        tasks: bool,
    },
    /// Serve one instance of the demo, which starts it
    #[command(hide = true)]
    DemoInstance {
        /// Folder of the tasks
        folder: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Command::parse().what {
        What::Demo { tasks: false } => demo::run().await,
        What::Demo { tasks: true } => demo_tasks::run().await,
        What::DemoInstance { folder } => instance::serve(folder.as_deref()).await,
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
