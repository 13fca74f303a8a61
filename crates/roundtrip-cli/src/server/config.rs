//! Configuration files of other clients: `mcpServers` (Claude, Cursor) and `servers` (VS Code).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use roundtrip::Client;
use roundtrip::wire::json;
use serde::Deserialize;
use serde_json::Value;

use super::variables::{self, Unfilled, Variables};
use super::{Written, address, all_quoted, env_file, jsonc, program, quoted};
use crate::ask::terminal;
use crate::exit::Failure;
use crate::files;
use crate::nearest::nearest;

/// Greatest size of a configuration file, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// Way to a server, with all variables filled in.
#[derive(Debug, PartialEq)]
pub(super) enum Reached {
    /// By HTTP.
    Http {
        /// URL of its endpoint.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
    /// By running it.
    Stdio {
        /// Program and arguments.
        words: Vec<String>,
        /// Variables of its environment, besides our own.
        env: Vec<(String, String)>,
        /// Folder to run it in.
        cwd: Option<PathBuf>,
    },
}

/// Entry of a configuration file.
#[derive(Deserialize, Default)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Value>,
    #[serde(rename = "envFile")]
    env_file: Option<String>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl Reached {
    /// Creates the way to a program.
    pub(super) fn command(words: &[String]) -> Self {
        Self::Stdio { words: words.to_vec(), env: Vec::new(), cwd: None }
    }

    /// Returns the URL of a server on HTTP, unless a header has the credentials already.
    pub(super) fn signs_in_at(&self, more: &[(String, String)]) -> Option<String> {
        let Self::Http { url, headers } = self else { return None };
        let mut names = headers.iter().chain(more).map(|(name, _)| name);
        (!names.any(|name| name.eq_ignore_ascii_case("authorization"))).then(|| url.clone())
    }

    /// Builds the client. Headers of the command line come after those of the file.
    pub(super) fn client(self, more: &[(String, String)]) -> Result<Client, Failure> {
        match self {
            Self::Http { url, headers } => {
                let client = Client::http(&url)?;
                let headers = headers.iter().chain(more);
                Ok(headers.fold(client, |client, (name, value)| client.header(name, value)))
            }
            Self::Stdio { .. } if !more.is_empty() => {
                Err(Failure::usage("`--header` is for servers on HTTP, and this one is a command"))
            }
            Self::Stdio { words, env, cwd } => Ok(Client::stdio(program::command(&words, env, cwd)?)),
        }
    }
}

/// Entry of a server as its file had it, with what else of the file counts for it.
struct Found {
    entry: Entry,
    inputs: Option<Value>,
    env_file: EnvFile,
}

/// File of variables that an entry names.
enum EnvFile {
    /// It was read with the entry.
    Read(Vec<(String, String)>),
    /// It cannot be read, for a reason.
    Unreadable(String),
    /// The user is asked for its path, when all are filled in.
    Asked,
}

impl EnvFile {
    /// Reads the file of an entry, if its path is known without a prompt.
    fn of(entry: &Entry, variables: &mut Variables) -> Self {
        match &entry.env_file {
            None => Self::Read(Vec::new()),
            Some(path) if variables::may_prompt(path) => Self::Asked,
            Some(path) => match read_env_file(path, variables) {
                Ok(read) => Self::Read(read),
                Err(Unfilled::Missing(why)) => Self::Unreadable(why),
                Err(Unfilled::Prompt(error)) => Self::Unreadable(error.to_string()),
            },
        }
    }

    /// Returns the variables, from a file that is read now if its path had to be asked for.
    fn variables(&self, entry: &Entry, variables: &mut Variables) -> Result<Vec<(String, String)>, Unfilled> {
        match (self, &entry.env_file) {
            (Self::Read(read), _) => Ok(read.clone()),
            (Self::Unreadable(why), _) => Err(why.as_str().into()),
            (Self::Asked, Some(path)) => read_env_file(path, variables),
            (Self::Asked, None) => Ok(Vec::new()),
        }
    }

    /// Returns what it adds, for people.
    fn written(&self, path: &str) -> Vec<String> {
        let file = format!("with the variables of the file {}", quoted(path));
        match self {
            Self::Read(read) => std::iter::once(format!("{file}:")).chain(read.iter().map(set)).collect(),
            Self::Unreadable(why) => vec![format!("{file}, which cannot be used: {why}")],
            Self::Asked => {
                vec![format!("{file}, whose path you are asked for first: they are not shown here")]
            }
        }
    }
}

/// Describes a variable that is set, for people.
fn set<N: AsRef<str>, V: AsRef<str>>((name, value): &(N, V)) -> String {
    format!("with the variable {}={}", quoted(name.as_ref()), quoted(value.as_ref()))
}

/// Reads a file of variables.
fn read_env_file(path: &str, variables: &mut Variables) -> Result<Vec<(String, String)>, Unfilled> {
    let file = variables.fill(path)?;
    let file = variables.workspace().join(file);
    let parsed = files::read_regular(&file, MAX_FILE).and_then(|text| env_file::parse(&text));
    Ok(parsed.map_err(|why| format!("`envFile` {}: {why}", file.display()))?)
}

/// Entry of a server, read once: what a user has been shown is what is used, whatever becomes of the file.
#[derive(Clone, Default)]
pub(crate) struct Reading(Arc<OnceLock<Found>>);

/// Two readings are of two servers only if their names say so.
impl PartialEq for Reading {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}

impl Reading {
    fn found(&self, file: &Path, name: &str) -> Result<&Found, Failure> {
        match self.0.get() {
            Some(found) => Ok(found),
            None => {
                let found = find(file, name)?;
                Ok(self.0.get_or_init(|| found))
            }
        }
    }

    /// Finds a server by its name in a file. The user may be asked for values.
    pub(super) fn look_up(&self, file: &Path, name: &str) -> Result<Reached, Failure> {
        let found = self.found(file, name)?;
        let mut variables = Variables::new(file, found.inputs.as_ref());
        found.filled(&mut variables).map_err(|unfilled| match unfilled {
            Unfilled::Missing(why) => wrong(file, &format!("`{name}`: {why}")),
            Unfilled::Prompt(error) => terminal::failure(error),
        })
    }

    /// Returns what a file has on a server, as it is written there: nothing is filled in.
    pub(super) fn written(&self, file: &Path, name: &str) -> Result<Written, Failure> {
        Ok(self.found(file, name)?.written())
    }
}

/// Returns the value of a variable, which may be a number.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn wrong(file: &Path, why: &dyn fmt::Display) -> Failure {
    Failure::usage(format!("{}: {why}", file.display()))
}

/// Reads the entry of a server.
fn find(file: &Path, name: &str) -> Result<Found, Failure> {
    let wrong = |why: &dyn fmt::Display| wrong(file, why);
    let text = files::read_regular(file, MAX_FILE).map_err(|why| wrong(&why))?;
    let whole: Value = json::from_str(&jsonc::plain(&text)).map_err(|error| wrong(&error))?;
    let servers = ["/mcpServers", "/servers", "/mcp/servers"].iter().find_map(|place| whole.pointer(place));
    let servers = servers
        .and_then(Value::as_object)
        .ok_or_else(|| wrong(&"it has neither `mcpServers` nor `servers`"))?;
    let entry = servers.get(name).ok_or_else(|| {
        let names = nearest(name, servers.keys().map(String::as_str));
        wrong(&format!("it has no server `{name}`{names}"))
    })?;
    let entry = json::from_value::<Entry>(entry).map_err(|error| wrong(&format!("`{name}`: {error}")))?;
    if let Some(url) = &entry.url {
        address::check(url).map_err(|why| wrong(&format!("`{name}`: {why}")))?;
    }
    let inputs = whole.get("inputs").cloned();
    let env_file = EnvFile::of(&entry, &mut Variables::new(file, inputs.as_ref()));
    Ok(Found { entry, inputs, env_file })
}

impl Found {
    fn written(&self) -> Written {
        let entry = &self.entry;
        if let Some(url) = &entry.url {
            let headers =
                entry.headers.iter().map(|(name, value)| format!("with the header {name}: {value}"));
            return Written { line: quoted(url), more: headers.collect(), runs: false };
        }
        let words: Vec<String> = entry.command.iter().chain(&entry.args).cloned().collect();
        let env = entry.env.iter().map(|(name, value)| set(&(name, as_text(value))));
        let file = entry.env_file.iter().flat_map(|path| self.env_file.written(path));
        let cwd = entry.cwd.iter().map(|cwd| format!("in the folder {}", quoted(cwd)));
        Written { line: all_quoted(&words), more: env.chain(file).chain(cwd).collect(), runs: true }
    }

    /// Fills the variables of the entry in.
    fn filled(&self, variables: &mut Variables) -> Result<Reached, Unfilled> {
        let entry = &self.entry;
        let mut env = self.env_file.variables(entry, variables)?;
        let mut fill = |text: &str| variables.fill(text);
        if let Some(url) = &entry.url {
            let headers = entry.headers.iter().map(|(name, value)| Ok((name.clone(), fill(value)?)));
            let headers = headers.collect::<Result<_, Unfilled>>()?;
            let url = fill(url)?;
            address::check(&url)?;
            return Ok(Reached::Http { url, headers });
        }
        let command = entry.command.as_deref().ok_or("it has neither `command` nor `url`")?;
        let words = std::iter::once(command).chain(entry.args.iter().map(String::as_str)).map(&mut fill);
        let words = words.collect::<Result<Vec<_>, _>>()?;
        for (name, value) in &entry.env {
            env.push((name.clone(), fill(&as_text(value))?));
        }
        let cwd = entry.cwd.as_deref().map(fill).transpose()?.map(PathBuf::from);
        Ok(Reached::Stdio { words, env, cwd })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: Value) -> Result<Reached, String> {
        let file = Path::new("/home/ada/shop/.vscode/mcp.json");
        let (entry, mut variables) = (serde_json::from_value(json).unwrap(), Variables::new(file, None));
        let env_file = EnvFile::of(&entry, &mut variables);
        let filled = Found { entry, inputs: None, env_file }.filled(&mut variables);
        filled.map_err(|unfilled| format!("{unfilled:?}"))
    }

    #[test]
    fn entries_of_all_clients_are_read() {
        let claude = serde_json::json!({
            "type": "stdio", "command": "npx", "args": ["-y", "server"],
            "env": { "KEY": "${ROUNDTRIP_NOT_SET:-none}", "PORT": 80 },
        });
        let env = vec![("KEY".to_owned(), "none".to_owned()), ("PORT".to_owned(), "80".to_owned())];
        let words = vec!["npx".to_owned(), "-y".to_owned(), "server".to_owned()];
        assert_eq!(entry(claude), Ok(Reached::Stdio { words, env, cwd: None }));
        let code = serde_json::json!({ "command": "${workspaceFolder}/server", "cwd": "${workspaceFolder}" });
        let words = vec!["/home/ada/shop/server".to_owned()];
        assert_eq!(
            entry(code),
            Ok(Reached::Stdio { words, env: vec![], cwd: Some("/home/ada/shop".into()) })
        );
        let http = serde_json::json!({ "type": "http", "url": "https://tools.example/mcp", "headers": { "x-key": "1" } });
        let headers = vec![("x-key".to_owned(), "1".to_owned())];
        assert_eq!(entry(http), Ok(Reached::Http { url: "https://tools.example/mcp".into(), headers }));
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        let missing =
            entry(serde_json::json!({ "url": "https://${env:ROUNDTRIP_NOT_SET}/mcp" })).unwrap_err();
        assert!(missing.contains("ROUNDTRIP_NOT_SET"), "{missing}");
        assert!(entry(serde_json::json!({ "args": [] })).unwrap_err().contains("neither"));
    }
}
