//! `roundtrip completions` and `roundtrip man`: files for shells and for `man`.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Command;
use crate::exit::{Exit, Failure};
use crate::output;

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
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Command::command(), "roundtrip", &mut script);
        print(script)
    }
}

impl Man {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Failed, format!("the page cannot be written: {error}"))
        };
        if let Some(folder) = &self.folder {
            return clap_mangen::generate_to(Command::command(), folder).map_err(failed);
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(Command::command()).render(&mut page).map_err(failed)?;
        print(page)
    }
}

fn print(text: Vec<u8>) -> Result<(), Failure> {
    let text = String::from_utf8(text).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    output::write(format_args!("{text}"));
    Ok(())
}
