//! Folder of a demo with tasks: its database, and a log of what ran.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::stage::random_hex;

/// Line of the log for a run of the handler.
pub(crate) const HANDLER: &str = "handler";
/// Line of the log for a run of the step `deposit`.
pub(crate) const DEPOSIT: &str = "deposit";

/// A folder of its own for one demo, which is removed when this is dropped.
pub(crate) struct TasksFolder(PathBuf);

impl TasksFolder {
    /// Creates an empty folder.
    pub(crate) fn create() -> io::Result<Self> {
        let name = random_hex::<8>().map_err(io::Error::other)?;
        let path = std::env::temp_dir().join(format!("roundtrip-demo-{name}"));
        // It fails if there is one: no other user has prepared it.
        fs::create_dir(&path)?;
        let folder = Self(path);
        File::create_new(log_in(&folder.0))?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn database(&self) -> PathBuf {
        database_in(&self.0)
    }

    /// Returns the lines of the log so far.
    pub(crate) fn log(&self) -> io::Result<Vec<String>> {
        Ok(fs::read_to_string(log_in(&self.0))?.lines().map(str::to_owned).collect())
    }
}

impl Drop for TasksFolder {
    fn drop(&mut self) {
        // There is nothing to be done about a folder that stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the path of the database in a folder.
pub(crate) fn database_in(folder: &Path) -> PathBuf {
    folder.join("tasks.db")
}

fn log_in(folder: &Path) -> PathBuf {
    folder.join("ran.log")
}

/// Log of what runs, outside of the store, as the world outside would be. Without a folder it goes nowhere.
#[derive(Clone, Default)]
pub(crate) struct RanLog(Option<PathBuf>);

impl RanLog {
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        Self(folder.map(log_in))
    }

    /// Appends a line.
    pub(crate) fn note(&self, what: &str) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        OpenOptions::new().append(true).open(path)?.write_all(format!("{what}\n").as_bytes())
    }
}
