//! Standard error of a child: passed on to the log, with its last lines kept for the error when it dies.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;
use tokio::task::coop::consume_budget;

use crate::lock::lock;
use crate::stdio::lines::{Line, Lines, piece};

/// Most lines that are kept.
const KEPT: usize = 20;
/// Longest line that is kept.
const MAX_LINE: usize = 8 * 1024;

/// The last lines of a child's standard error.
#[derive(Debug, Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    /// Reads until the child closes its standard error.
    pub(super) async fn listen(self, program: String, mut stderr: ChildStderr) {
        let mut lines = Lines::new(MAX_LINE);
        let mut buffer = vec![0; 8 * 1024];
        loop {
            let size = stderr.read(&mut buffer).await.unwrap_or(0);
            // At the end of the stream, a line may lack its newline.
            let mut chunk = if size == 0 { b"\n" } else { &buffer[..size] };
            while !chunk.is_empty() {
                // A child that writes for ever does not keep other tasks from their turn.
                consume_budget().await;
                let read = lines.feed_while(piece(chunk), |line| {
                    let text = match line {
                        Line::Whole(line) => String::from_utf8_lossy(line).trim_end().to_owned(),
                        Line::TooLong => "(a line too long to keep)".to_owned(),
                    };
                    tracing::debug!(program, "{text}");
                    self.push(text);
                    false
                });
                chunk = &chunk[read..];
            }
            if size == 0 {
                return;
            }
        }
    }

    fn push(&self, line: String) {
        let mut kept = lock(&self.0);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    /// Returns the lines, to be put after a sentence; empty if there are none.
    pub(super) fn quoted(&self) -> String {
        let kept = lock(&self.0);
        if kept.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = kept.iter().map(String::as_str).collect();
        format!("; the last lines of its standard error:\n{}", lines.join("\n"))
    }
}
