//! The language model of the command line: behind a command, or behind an endpoint.

use std::process::Stdio;

use roundtrip::client::Answer;
use roundtrip::wire::{CreateMessageRequestParams, CreateMessageResult};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

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
        Ok(match serde_json::from_str(&text) {
            Ok(result) => result,
            Err(_) => CreateMessageResult::assistant(text.trim_end(), "command"),
        })
    }

    async fn run(&self, params: &CreateMessageRequestParams) -> std::io::Result<Vec<u8>> {
        let request = serde_json::to_vec(params)?;
        // It is the user's own line, as it would be typed into a shell.
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let mut child = Command::new(shell)
            .args([flag, &self.0])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
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
        let status = child.wait().await?;
        if status.success() {
            Ok(printed)
        } else {
            Err(std::io::Error::other(format!("it ended with {status}")))
        }
    }
}
