//! Runs of the command, and a script that answers whatever it stops at.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip_interop::report::{Failure, expect};
use roundtrip_interop::user::{everything, folders, paris};
use serde_json::{Map, Value, json};
use tokio::process::Command;

/// Greatest number of runs that a script makes of one call.
const MAX_RUNS: usize = 12;

/// The command, and the server that it is run against.
pub(crate) struct Roundtrip {
    program: String,
    /// The URL of a server on HTTP.
    url: Option<String>,
    /// The command of a server on standard input and output.
    command: Vec<String>,
    folder: PathBuf,
    files: AtomicUsize,
}

impl Roundtrip {
    /// Reads the server off a command line: `http URL`, or `stdio COMMAND ..`.
    pub(crate) fn at(words: &[String]) -> Result<Self, Failure> {
        let (url, command) = match words {
            [transport, url] if transport == "http" => (Some(url.clone()), Vec::new()),
            [transport, command @ ..] if transport == "stdio" && !command.is_empty() => {
                (None, command.to_vec())
            }
            _ => return Err("usage: command-client CHECK http URL | stdio COMMAND [ARGUMENT ..]".into()),
        };
        let folder = std::env::temp_dir().join(format!("command-client-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let program = std::env::var("ROUNDTRIP").map_err(|_| "ROUNDTRIP does not name the command")?;
        Ok(Self { program, url, command, folder, files: AtomicUsize::new(0) })
    }

    /// Returns whether the server is there for several runs, which find each other's tasks and states.
    pub(crate) fn is_shared(&self) -> bool {
        self.url.is_some()
    }

    /// Runs a subcommand on the server: its words, then the server's, then the rest.
    pub(crate) async fn run(&self, subcommand: &[&str], rest: &[&str]) -> Result<Ran, Failure> {
        let mut words: Vec<&str> = subcommand.to_vec();
        words.extend(self.url.as_deref());
        words.extend(rest);
        self.run_behind(words).await
    }

    /// Goes on with a call that was kept. Its file has the URL of a server on HTTP.
    pub(crate) async fn resume(&self, rest: &[&str]) -> Result<Ran, Failure> {
        self.run_behind([&["resume"], rest].concat()).await
    }

    /// Runs words, with the command of the server behind them if it has one.
    async fn run_behind<'a>(&'a self, mut words: Vec<&'a str>) -> Result<Ran, Failure> {
        if !self.command.is_empty() {
            words.push("--");
            words.extend(self.command.iter().map(String::as_str));
        }
        self.run_alone(&words).await
    }

    /// Returns the URL of a server on HTTP.
    pub(crate) fn url(&self) -> Result<&str, Failure> {
        Ok(self.url.as_deref().ok_or("the server has no URL")?)
    }

    /// Returns the command, for a user with a home of their own and without a keyring.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).stdin(Stdio::null()).kill_on_drop(true);
        command.env("HOME", &self.folder).env("XDG_DATA_HOME", self.folder.join("data"));
        let no_bus = format!("unix:path={}", self.folder.join("no-bus").display());
        command.env("DBUS_SESSION_BUS_ADDRESS", no_bus);
        command
    }

    /// Runs words that name the server themselves, or need none.
    pub(crate) async fn run_alone(&self, words: &[&str]) -> Result<Ran, Failure> {
        let output = self.command(words).output().await?;
        let code = output.status.code().ok_or_else(|| format!("{}", output.status))?;
        Ok(Ran { code, out: String::from_utf8(output.stdout)?, err: String::from_utf8(output.stderr)? })
    }

    /// Writes a file with answers. Returns its path.
    pub(crate) fn answers(&self, answers: &Value) -> Result<String, Failure> {
        let path = self.file()?;
        std::fs::write(&path, answers.to_string())?;
        Ok(path)
    }

    /// Returns the path of a file that is not there yet.
    pub(crate) fn file(&self) -> Result<String, Failure> {
        let name = format!("{}.json", self.files.fetch_add(1, Ordering::Relaxed));
        Ok(self.folder.join(name).to_str().ok_or("a folder whose name is no text")?.to_owned())
    }

    /// Runs a subcommand as a script does: when it stops at questions, these are answered in the file of the next run.
    pub(crate) async fn answered(&self, subcommand: &[&str], rest: &[&str]) -> Result<Ran, Failure> {
        let mut answers = Map::new();
        for _ in 0..MAX_RUNS {
            let file = self.answers(&Value::Object(answers.clone()))?;
            let ran = self.run(subcommand, &[rest, &["--answers", &file, "--json"]].concat()).await?;
            if ran.code != 10 {
                return Ok(ran);
            }
            answers.extend(ran.answers()?);
        }
        Err(format!("no end after {MAX_RUNS} runs: {answers:?}").into())
    }
}

impl Drop for Roundtrip {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the answer to a question as a file has it.
fn answer(question: &Value) -> Result<Value, Failure> {
    Ok(match question["kind"].as_str().unwrap_or_default() {
        "form" => everything(),
        "url" => "accept".into(),
        "sampling" => paris(),
        "roots" => json!({ "roots": folders() }),
        _ => return Err(format!("there is no answer to {question}").into()),
    })
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Fails unless the run ended with this exit code.
    pub(crate) fn exits(self, code: i32) -> Result<Self, Failure> {
        expect(self.code == code, || format!("wanted exit code {code}, got {self:?}"))?;
        Ok(self)
    }

    /// Returns the output as JSON.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        serde_json::from_str(&self.out).map_err(|error| format!("{error}: {self:?}").into())
    }

    /// Returns the text of a tool's result that was printed as JSON.
    pub(crate) fn text(&self) -> Result<String, Failure> {
        let result = self.json()?;
        let blocks = result["content"].as_array().ok_or_else(|| format!("no result of a tool: {self:?}"))?;
        Ok(blocks.iter().filter_map(|block| block["text"].as_str()).collect())
    }

    /// Returns the error that was printed as JSON, and alone.
    pub(crate) fn error(&self) -> Result<Value, Failure> {
        let error: Value = serde_json::from_str(&self.err).map_err(|error| format!("{error}: {self:?}"))?;
        expect(error["error"]["exit"] == self.code, || format!("another exit code: {self:?}"))?;
        Ok(error["error"].clone())
    }

    /// Returns the answers to the questions of a run that stopped at them.
    pub(crate) fn answers(&self) -> Result<Map<String, Value>, Failure> {
        let answers = self.questions()?.into_iter().map(|question| {
            let key = question["key"].as_str().ok_or("a question without a key")?;
            Ok((key.to_owned(), answer(&question)?))
        });
        answers.collect()
    }

    /// Returns the questions of a run that stopped at them.
    pub(crate) fn questions(&self) -> Result<Vec<Value>, Failure> {
        let error = self.error()?;
        let questions = error["questions"].as_array().filter(|questions| !questions.is_empty());
        questions.cloned().ok_or_else(|| format!("no questions: {self:?}").into())
    }
}

/// Fails unless the text is the one that is wanted.
pub(crate) fn says(ran: &Ran, wanted: &str) -> Result<String, Failure> {
    let text = ran.text()?;
    expect(text == wanted, || format!("wanted `{wanted}`, got {ran:?}"))?;
    Ok(text)
}
