//! A language model behind a command.

use std::process::Stdio;

use roundtrip::wire::{CreateMessageRequestParams, CreateMessageResult};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::exit::{Exit, Failure};

/// Greatest length of a message, in bytes.
const MAX_MESSAGE: u64 = 1024 * 1024;

/// A command of the user's that asks a language model.
pub(super) struct Sampler(String);

impl Sampler {
    pub(super) fn new(command: String) -> Self {
        Self(command)
    }

    /// Runs the command with a request on its standard input. It prints a `CreateMessageResult`, or the message alone.
    pub(super) async fn message(&self, params: &CreateMessageRequestParams) -> Result<Value, Failure> {
        let printed = self.run(params).await.map_err(|error| self.failed(&error.to_string()))?;
        let text = String::from_utf8(printed).map_err(|_| self.failed("it did not print UTF-8"))?;
        let result = match serde_json::from_str::<CreateMessageResult>(&text) {
            Ok(result) => result,
            Err(_) => CreateMessageResult::assistant(text.trim_end(), "command"),
        };
        serde_json::to_value(result).map_err(|error| self.failed(&error.to_string()))
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

    fn failed(&self, why: &str) -> Failure {
        Failure::new(Exit::Failed, format!("the sampler `{}` failed: {why}", self.0))
    }
}
