//! `roundtrip flow open`: a look into a token.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use roundtrip::inspect::{self, Entry};
use roundtrip::seal::TokenLimits;
use roundtrip::wire::json;
use serde_json::{Map, Value, json};

use super::keys;
use crate::exit::Failure;
use crate::files;
use crate::output::{self, out};
use crate::printable::printable;
use crate::rows::Screen;

/// Look into flows
#[derive(Subcommand)]
pub(crate) enum Flow {
    Open(Open),
}

/// Show the claims, open questions and journal of a token
#[derive(Args)]
#[command(after_help = "Examples:\n  roundtrip flow open TOKEN --keys keys.txt\n  \
                        roundtrip flow open @flow.json --keys env:ROUNDTRIP_KEYS --show-answers")]
pub(crate) struct Open {
    /// The token (`requestState`), or `@FILE` for one in a file, also one that `--save` has written
    token: String,
    /// Keys that open it: a file, or `env:NAME`
    #[arg(long, value_name = "KEYS")]
    keys: String,
    /// Show answers, results of steps and state, which are masked otherwise
    #[arg(long)]
    show_answers: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Flow {
    pub(crate) fn is_json(&self) -> bool {
        let Self::Open(open) = self;
        open.json
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self::Open(open) = self;
        open.run()
    }
}

impl Open {
    fn run(&self) -> Result<(), Failure> {
        let ring = keys::read(&self.keys)?;
        let token = self.token()?;
        let flow = inspect::flow(&ring, &token, &TokenLimits::default())
            .map_err(|error| Failure::usage(format!("the token cannot be opened: {error}")))?;
        let shown = self.described(&flow);
        if self.json {
            output::json(&shown);
        } else {
            show(&shown);
        }
        Ok(())
    }

    /// Returns the token as it was given, or as a file has it.
    fn token(&self) -> Result<String, Failure> {
        let Some(file) = self.token.strip_prefix('@').map(PathBuf::from) else {
            return Ok(self.token.clone());
        };
        let text = files::read_text(Path::new(&file))?;
        let Ok(saved) = json::from_str::<Value>(&text) else { return Ok(text.trim().to_owned()) };
        let state = saved.pointer("/pending/state").or(Some(&saved)).and_then(Value::as_str);
        state.map(str::to_owned).ok_or_else(|| Failure::usage(format!("{} has no token", file.display())))
    }

    fn described(&self, flow: &inspect::Flow) -> Value {
        let claims = &flow.token.claims;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let binding: Map<String, Value> = claims
            .binding
            .digests()
            .into_iter()
            .map(|(name, digest)| {
                (name.to_owned(), digest.map_or(Value::Null, |digest| digest.to_string().into()))
            })
            .collect();
        let open = flow.entries.iter().filter(|entry| entry.kind == "open").map(|entry| entry.key.as_str());
        let journal = flow.entries.iter().filter(|entry| entry.kind != "open").map(|entry| self.entry(entry));
        json!({
            "flow": claims.flow.to_string(),
            "round": claims.round,
            "key": flow.token.key.to_string(),
            "suite": format!("{:?}", flow.token.suite),
            "started": utc(claims.started_at.as_unix()),
            "issued": utc(claims.issued_at.as_unix()),
            "expires": utc(claims.expires_at.as_unix()),
            "expired": claims.expires_at.as_unix() < now,
            "binding": binding,
            "open": open.collect::<Vec<_>>(),
            "journal": journal.collect::<Vec<_>>(),
        })
    }

    fn entry(&self, entry: &Entry) -> Value {
        let mut shown = json!({ "kind": entry.kind, "key": entry.key, "bytes": entry.value.len() });
        if self.show_answers {
            shown["value"] = json::from_str(&entry.value).unwrap_or_else(|_| entry.value.clone().into());
        }
        shown
    }
}

/// Prints what is known of a flow, a line each.
fn show(flow: &Value) {
    let text = |value: &Value| printable(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    for name in ["flow", "round", "key", "suite", "started", "issued", "expires"] {
        let late = if name == "expires" && flow["expired"] == true { " (over)" } else { "" };
        out!("{name:<10} {}{late}", text(&flow[name]));
    }
    for (name, digest) in flow["binding"].as_object().into_iter().flatten() {
        out!("{name:<10} {}", if digest.is_null() { "-".to_owned() } else { text(digest) });
    }
    for key in flow["open"].as_array().into_iter().flatten() {
        out!("{}", Screen::Out.rows("open       ", &text(key)));
    }
    for entry in flow["journal"].as_array().into_iter().flatten() {
        let value = match entry.get("value") {
            Some(value) => text(value),
            None => format!("({} bytes, masked)", entry["bytes"]),
        };
        let lead = format!("{:<10} ", text(&entry["kind"]));
        out!("{}", Screen::Out.rows(&lead, &format!("{} {value}", text(&entry["key"]))));
    }
}

/// Writes a time as UTC.
fn utc(unix: u64) -> String {
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    // Days since 1 March of year 0, in eras of 400 years: the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_shown_as_utc() {
        for (unix, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_785_000_000, "2026-07-25T17:20:00Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(unix), text);
        }
    }
}
