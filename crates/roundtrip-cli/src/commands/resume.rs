//! `roundtrip resume`: goes on with a call that `--save` has kept.

use std::path::PathBuf;

use anstream::eprintln;
use anstyle::Style;
use clap::Args;
use roundtrip::wire::{CallTool, GetPrompt, Method as _, ReadResource};

use super::call;
use crate::ask::terminal;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output;
use crate::printable::printable;
use crate::saved;
use crate::server::Endpoint;
use crate::session::{Session, SessionOptions};

/// Go on with a call that was kept by `--save`
#[derive(Args)]
#[command(
    after_help = "A command that the file names runs after consent in a terminal, or if it is given again.\n\n\
                        Examples:\n  roundtrip resume flow.json --answers answers.json\n  \
                        roundtrip resume flow.json --answers answers.json -- npx my-server"
)]
pub(crate) struct Resume {
    /// File with the call
    file: PathBuf,
    /// Command that starts the server, where the call was made to a command
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    options: SessionOptions,
}

impl Resume {
    pub(crate) fn is_json(&self) -> bool {
        self.options.json
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        let saved = saved::read(&self.file)?;
        let server = interrupt::until(self.options.deadline, self.server(&saved.server)).await?;
        let session = Session::open(server, &self.options).await?;
        session
            .run(async |session| match saved.method() {
                CallTool::NAME => {
                    let result = session.resume::<CallTool>(saved.pending(&self.file)?).await?;
                    call::conclude(session, &result)
                }
                GetPrompt::NAME => {
                    let result = session.resume::<GetPrompt>(saved.pending(&self.file)?).await?;
                    if session.json {
                        output::json(&result);
                    } else {
                        output::prompt(&result);
                    }
                    session.concluded(Ok(()))
                }
                ReadResource::NAME => {
                    let result = session.resume::<ReadResource>(saved.pending(&self.file)?).await?;
                    if session.json {
                        output::json(&result);
                    } else {
                        output::resource(&result);
                    }
                    session.concluded(Ok(()))
                }
                other => {
                    let why =
                        format!("{}: calls of `{}` are not resumed", self.file.display(), printable(other));
                    Err(Failure::usage(why))
                }
            })
            .await
    }

    /// Returns the server to go on with. What a file names runs only if the command line names it too, or after consent.
    async fn server(&self, saved: &Endpoint) -> Result<Endpoint, Failure> {
        match (saved, &self.options.connect.config) {
            (Endpoint::Url(_), _) if !self.command.is_empty() => {
                let why = format!("{} was kept from a URL: it takes no command", self.file.display());
                Err(Failure::usage(why))
            }
            (Endpoint::Url(_), _) => Ok(saved.clone()),
            _ if !self.command.is_empty() => Ok(self.commanded(saved)),
            (Endpoint::Named { name, .. }, Some(config)) => {
                Ok(Endpoint::Named { config: config.clone(), name: name.clone() })
            }
            _ if terminal::is_there() => self.consented(saved).await,
            _ => Err(self.unnamed(saved)),
        }
    }

    /// Returns the command of the command line, and says if the flow is another one's.
    fn commanded(&self, saved: &Endpoint) -> Endpoint {
        let given = Endpoint::Command(self.command.clone());
        if given != *saved && !self.options.json {
            eprintln!("{} was kept from another command than this one", printable(&self.shown()));
        }
        given
    }

    /// Shows what would run, and asks for consent.
    async fn consented(&self, saved: &Endpoint) -> Result<Endpoint, Failure> {
        let (file, server) = (printable(&self.shown()), saved.clone());
        let consented = terminal::blocking(move || {
            let by = match &server {
                Endpoint::Named { config, name } => {
                    format!(", by `{}` in {}", printable(name), printable(&config.display().to_string()))
                }
                _ => String::new(),
            };
            let bold = Style::new().bold();
            eprintln!("{file} wants to run{by}:\n  {bold}{}{bold:#}", printable(&server.written()?));
            terminal::choose("Run it?", &[("Run it", true), ("Decline", false)]).map_err(terminal::failure)
        });
        match consented.await? {
            true => Ok(saved.clone()),
            false => Err(Failure::new(Exit::Declined, "declined: nothing was run")),
        }
    }

    /// Creates the error of a command that the command line does not name.
    fn unnamed(&self, saved: &Endpoint) -> Failure {
        let words = printable(&saved.words_to_resume(&self.file));
        let why = format!(
            "{} names what to run, and there is no terminal to ask for consent in: if you trust it, give it again: `{words}`",
            self.shown()
        );
        Failure::usage(why).with("resume", words)
    }

    fn shown(&self) -> String {
        self.file.display().to_string()
    }
}
