//! The language model of the command line: behind a command, or behind an endpoint.

use std::process::Stdio;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use roundtrip::client::Answer;
use roundtrip::wire::{CreateMessageRequestParams, CreateMessageResult, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::model::Model;
use crate::exit::{Exit, Failure};

/// Greatest length of a message, in bytes.
const MAX_MESSAGE: u64 = 1024 * 1024;

/// The user's language model.
pub(super) enum Sampler {
    /// A command that asks it.
    Command(Program),
    /// An endpoint.
    Model(Model),
}

impl Sampler {
    /// Asks the model.
    pub(super) async fn message(&self, params: &CreateMessageRequestParams) -> Result<Answer, Failure> {
        let result = match self {
            Self::Command(program) => program.message(params).await,
            Self::Model(model) => model.message(params).await,
        };
        let result = result.map_err(|why| Failure::new(Exit::Failed, format!("the model failed: {why}")))?;
        Ok(Answer::CreateMessage(Box::new(result)))
    }
}

/// A command line of the user's.
pub(super) struct Program(pub(super) String);

impl Program {
    /// Runs the command with a request on its standard input. It prints a `CreateMessageResult`, or the message alone.
    async fn message(&self, params: &CreateMessageRequestParams) -> Result<CreateMessageResult, String> {
        let printed = self.run(params).await.map_err(|error| format!("`{}`: {error}", self.0))?;
        let text = String::from_utf8(printed).map_err(|_| format!("`{}` did not print UTF-8", self.0))?;
        Ok(match json::from_str(&text) {
            Ok(result) => result,
            Err(_) => CreateMessageResult::assistant(text.trim_end(), "command"),
        })
    }

    async fn run(&self, params: &CreateMessageRequestParams) -> std::io::Result<Vec<u8>> {
        let request = serde_json::to_vec(params)?;
        let mut group = Group::start(&self.0)?;
        let (stdin, stdout) = (group.0.stdin().take(), group.0.stdout().take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its request may be done without it.
                let _ = stdin.write_all(&request).await;
            }
        };
        let read = async {
            let mut printed = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(MAX_MESSAGE).read_to_end(&mut printed).await?;
            }
            Ok::<_, std::io::Error>(printed)
        };
        let ((), printed) = tokio::join!(write, read);
        let printed = printed?;
        let status = group.0.wait().await?;
        if status.success() {
            Ok(printed)
        } else {
            Err(std::io::Error::other(format!("it ended with {status}")))
        }
    }
}

/// A shell with all its pipeline, in a process group as servers are. When this is dropped, the whole group is killed.
struct Group(Box<dyn ChildWrapper>);

impl Group {
    /// Starts a command line of the user's own, as it would be typed into a shell.
    fn start(line: &str) -> std::io::Result<Self> {
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let mut command = CommandWrap::with_new(shell, |command| {
            command.args([flag, line]).stdin(Stdio::piped()).stdout(Stdio::piped());
        });
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        command.wrap(KillOnDrop).spawn().map(Self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Most often there is no process left to kill.
        let _ = self.0.start_kill();
    }
}
