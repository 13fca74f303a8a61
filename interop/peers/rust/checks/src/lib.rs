//! Counting and printing of checks: `ok` or `FAIL`, one line each, and their sum at the end.

use std::{env, error::Error, process::ExitCode, time::Duration};

/// Reason of a check that failed.
pub type Failure = Box<dyn Error + Send + Sync>;

const LIMIT: Duration = Duration::from_secs(20);

/// The server to talk to.
pub enum Target {
    /// At this URL.
    Http(String),
    /// A program and its arguments.
    Stdio(String, Vec<String>),
}

impl Target {
    /// Reads the command line: `http URL`, or `stdio COMMAND [ARGUMENT ..]`.
    pub fn read() -> Result<Self, Failure> {
        let mut words = env::args().skip(1);
        match (words.next().as_deref(), words.next()) {
            (Some("http"), Some(url)) => Ok(Self::Http(url)),
            (Some("stdio"), Some(program)) => Ok(Self::Stdio(program, words.collect())),
            _ => Err("usage: http URL | stdio COMMAND [ARGUMENT ..]".into()),
        }
    }
}

/// Checks so far.
#[derive(Default)]
pub struct Report {
    passed: usize,
    failed: usize,
}

impl Report {
    /// Runs one check. Its failure does not stop the others.
    pub async fn check(&mut self, name: &str, step: impl Future<Output = Result<String, Failure>>) {
        match tokio::time::timeout(LIMIT, step).await {
            Ok(Ok(said)) => {
                self.passed += 1;
                println!("ok    {name}: {}", one_line(&said));
            }
            Ok(Err(error)) => self.fail(name, &error.to_string()),
            Err(_) => self.fail(name, &format!("no end within {LIMIT:?}")),
        }
    }

    fn fail(&mut self, name: &str, why: &str) {
        self.failed += 1;
        println!("FAIL  {name}: {}", one_line(why));
    }

    /// Prints the sum. A run without checks is a failure.
    pub fn conclude(self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.passed > 0 && self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn one_line(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fails a check unless something is so.
pub fn expect(so: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failure> {
    if so { Ok(()) } else { Err(otherwise().into()) }
}
