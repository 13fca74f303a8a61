//! `roundtrip keys`: keys that seal flows.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use roundtrip::seal::{Key, Keyring};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::output::{self, out};

/// Make, check and rotate the keys that seal flows
#[derive(Subcommand)]
pub(crate) enum Keys {
    New(New),
    Check(Check),
    Rotate(Rotate),
}

/// Make a random key
#[derive(Args)]
pub(crate) struct New {
    /// File to be written, for its owner alone; it must not be there yet
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Check that keys are usable, and show their ids
#[derive(Args)]
pub(crate) struct Check {
    /// File, `env:NAME` for a variable of the environment, or `-` for standard input
    keys: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Take the next step of a rotation, which loses no flow
#[derive(Args)]
#[command(after_help = "A rotation takes three steps, each on all instances before the next:\n  \
                        roundtrip keys rotate FILE             adds a new key at the end: all instances can open with it\n  \
                        roundtrip keys rotate FILE --promote   moves it to the front: all instances seal with it\n  \
                        roundtrip keys rotate FILE --retire    removes the old one, when its flows have expired")]
pub(crate) struct Rotate {
    /// File with the keys
    file: PathBuf,
    /// Move the last key to the front
    #[arg(long, conflicts_with = "retire")]
    promote: bool,
    /// Remove the last key
    #[arg(long)]
    retire: bool,
}

impl Keys {
    pub(crate) fn is_json(&self) -> bool {
        matches!(self, Self::Check(Check { json: true, .. }))
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::New(new) => new.run(),
            Self::Check(check) => check.run(),
            Self::Rotate(rotate) => rotate.run(),
        }
    }
}

/// Reads keys from a file, the environment (`env:NAME`) or standard input.
pub(super) fn read(place: &str) -> Result<Keyring, Failure> {
    let text = match place.strip_prefix("env:") {
        Some(name) => {
            std::env::var(name).map_err(|_| Failure::usage(format!("the variable {name} is not set")))?
        }
        None => files::read_text(Path::new(place))?,
    };
    parse(&text, place)
}

fn parse(text: &str, place: &str) -> Result<Keyring, Failure> {
    Keyring::parse(text).map_err(|error| Failure::usage(format!("{place}: {error}")))
}

pub(crate) fn fresh() -> Result<String, Failure> {
    let mut secret = [0; Key::MIN_LEN];
    getrandom::fill(&mut secret).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    Ok(Key::generate(secret).to_text())
}

impl New {
    fn run(&self) -> Result<(), Failure> {
        let key = fresh()?;
        let Some(file) = &self.output else {
            out!("{key}");
            return Ok(());
        };
        if file.exists() {
            let why =
                format!("{} is there already: `roundtrip keys rotate` adds a key to it", file.display());
            return Err(Failure::usage(why));
        }
        files::write_private(file, &format!("{key}\n"))
    }
}

impl Check {
    fn run(&self) -> Result<(), Failure> {
        let ids: Vec<String> = read(&self.keys)?.key_ids().map(|id| id.to_string()).collect();
        if self.json {
            output::json(&json!({ "keys": ids }));
            return Ok(());
        }
        for (at, id) in ids.iter().enumerate() {
            out!("{id}  {}", if at == 0 { "seals and opens" } else { "opens" });
        }
        Ok(())
    }
}

impl Rotate {
    fn run(&self) -> Result<(), Failure> {
        let place = self.file.display().to_string();
        let text = files::read_text(&self.file)?;
        parse(&text, &place)?;
        let (comments, mut keys) = taken_apart(&text);
        let next = if self.promote || self.retire {
            let last = keys.pop().filter(|_| !keys.is_empty());
            let last =
                last.ok_or_else(|| Failure::usage(format!("{place} has one key alone: add another first")))?;
            if self.promote {
                keys.insert(0, last);
                "deploy this; when the flows that the old key sealed have expired: `--retire`"
            } else {
                "deploy this: the rotation is done"
            }
        } else {
            keys.push(fresh()?);
            "deploy this on all instances; then `--promote`"
        };
        let written: String = comments.into_iter().chain(keys).map(|line| line + "\n").collect();
        parse(&written, &place)?;
        files::write_private(&self.file, &written)?;
        out!("{next}");
        Ok(())
    }
}

/// Takes a file apart: lines without keys, and one line a key, with its comment.
fn taken_apart(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut comments, mut lines) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let (keys, comment) = line.split_once('#').map_or((line, None), |(keys, why)| (keys, Some(why)));
        let keys: Vec<&str> = keys.split(',').map(str::trim).filter(|key| !key.is_empty()).collect();
        match (keys.as_slice(), comment) {
            ([], _) => comments.push(line.to_owned()),
            ([key], Some(comment)) => lines.push(format!("{key} #{comment}")),
            (keys, _) => lines.extend(keys.iter().map(ToString::to_string)),
        }
    }
    (comments, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_keeps_comments_and_order() {
        let (comments, keys) = taken_apart("# fleet\naaa, bbb\n\nccc # new\n");
        assert_eq!(
            (comments, keys),
            (vec!["# fleet".into(), String::new()], vec!["aaa".into(), "bbb".into(), "ccc # new".into()])
        );
    }

    #[test]
    fn a_fresh_key_is_usable() {
        let (one, other) = (fresh().unwrap(), fresh().unwrap());
        assert_eq!(parse(&format!("{one}\n{other}"), "keys").unwrap().key_ids().count(), 2);
    }
}
