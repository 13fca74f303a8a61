//! Counts and prints checks, and reads results.

use std::error::Error as StdError;
use std::process::ExitCode;
use std::time::Duration;

use roundtrip::wire::{CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents};
use tokio::time::timeout;

/// Reason why a check failed.
pub type Failure = Box<dyn StdError + Send + Sync>;

const LIMIT: Duration = Duration::from_secs(20);

/// Checks so far.
#[derive(Debug, Default)]
pub struct Report {
    passed: usize,
    failed: usize,
}

impl Report {
    /// Runs one check. Its failure does not stop the others.
    pub async fn check(&mut self, name: &str, step: impl Future<Output = Result<String, Failure>>) {
        let said =
            timeout(LIMIT, step).await.unwrap_or_else(|_| Err(format!("no end within {LIMIT:?}").into()));
        match said {
            Ok(said) => {
                self.passed += 1;
                println!("ok    {name}: {}", one_line(&said));
            }
            Err(error) => {
                self.failed += 1;
                println!("FAIL  {name}: {}", one_line(&error.to_string()));
            }
        }
    }

    /// Returns the exit code. A run without checks is a failure.
    pub fn conclude(self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.passed > 0 && self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn one_line(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fails a check unless something is so.
///
/// # Errors
/// The text that says what was found instead.
pub fn expect(condition: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(what().into()) }
}

/// Text of a result.
pub trait Text {
    /// Returns all of it in one piece.
    fn text(&self) -> String;
}

impl Text for CallToolResult {
    fn text(&self) -> String {
        self.content.iter().map(block).collect()
    }
}

impl Text for GetPromptResult {
    fn text(&self) -> String {
        self.messages.iter().map(|message| block(&message.content)).collect()
    }
}

impl Text for ReadResourceResult {
    fn text(&self) -> String {
        let text = |contents: &ResourceContents| match contents {
            ResourceContents::Text(text) => text.text.clone(),
            other => format!("{other:?}"),
        };
        self.contents.iter().map(text).collect()
    }
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        other => format!("{other:?}"),
    }
}
