//! Flows kept in a file: `--save` writes it, `roundtrip resume` reads it.

use std::path::Path;

use roundtrip::Pending;
use roundtrip::wire::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ask;
use crate::exit::Failure;
use crate::files;
use crate::printable::printable;
use crate::server::Endpoint;

/// Marks of the format.
const FORMAT: &str = "roundtrip-flow";
const VERSION: u32 = 1;

/// A flow between two rounds, and the way to its server. Headers are not kept: they are credentials.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    format: String,
    version: u32,
    pub(crate) server: Endpoint,
    pub(crate) pending: Value,
}

impl Saved {
    /// Returns the method of the call.
    pub(crate) fn method(&self) -> &str {
        self.pending["method"].as_str().unwrap_or_default()
    }

    /// Returns the flow.
    pub(crate) fn pending<M: Method>(self, file: &Path) -> Result<Pending<M>, Failure> {
        serde_json::from_value(self.pending).map_err(|error| unusable(file, &error))
    }
}

fn unusable(file: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{} holds no flow that can be resumed: {why}", file.display()))
}

/// Writes a flow, for its owner alone: it holds arguments, answers and the server's state.
pub(crate) fn write<M: Method>(file: &Path, server: &Endpoint, pending: &Pending<M>) -> Result<(), Failure> {
    let pending = serde_json::to_value(pending).map_err(|error| unusable(file, &error))?;
    let server = match server {
        // The flow may be resumed from another folder.
        Endpoint::Named { config, name } => Endpoint::Named {
            config: std::path::absolute(config).unwrap_or_else(|_| config.clone()),
            name: name.clone(),
        },
        other => other.clone(),
    };
    let saved = Saved { format: FORMAT.to_owned(), version: VERSION, server, pending };
    let text = serde_json::to_string_pretty(&saved).map_err(|error| unusable(file, &error))?;
    files::write_private(file, &text)
}

/// Reads a flow. Files are trusted no more than a server: stored answers are compared with their questions again, and a command
/// is not run unless the user says so.
pub(crate) fn read(file: &Path) -> Result<Saved, Failure> {
    let text = files::read_text(file)?;
    let saved: Saved = serde_json::from_str(&text).map_err(|error| unusable(file, &error))?;
    if saved.format != FORMAT || saved.version != VERSION {
        let found = format!(
            "its format is `{}` {}, not `{FORMAT}` {VERSION}",
            printable(&saved.format),
            saved.version
        );
        return Err(unusable(file, &found));
    }
    Ok(saved)
}

/// Creates the error of a call that stopped at a question because it was saved.
pub(crate) fn stopped<M: Method>(file: &Path, server: &Endpoint, pending: &Pending<M>) -> Failure {
    let shown = file.display().to_string();
    let words = server.words_to_resume(file);
    ask::stopped("the server asks:", pending)
        .with("saved", shown.clone())
        .note(format!("the call is kept in {shown}: go on with `{words}`"))
}
