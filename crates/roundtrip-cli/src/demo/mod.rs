//! `roundtrip demo`: the library's promise, played with processes that are killed.

pub(crate) mod everything;
mod instance;
mod rounds;
mod stage;
mod tasks;
mod tasks_folder;

use std::error::Error;
use std::path::PathBuf;

use clap::Args;

/// Options of `roundtrip demo`.
#[derive(Args)]
pub(crate) struct Demo {
    /// Play a task on SQLite instead, whose process is killed while it asks
    #[arg(long)]
    tasks: bool,
}

/// Options of an instance of the demo.
#[derive(Args)]
pub(crate) struct DemoInstance {
    /// Folder of the tasks
    folder: Option<PathBuf>,
}

/// Plays the demo.
pub(crate) async fn run(demo: &Demo) -> Result<(), Box<dyn Error>> {
    if demo.tasks { tasks::run().await } else { rounds::run().await }
}

/// Serves one instance of the demo.
pub(crate) async fn serve(instance: &DemoInstance) -> Result<(), Box<dyn Error>> {
    instance::serve(instance.folder.as_deref()).await
}
