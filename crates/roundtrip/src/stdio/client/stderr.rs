//! What a child says on its standard error: passed on to the log, and its end kept for when it dies.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;

use crate::stdio::lines::{Line, Lines};

/// How many lines are kept.
const KEPT: usize = 20;
/// The longest line that is kept.
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
            // At the end, what has no newline yet is a line too.
            let chunk = if size == 0 { b"\n" } else { &buffer[..size] };
            lines.feed(chunk, |line| {
                let text = match line {
                    Line::Whole(line) => String::from_utf8_lossy(line).trim_end().to_owned(),
                    Line::TooLong => "(a line too long to keep)".to_owned(),
                };
                tracing::debug!(program, "{text}");
                self.push(text);
            });
            if size == 0 {
                return;
            }
        }
    }

    fn push(&self, line: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    /// The lines, ready to be put after a sentence; empty where there are none.
    pub(super) fn quoted(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = kept.iter().map(String::as_str).collect();
        format!("; the last lines of its standard error:\n{}", lines.join("\n"))
    }
}
