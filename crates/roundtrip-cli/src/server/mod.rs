//! The server of a command: a URL, a command to run, or a name in a configuration file.

pub(crate) mod address;
mod config;
mod connection;
mod env_file;
mod jsonc;
mod program;
mod variables;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use roundtrip::Client;
use roundtrip::wire::ProtocolVersion;
use serde::{Deserialize, Serialize};

use crate::ask::terminal;
use crate::exit::Failure;
use config::{Reached, Reading};
pub(crate) use connection::Connection;

/// Options that say how to reach a server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connect {
    /// File with `mcpServers` or `servers`: SERVER is a name in it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Header of every request, for servers on HTTP
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Longest time for one request
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Revision of the protocol to speak, in place of finding out
    #[arg(long, value_name = "REVISION")]
    protocol: Option<String>,
}

/// A server by its URL, or by its name in a file.
#[derive(Args, Clone, Debug)]
pub(crate) struct NamedServer {
    /// URL of the server, or its name with `--config`
    server: String,
    /// File with `mcpServers` or `servers`: SERVER is a name in it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl NamedServer {
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        Endpoint::take(&mut vec![self.server.clone()], &[], self.config.as_ref())
    }
}

/// Reads a time in seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give seconds, such as 30 or 0.5".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("give a time that is more than nothing".to_owned()),
    }
}

/// A server, as the command line names it. This is kept in a saved flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Endpoint {
    /// URL of a server on HTTP.
    Url(String),
    /// Program to run, with its arguments.
    Command(Vec<String>),
    /// Name in a configuration file.
    Named {
        /// The file.
        config: PathBuf,
        /// The name.
        name: String,
        /// Entry of the file, once it is read.
        #[serde(skip)]
        reading: Reading,
    },
}

/// Command that runs, or URL that is asked, as it is written, for people.
pub(crate) struct Written {
    /// Command or URL.
    pub(crate) line: String,
    /// Variables, folders and headers, a line each.
    pub(crate) more: Vec<String>,
    /// True if it is a command.
    pub(crate) runs: bool,
}

impl Endpoint {
    /// Takes the server off the words of a command line: the command behind `--`, or else the first word.
    pub(crate) fn take(
        words: &mut Vec<String>,
        command: &[String],
        config: Option<&PathBuf>,
    ) -> Result<Self, Failure> {
        if !command.is_empty() {
            return Ok(Self::Command(command.to_vec()));
        }
        if words.is_empty() {
            return Err(Failure::usage(
                "which server? give its URL, a name with `--config`, or `-- command`",
            ));
        }
        let word = words.remove(0);
        if word.starts_with("http://") || word.starts_with("https://") {
            address::check(&word).map_err(Failure::usage)?;
            return Ok(Self::Url(word));
        }
        match config {
            Some(config) => Ok(Self::named(config, word)),
            None => Err(Failure::usage(format!(
                "`{}` is no URL: give http:// or https://, a name with `--config FILE`, or a command behind `--`",
                address::without_user_info(&word)
            ))),
        }
    }

    /// Creates the server of a name in a file.
    pub(crate) fn named(config: &Path, name: String) -> Self {
        Self::Named { config: config.to_owned(), name, reading: Reading::default() }
    }

    /// Returns how the server was reached, for people. No server can make this up.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Url(url) => match reqwest::Url::parse(url) {
                // Credentials in a URL are not for the screen.
                Ok(url) => {
                    format!("{}://{}", url.scheme(), url.authority().rsplit('@').next().unwrap_or_default())
                }
                Err(_) => url.clone(),
            },
            Self::Command(words) => words.first().cloned().unwrap_or_default(),
            Self::Named { name, .. } => name.clone(),
        }
    }

    /// Returns the words of a command of ours for this server, for people to type.
    pub(crate) fn words(&self, command: &str) -> String {
        match self {
            Self::Url(url) => format!("roundtrip {command} {}", quoted(url)),
            Self::Command(words) => format!("roundtrip {command} -- {}", all_quoted(words)),
            Self::Named { config, name, .. } => {
                let config = config.display().to_string();
                format!("roundtrip {command} --config {} {}", quoted(&config), quoted(name))
            }
        }
    }

    /// Returns the words that go on with a flow of this server, for people to type. What would run is among them.
    pub(crate) fn words_to_resume(&self, file: &Path) -> String {
        let resume = format!("roundtrip resume {}", quoted(&file.display().to_string()));
        match self {
            Self::Url(url) => format!("{resume} {}", quoted(url)),
            Self::Command(words) => format!("{resume} -- {}", all_quoted(words)),
            Self::Named { config, .. } => {
                format!("{resume} --config {}", quoted(&config.display().to_string()))
            }
        }
    }

    /// Returns what is behind this server, for people: nothing of a file is filled in.
    pub(crate) fn written(&self) -> Result<Written, Failure> {
        Ok(match self {
            Self::Url(url) => Written { line: quoted(url), more: Vec::new(), runs: false },
            Self::Command(words) => Written { line: all_quoted(words), more: Vec::new(), runs: true },
            Self::Named { config, name, reading } => reading.written(config, name)?,
        })
    }

    /// Finds the way to the server. The user may be asked for values of a file.
    async fn reached(&self) -> Result<Reached, Failure> {
        match self {
            Self::Url(url) => Ok(Reached::Http { url: url.clone(), headers: Vec::new() }),
            Self::Command(words) => Ok(Reached::command(words)),
            Self::Named { config, name, reading } => {
                let (config, name, reading) = (config.clone(), name.clone(), reading.clone());
                terminal::blocking(move || reading.look_up(&config, &name)).await
            }
        }
    }

    /// Returns the URL to sign in at, with all variables filled in.
    pub(crate) async fn url(&self) -> Result<String, Failure> {
        match self.reached().await? {
            Reached::Http { url, .. } => Ok(url),
            Reached::Stdio { .. } => {
                Err(Failure::usage("sign-ins are for servers on HTTP, and this one is a command"))
            }
        }
    }

    /// Builds the client of this server, and returns the URL to sign in at, unless a header has the credentials already.
    /// Nothing is sent yet.
    pub(crate) async fn client(&self, options: &Connect) -> Result<(Client, Option<String>), Failure> {
        let (reached, more) = (self.reached().await?, headers(&options.headers)?);
        let url = reached.signs_in_at(&more);
        let mut client = reached.client(&more)?.info("roundtrip-cli", env!("CARGO_PKG_VERSION"));
        if let Some(timeout) = options.timeout {
            client = client.timeout(timeout);
        }
        if let Some(revision) = &options.protocol {
            client = client.protocol(version(revision)?);
        }
        Ok((client, url))
    }
}

fn all_quoted(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell, where it needs that.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn version(revision: &str) -> Result<ProtocolVersion, Failure> {
    revision.parse().map_err(|_| {
        let known: Vec<&str> = ProtocolVersion::ALL.iter().map(|version| version.as_str()).collect();
        Failure::usage(format!("`--protocol {revision}`: the revisions are {}", known.join(", ")))
    })
}

/// Reads headers as they are given on the command line.
fn headers(given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let header = |text: &String| {
        let (name, value) = text
            .split_once(':')
            .ok_or_else(|| Failure::usage(format!("`--header {text}`: give `name: value`")))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    given.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(
        words: &[&str],
        command: &[&str],
        config: Option<&str>,
    ) -> Result<(Endpoint, Vec<String>), Failure> {
        let mut words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let command: Vec<String> = command.iter().map(ToString::to_string).collect();
        let endpoint = Endpoint::take(&mut words, &command, config.map(PathBuf::from).as_ref())?;
        Ok((endpoint, words))
    }

    #[test]
    fn a_server_is_a_url_a_command_or_a_name() {
        let (url, rest) = take(&["http://localhost/mcp", "greet"], &[], None).unwrap();
        assert_eq!((url, rest), (Endpoint::Url("http://localhost/mcp".into()), vec!["greet".to_owned()]));
        let (command, rest) = take(&["greet"], &["server", "--stdio"], None).unwrap();
        assert_eq!(command, Endpoint::Command(vec!["server".into(), "--stdio".into()]));
        assert_eq!(rest, ["greet"]);
        let (named, _) = take(&["shop", "greet"], &[], Some("mcp.json")).unwrap();
        assert_eq!(named, Endpoint::named(Path::new("mcp.json"), "shop".into()));
        assert!(take(&["shop", "greet"], &[], None).is_err());
        assert!(take(&[], &[], None).is_err());
    }

    #[test]
    fn words_can_be_typed() {
        let words = |url: &str| Endpoint::Url(url.into()).words("login");
        assert_eq!(words("https://tools.example/mcp"), "roundtrip login https://tools.example/mcp");
        assert_eq!(
            words("https://a.example/?b='c'&d"),
            r"roundtrip login 'https://a.example/?b='\''c'\''&d'"
        );
        let named = Endpoint::named(Path::new("my servers.json"), "shop".into());
        assert_eq!(named.words("login"), "roundtrip login --config 'my servers.json' shop");
        let file = Path::new("my flow.json");
        assert_eq!(named.words_to_resume(file), "roundtrip resume 'my flow.json' --config 'my servers.json'");
        let command = Endpoint::Command(vec!["sh".into(), "-c".into(), "exec x".into()]);
        assert_eq!(command.words_to_resume(file), "roundtrip resume 'my flow.json' -- sh -c 'exec x'");
    }

    #[test]
    fn a_label_has_no_credentials() {
        let url = Endpoint::Url("https://ada:secret@tools.example:8443/mcp?key=1".into());
        assert_eq!(url.label(), "https://tools.example:8443");
    }

    #[test]
    fn times_are_more_than_nothing() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "NaN", "inf", "1e300", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
