//! Support of the tests: runs of the built command, and a server for them.

pub(crate) mod own;
#[cfg(unix)]
pub(crate) mod terminal;
pub(crate) mod world;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The built command.
pub(crate) const ROUNDTRIP: &str = env!("CARGO_BIN_EXE_roundtrip");

/// A demo server on HTTP, killed when dropped.
pub(crate) struct Served {
    process: Child,
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn start(options: &[&str]) -> Self {
        let mut process = Command::new(ROUNDTRIP)
            .args(["serve", "--http", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder for files of one test, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("roundtrip-{test}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// Writes a file, and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run of the command without a terminal.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Reads the output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Reads the error as JSON, of which there is one line and nothing else.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        assert_eq!(self.err.lines().count(), 1, "{self:#?}");
        let error: Value =
            serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {self:#?}"));
        error["error"].clone()
    }
}

/// Runs the command.
pub(crate) fn roundtrip(words: &[&str]) -> Ran {
    ran(command(words).output().unwrap())
}

/// Folder for the data of the user that the tests play, instead of the home of whoever runs them.
pub(crate) const DATA: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/data");

/// Returns the command, without a terminal and without an input.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(ROUNDTRIP);
    command.args(words).stdin(Stdio::null()).env("XDG_DATA_HOME", DATA);
    command
}

/// Returns whether a process has ended, waited for or not.
#[cfg(target_os = "linux")]
pub(crate) fn is_gone(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// Waits until a process has ended.
#[cfg(target_os = "linux")]
#[track_caller]
pub(crate) fn goes(pid: u32) {
    let deadline = std::time::Instant::now() + terminal::PATIENCE;
    while !is_gone(pid) {
        assert!(std::time::Instant::now() < deadline, "process {pid} continues");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
