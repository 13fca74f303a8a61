//! `roundtrip completions` and `roundtrip man`: files for shells and for `man`.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Command;
use crate::exit::{Exit, Failure};

/// Print the completions of a shell
#[derive(Args)]
#[command(after_help = "Example:\n  roundtrip completions bash > /etc/bash_completion.d/roundtrip")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the man page, or write those of all commands
#[derive(Args)]
pub(crate) struct Man {
    /// Folder for the pages of all commands
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Completions {
    pub(crate) fn run(&self) {
        clap_complete::generate(self.shell, &mut Command::command(), "roundtrip", &mut std::io::stdout());
    }
}

impl Man {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let written = match &self.folder {
            Some(folder) => clap_mangen::generate_to(Command::command(), folder),
            None => clap_mangen::Man::new(Command::command()).render(&mut std::io::stdout()),
        };
        written.map_err(|error| Failure::new(Exit::Failed, format!("the page cannot be written: {error}")))
    }
}
