//! The log of a crash test: a plain file outside the store, to which every process appends one line at a time.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Mark of a note in a worker's output, which tells its parent at once.
pub(crate) const MARK: char = '@';

/// A line of the log: a process, the job it is about, an event and its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) pid: u32,
    pub(crate) job: String,
    pub(crate) event: String,
    pub(crate) details: Vec<String>,
}

impl Note {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').map(str::to_owned);
        let pid = words.next()?.parse().ok()?;
        Some(Self { pid, job: words.next()?, event: words.next()?, details: words.collect() })
    }

    /// Returns a detail, or nothing where there is none.
    pub(crate) fn detail(&self, index: usize) -> &str {
        self.details.get(index).map_or("", String::as_str)
    }
}

/// A worker's end of the log.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<File>);

impl Log {
    pub(crate) fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Self(Arc::new(file.expect("a log")))
    }

    /// Appends a note by a single write, so that the lines of processes do not mix, and tells the parent.
    pub(crate) fn note(&self, job: &str, event: &str) {
        let line = self.note_of(std::process::id(), job, event);
        // A parent that has gone reads nothing, and this process is about to end.
        let _ = std::io::stdout().write_all(format!("{MARK}{line}").as_bytes());
    }

    /// Appends a note about a process, and returns its line.
    pub(crate) fn note_of(&self, pid: u32, job: &str, event: &str) -> String {
        let line = format!("{pid} {job} {event}\n");
        (&*self.0).write_all(line.as_bytes()).expect("a note");
        line
    }
}

/// Reads all notes, in the order in which they were written.
pub(crate) fn read(path: &Path) -> Vec<Note> {
    let text = std::fs::read_to_string(path).expect("a log");
    let note = |line: &str| Note::parse(line).unwrap_or_else(|| panic!("not a note: {line}"));
    text.lines().map(note).collect()
}
