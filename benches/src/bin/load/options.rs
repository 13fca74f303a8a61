//! The command line.

use std::{path::PathBuf, time::Duration};

use crate::Fail;

const USAGE: &str = "usage: load [--calls N] [--rounds N] [--seconds N] [--connections N] [--abandoned N] \
[--tasks N] [--stored N] [--disk FOLDER] [--only plain,flow,rounds,tools,list,memory,abandoned,stdio,parts,tasks,stored,results,workers] [--instructions] [--allocations] [--format text|markdown] NAME=COMMAND ...";

const SCENARIOS: [&str; 8] = ["plain", "flow", "rounds", "tools", "list", "memory", "abandoned", "stdio"];

/// Scenarios that run only when they are named: they need a server of parts, or of tasks.
const NAMED_SCENARIOS: [&str; 5] = ["parts", "tasks", "stored", "results", "workers"];

/// Options: the scenarios and the servers to measure.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) calls: usize,
    pub(crate) rounds: usize,
    /// Longest time for one round of one server.
    pub(crate) window: Duration,
    pub(crate) connections: usize,
    /// Flows that are begun and abandoned.
    pub(crate) abandoned: usize,
    /// Tasks that are created in a round.
    pub(crate) tasks: usize,
    /// Tasks that are stored and wait.
    pub(crate) stored: usize,
    /// Folder whose file system is asked for its syncs.
    pub(crate) disk: PathBuf,
    only: Vec<String>,
    pub(crate) instructions: bool,
    pub(crate) allocations: bool,
    pub(crate) markdown: bool,
    pub(crate) servers: Vec<Contender>,
}

/// A server to be measured.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    command: Vec<String>,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Fail> {
        let mut options = Self {
            calls: 20_000,
            rounds: 7,
            window: Duration::from_secs(5),
            connections: 10_000,
            abandoned: 100_000,
            tasks: 5_000,
            stored: 100_000,
            disk: std::env::temp_dir(),
            only: SCENARIOS.map(str::to_owned).to_vec(),
            instructions: false,
            allocations: false,
            markdown: false,
            servers: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| Fail::from(format!("{word} needs a value")));
            match word.as_str() {
                "--calls" => options.calls = positive(&value()?)?,
                "--rounds" => options.rounds = positive(&value()?)?,
                "--seconds" => options.window = Duration::from_secs(positive(&value()?)? as u64),
                "--connections" => options.connections = positive(&value()?)?,
                "--abandoned" => options.abandoned = positive(&value()?)?,
                "--tasks" => options.tasks = positive(&value()?)?,
                "--stored" => options.stored = positive(&value()?)?,
                "--disk" => options.disk = value()?.into(),
                "--only" => options.only = scenarios(&value()?)?,
                "--instructions" => options.instructions = true,
                "--allocations" => options.allocations = true,
                "--format" => match value()?.as_str() {
                    "text" => options.markdown = false,
                    "markdown" => options.markdown = true,
                    other => return Err(format!("no such format: {other}").into()),
                },
                server => options.servers.push(Contender::parse(server)?),
            }
        }
        if options.servers.is_empty() { Err(USAGE.into()) } else { Ok(options) }
    }

    pub(crate) fn wants(&self, scenario: &str) -> bool {
        self.only.iter().any(|name| name == scenario)
    }

    /// Returns the index of the server that ratios refer to.
    pub(crate) fn yardstick(&self) -> usize {
        self.servers.iter().position(|server| server.name == "limit").unwrap_or(0)
    }
}

impl Contender {
    fn parse(word: &str) -> Result<Self, Fail> {
        match word.split_once('=') {
            Some((name, command)) if !name.starts_with('-') && !command.trim().is_empty() => {
                let command = command.split_whitespace().map(str::to_owned).collect();
                Ok(Self { name: name.to_owned(), command })
            }
            _ => Err(format!("neither an option nor NAME=COMMAND: {word}\n{USAGE}").into()),
        }
    }

    /// Returns the words of the command line that starts a server with these arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Vec<String> {
        let args = || args.iter().map(|&arg| arg.to_owned());
        match self.command.iter().position(|word| word == "{args}") {
            Some(place) => {
                let mut words = self.command.clone();
                words.splice(place..=place, args());
                words
            }
            None => self.command.iter().cloned().chain(args()).collect(),
        }
    }
}

fn positive(value: &str) -> Result<usize, Fail> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("not a positive number: {value}").into()),
    }
}

fn scenarios(list: &str) -> Result<Vec<String>, Fail> {
    let names: Vec<String> = list.split(',').map(str::to_owned).collect();
    let known = [&SCENARIOS[..], &NAMED_SCENARIOS[..]].concat();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(format!("no such scenario: {unknown}; there are {}", known.join(", ")).into()),
        None => Ok(names),
    }
}
