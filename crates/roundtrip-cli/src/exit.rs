//! Exit codes, and the errors that lead to them.

use std::error::Error as StdError;
use std::process::ExitCode;

use inquire::error::InquireError;
use roundtrip::Error;
use roundtrip::client::{ServerRejection, TaskError};
use roundtrip::wire::{ClientCapabilities, INVALID_PARAMS};
use serde_json::{Map, Value, json};

use crate::ask::terminal;
use crate::output::err;
use crate::printable::{printable, printable_json, printable_lines};
use crate::rows::Screen;

/// Greatest length of a word of a server in a line of ours, in bytes.
const MAX_WORD: usize = 128;

/// Exit codes of the command, as the manual lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The tool failed, or its task did.
    Failed = 1,
    /// The command line or a file does not fit.
    Usage = 2,
    /// The server is out of reach, or does not speak the protocol.
    Transport = 3,
    /// The user declined or cancelled.
    Declined = 4,
    /// The server wants the user to sign in.
    SignIn = 5,
    /// The server answered with a JSON-RPC error.
    Rejected = 6,
    /// It took too long, or too many rounds.
    GaveUp = 7,
    /// It stopped at a question.
    Asked = 10,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// Returns its name in errors as JSON.
    const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Transport => "transport",
            Self::Declined => "declined",
            Self::SignIn => "signIn",
            Self::Rejected => "rejected",
            Self::GaveUp => "gaveUp",
            Self::Asked => "asked",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}

/// An error of the command: its exit code, a text, and more for programs.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Text of the error, perhaps in words of a server.
    message: String,
    /// Lines that the command adds, and whether they quote a server.
    notes: Vec<(String, bool)>,
    details: Box<Map<String, Value>>,
    /// True if the user has been told already.
    is_told: bool,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), notes: Vec::new(), details: Box::default(), is_told: false }
    }

    /// Creates the error of a command line or file that does not fit.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates the error of a call that the user has interrupted.
    pub(crate) fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }

    /// Creates the error of a result that has been printed and says itself that the call failed.
    pub(crate) fn told(exit: Exit) -> Self {
        Self { is_told: true, ..Self::new(exit, "") }
    }

    /// Adds a member to the error as JSON.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a line of ours to the message, such as a command to type: it is not wrapped.
    pub(crate) fn note(mut self, line: impl Into<String>) -> Self {
        self.notes.push((line.into(), false));
        self
    }

    /// Adds a line that quotes a server.
    pub(crate) fn quote(mut self, line: impl Into<String>) -> Self {
        self.notes.push((line.into(), true));
        self
    }

    /// Adds a line with a word of a server, which is wrapped unless the word is as short and plain as words are.
    pub(crate) fn note_with(self, word: &str, line: impl Into<String>) -> Self {
        let is_plain = word.len() <= MAX_WORD && word.bytes().all(|byte| byte.is_ascii_graphic());
        if is_plain { self.note(line) } else { self.quote(line) }
    }

    /// Returns the error as that of a task: one that ended with a JSON-RPC error has run, and no request was refused.
    pub(crate) fn of_task(mut self) -> Self {
        if self.exit == Exit::Rejected && self.details.contains_key("code") {
            self.exit = Exit::Failed;
        }
        self
    }

    /// Returns whether the server has refused the parameters of a request.
    pub(crate) fn is_invalid_params(&self) -> bool {
        self.exit == Exit::Rejected && self.details.get("code") == Some(&INVALID_PARAMS.into())
    }

    /// Returns the scopes that a sign-in would ask for, if they are known.
    pub(crate) fn scope(&self) -> Option<&str> {
        self.details.get("scope").and_then(Value::as_str).filter(|scope| !scope.is_empty())
    }

    /// Writes the error to standard error: as one JSON object, or as text.
    pub(crate) fn report(&self, json: bool) {
        if self.is_told {
            return;
        }
        if json {
            let mut error = Map::new();
            error.insert("kind".into(), self.exit.name().into());
            error.insert("exit".into(), (self.exit as u8).into());
            let notes = self.notes.iter().map(|(note, _)| note.as_str());
            let lines: Vec<&str> = std::iter::once(self.message.as_str()).chain(notes).collect();
            error.insert("message".into(), lines.join("\n").into());
            error.extend((*self.details).clone());
            err!("{}", printable_json(&json!({ "error": error }), false));
        } else {
            err!("{}", self.text());
        }
    }

    /// Returns the lines for people. The message may quote a server: its further rows are marked, so that none looks like ours.
    fn text(&self) -> String {
        let message = Screen::Err.rows("roundtrip: ", &printable_lines(&self.message));
        self.notes.iter().fold(message, |text, (note, is_quote)| {
            let note = printable(note);
            text + "\n" + &if *is_quote { Screen::Err.rows("  ", &note) } else { note }
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::new(exit_of(&error), error.to_string());
        match &error {
            Error::Rejected(rejection) => {
                let object = rejection.error();
                let failure = match rejection.required_capabilities() {
                    Some(required) => Self::new(failure.exit, object.to_string()).note(remedy(&required)),
                    None => failure,
                };
                let failure = failure.with("code", object.code);
                match &object.data {
                    Some(data) => failure.with("data", (**data).clone()),
                    None => failure,
                }
            }
            Error::Refused(refusal) => {
                let failure = failure.with("status", refusal.status.as_u16());
                if refusal.is_challenge() { failure.note("the server wants a sign-in") } else { failure }
            }
            Error::SignIn(pending) => failure.with("scope", pending.terms().requested.to_string()),
            _ => failure,
        }
    }
}

/// Names the options that declare what a server requires.
fn remedy(required: &ClientCapabilities) -> String {
    let options = [
        (required.sampling.is_some(), "`--sampler COMMAND` or `--model NAME`"),
        (required.roots.is_some(), "`--root FOLDER`"),
    ];
    let options: Vec<&str> =
        options.iter().filter(|(wanted, _)| *wanted).map(|(_, option)| *option).collect();
    if options.is_empty() {
        return "this command has no option for that".to_owned();
    }
    format!("add {}", options.join(", and "))
}

fn exit_of(error: &Error) -> Exit {
    match error {
        Error::ApiMisuse(_) => Exit::Usage,
        Error::Rejected(ServerRejection::Declined(_)) => Exit::Declined,
        Error::Rejected(_) | Error::Task(TaskError::Unknown { .. }) => Exit::Rejected,
        Error::Refused(refusal) if refusal.is_challenge() => Exit::SignIn,
        Error::SignIn(_) | Error::NotAuthorized(_) => Exit::SignIn,
        Error::GaveUp(_) | Error::Timeout { .. } | Error::Task(TaskError::Expired { .. }) => Exit::GaveUp,
        Error::Task(_) | Error::Tool(_) | Error::Handler(_) => Exit::Failed,
        _ => Exit::Transport,
    }
}

/// Errors of the demo and of servers, which have no code of their own.
impl From<Box<dyn StdError>> for Failure {
    fn from(error: Box<dyn StdError>) -> Self {
        let error = match error.downcast::<Error>() {
            Ok(error) => return (*error).into(),
            Err(error) => error,
        };
        match error.downcast::<InquireError>() {
            Ok(error) => terminal::failure(*error),
            Err(error) => Self::new(Exit::Failed, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E5: no text of a server looks like a line of ours.
    #[test]
    fn lines_of_a_server_are_marked() {
        let failure =
            Failure::new(Exit::Rejected, "no\nroundtrip: done\r").quote("key\nroundtrip: done (form)");
        assert_eq!(failure.text(), "roundtrip: no\n| roundtrip: done\\r\n  key\\nroundtrip: done (form)");
    }
}
