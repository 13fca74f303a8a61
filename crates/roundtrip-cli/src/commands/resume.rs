//! `roundtrip resume`: goes on with a call that `--save` has kept.

use std::path::PathBuf;

use anstyle::Style;
use clap::Args;

use super::call;
use crate::ask::terminal;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::{self, err};
use crate::printable::printable;
use crate::rows::Screen;
use crate::saved::{self, Flow, Saved};
use crate::server::Endpoint;
use crate::session::{Session, SessionOptions};

/// Greatest number of rows of a command that is shown once more.
const MOST_ROWS: usize = 8;

/// Go on with a call that was kept by `--save`
#[derive(Args)]
#[command(
    override_usage = "roundtrip resume [OPTIONS] <FILE> [SERVER]\n       roundtrip resume [OPTIONS] <FILE> -- <COMMAND>..",
    after_help = "A command that the file names runs after consent in a terminal, or if it is given again. So does a call of a\n\
                        file that you have not saved yourself on this machine.\n\n\
                        Examples:\n  roundtrip resume flow.json --answers answers.json\n  \
                        roundtrip resume flow.json --answers answers.json https://tools.example/mcp\n  \
                        roundtrip resume flow.json --answers answers.json -- npx my-server"
)]
pub(crate) struct Resume {
    /// File with the call
    file: PathBuf,
    /// URL of the server, where the call was made to a URL
    #[arg(value_name = "SERVER")]
    url: Option<String>,
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
        let server = interrupt::until(self.options.deadline, self.server(&saved)).await?;
        let session = Session::open(server, &self.options).await?;
        // Questions of a file that somebody else has written are not said to be the server's.
        let asks = (!saved.is_ours).then(|| self.shown());
        session
            .run(async |session| match saved.flow {
                Flow::Tool(pending) => {
                    let result = session.resume(pending, asks).await?;
                    call::conclude(session, &result)
                }
                Flow::Prompt(pending) => {
                    let result = session.resume(pending, asks).await?;
                    if session.json {
                        output::json(&result);
                    } else {
                        output::prompt(&result);
                    }
                    session.concluded(Ok(()))
                }
                Flow::Resource(pending) => {
                    let result = session.resume(pending, asks).await?;
                    if session.json {
                        output::json(&result);
                    } else {
                        output::resource(&result);
                    }
                    session.concluded(Ok(()))
                }
            })
            .await
    }

    /// Returns the server to resume the call at. A command runs only if the command line names it too, or after consent; a file
    /// that this user has not written sends nothing without either.
    async fn server(&self, saved: &Saved) -> Result<Endpoint, Failure> {
        let given = self.given(&saved.server)?;
        let (server, is_given) = (given.as_ref().unwrap_or(&saved.server), given.is_some());
        let is_known = saved.is_ours && (is_given || matches!(server, Endpoint::Url(_)));
        if !is_known && terminal::is_there() {
            self.consented(server, saved).await?;
        } else if !is_known && !is_given {
            return Err(self.unnamed(&saved.server));
        }
        let what = match server {
            Endpoint::Url(_) => "server",
            Endpoint::Command(_) => "command",
            // A name is looked up where the command line says.
            Endpoint::Named { .. } => return Ok(server.clone()),
        };
        if *server != saved.server && !self.options.json {
            err!("{} was kept from another {what} than this one", printable(&self.shown()));
        }
        Ok(server.clone())
    }

    /// Returns the server that the command line names.
    fn given(&self, saved: &Endpoint) -> Result<Option<Endpoint>, Failure> {
        let is_url = matches!(saved, Endpoint::Url(_));
        let wrong = |why: &str| Err(Failure::usage(format!("{} was kept from {why}", self.shown())));
        match (&self.url, &self.options.connect.config) {
            _ if is_url && !self.command.is_empty() => wrong("a URL: it takes no command"),
            (Some(_), _) if !is_url => wrong("a command: give that behind `--`, or its file by `--config`"),
            (Some(url), _) => Endpoint::take(&mut vec![url.clone()], &[], None).map(Some),
            _ if !self.command.is_empty() => Ok(Some(Endpoint::Command(self.command.clone()))),
            (None, Some(config)) => match saved {
                Endpoint::Named { name, .. } => Ok(Some(Endpoint::named(config, name.clone()))),
                _ => Ok(None),
            },
            (None, None) => Ok(None),
        }
    }

    /// Shows what would run and be sent, and asks for consent.
    async fn consented(&self, server: &Endpoint, saved: &Saved) -> Result<(), Failure> {
        let (file, server, request) = (printable(&self.shown()), server.clone(), saved.request.written());
        let consented = terminal::blocking(move || {
            let written = server.written()?;
            let by = match &server {
                Endpoint::Named { config, name, .. } => format!(", by `{name}` in {}", config.display()),
                _ => String::new(),
            };
            let show = |lead: &str, text: &str| err!("{}", Screen::Err.rows(lead, &printable(text)));
            let what = if written.runs { "run" } else { "send a request to" };
            show(&format!("{file} wants to {what}"), &format!("{by}:"));
            let bold = Style::new().bold();
            let line = format!("{bold}{}{bold:#}", printable(&written.line));
            err!("{}", Screen::Err.rows("  ", &line));
            written.more.iter().for_each(|more| show("    ", more));
            err!("and to send this there:");
            request.iter().for_each(|part| show("  ", part));
            // Again, as all that is sent may have pushed it off the screen.
            let (lead, prompt, yes) = if written.runs {
                ("it would run: ", "Run it?", "Run it")
            } else {
                ("it would be sent to: ", "Send it?", "Send it")
            };
            err!("{}", Screen::Err.rows_at_most(MOST_ROWS, lead, &printable(&written.line)));
            let consents = terminal::choose(prompt, &[(yes, true), ("Decline", false)]);
            Ok((consents.map_err(terminal::failure)?, written.runs))
        });
        match consented.await? {
            (true, _) => Ok(()),
            (false, true) => Err(Failure::new(Exit::Declined, "declined: nothing was run")),
            (false, false) => Err(Failure::new(Exit::Declined, "declined: nothing was sent")),
        }
    }

    /// Creates the error of a server that the command line does not name.
    fn unnamed(&self, saved: &Endpoint) -> Failure {
        let words = saved.words_to_resume(&self.file);
        let why = match saved {
            Endpoint::Url(_) => "was not saved by you on this machine",
            _ => "names what to run",
        };
        Failure::usage(format!(
            "{} {why}, and there is no terminal to ask for consent in: if you trust it, give its server again:",
            self.shown()
        ))
        .quote(words.clone())
        .with("resume", words)
    }

    fn shown(&self) -> String {
        self.file.display().to_string()
    }
}
