//! `cargo xtask conformance`: the official suite against our fixtures, one process a scenario, judged
//! strictly, by the list in `interop/conformance.list`.

mod list;
mod suite;
mod verdict;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};

pub(crate) use list::Leg;
use list::{Entry, Wanted};
use suite::{Run, Suite};
use verdict::Verdict;

use crate::fixture::{Fixtures, Server};
use crate::process;
use crate::side_by_side::side_by_side;
use crate::tally::Tally;
use crate::workspace::Workspace;

const LIST: &str = "interop/conformance.list";
const NEWEST: &str = "2026-07-28";
/// Argument of our server that switches SEP-2322's tasks on.
const SECOND_DIALECT: &str = "--sep-2322";

/// What to run; nothing given means the whole list.
#[derive(Debug, Default)]
struct Choice<'a> {
    leg: Option<Leg>,
    revision: Option<&'a str>,
    scenarios: Vec<&'a str>,
}

pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    let choice = parse(arguments)?;
    Ok(Tally::conclude(run(workspace, &choice)))
}

/// The whole list of one leg, at every revision it names.
pub(crate) fn leg(workspace: &Workspace, leg: Leg) -> Result<Tally> {
    run(workspace, &Choice { leg: Some(leg), ..Choice::default() })
}

fn parse<'a>(arguments: &[&'a str]) -> Result<Choice<'a>> {
    let mut choice = Choice::default();
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        if argument == "--spec" {
            choice.revision = Some(rest.next().context("--spec needs a revision")?);
        } else if argument.starts_with('-') {
            bail!("no such option: {argument}");
        } else if let (Some(leg), None, true) =
            (Leg::parse(argument), choice.leg, choice.scenarios.is_empty())
        {
            choice.leg = Some(leg);
        } else {
            choice.scenarios.push(argument);
        }
    }
    ensure!(
        choice.scenarios.is_empty() || choice.leg.is_some(),
        "say server or client before the scenario's name"
    );
    Ok(choice)
}

fn run(workspace: &Workspace, choice: &Choice<'_>) -> Result<Tally> {
    let file = workspace.root.join(LIST);
    let text = fs::read_to_string(&file).with_context(|| format!("reading {LIST}"))?;
    let entries = list::parse(&text).context(LIST)?;
    let suite = Suite::install(workspace)?;
    let fixtures = Fixtures::build(workspace)?;

    let mut tally = Tally::default();
    for leg in [Leg::Server, Leg::Client] {
        if choice.leg.is_some_and(|chosen| chosen != leg) {
            continue;
        }
        for revision in revisions(&entries, leg, choice) {
            println!("conformance {leg} {revision}");
            let listed: Vec<&Entry> =
                entries.iter().filter(|entry| entry.leg == leg && entry.revision == revision).collect();
            let (required, mut known) = suite.requirements(leg, revision)?;
            if known.is_empty() {
                // A name that the suite does not know leaves no result, which fails.
                known = listed.iter().map(|entry| entry.scenario.clone()).collect();
            }
            if choice.scenarios.is_empty() {
                for fault in list::faults(&listed, &required, &known) {
                    println!("FAIL  {LIST}: {fault}");
                    tally.count(false);
                }
            }
            let plan = match &choice.scenarios[..] {
                [] => list::plan(&listed, &known),
                names => names.iter().map(|&name| (name.to_owned(), named(&listed, name))).collect(),
            };
            let bench = Bench { workspace, suite: &suite, fixtures: &fixtures, leg, revision, flag: None };
            tally.add(bench.judge_all(&plan)?);
            if leg == Leg::Server && fixtures.is_our_server() {
                tally.add(bench.second_dialect().judge_all(&about_tasks(plan))?);
            }
        }
    }
    Ok(tally)
}

/// The scenarios about tasks, which run once more with SEP-2322's tasks switched on: these must change nothing for
/// requests that declare the extension.
fn about_tasks(plan: Vec<(String, Wanted)>) -> Vec<(String, Wanted)> {
    plan.into_iter().filter(|(scenario, _)| scenario.starts_with("tasks-")).collect()
}

fn revisions<'a>(entries: &'a [Entry], leg: Leg, choice: &Choice<'a>) -> BTreeSet<&'a str> {
    match (choice.revision, choice.scenarios.is_empty()) {
        (Some(revision), _) => BTreeSet::from([revision]),
        (None, false) => BTreeSet::from([NEWEST]),
        (None, true) => {
            entries.iter().filter(|entry| entry.leg == leg).map(|entry| entry.revision.as_str()).collect()
        }
    }
}

/// A scenario asked for by name must pass, whatever the list says of it.
fn named(listed: &[&Entry], name: &str) -> Wanted {
    let entry = listed.iter().find(|entry| entry.scenario == name).map(|entry| entry.wanted.clone());
    match entry {
        Some(wanted @ Wanted::Pass { .. }) => wanted,
        _ => Wanted::Pass { at_least: 1 },
    }
}

/// One leg at one revision.
struct Bench<'a> {
    workspace: &'a Workspace,
    suite: &'a Suite,
    fixtures: &'a Fixtures,
    leg: Leg,
    revision: &'a str,
    /// Argument of the server, which also marks the results.
    flag: Option<&'static str>,
}

impl Bench<'_> {
    /// Returns the same bench with servers that have both dialects of tasks.
    fn second_dialect(&self) -> Self {
        Self { flag: Some(SECOND_DIALECT), ..*self }
    }

    /// Judges scenarios side by side, each worker with a server of its own.
    fn judge_all(&self, plan: &[(String, Wanted)]) -> Result<Tally> {
        if let Some(flag) = self.flag.filter(|_| !plan.is_empty()) {
            println!("conformance {} {} {flag}", self.leg, self.revision);
        }
        side_by_side(plan.iter().collect(), |next| {
            let (mut tally, mut server) = (Tally::default(), None);
            while let Some((scenario, wanted)) = next() {
                if let Some(passed) = self.judge(scenario, wanted, &mut server)? {
                    tally.count(passed);
                }
            }
            Ok(tally)
        })
    }

    /// Runs a scenario and prints its line. A skipped scenario that fails, as it should, does not count.
    fn judge(&self, scenario: &str, wanted: &Wanted, server: &mut Option<Server>) -> Result<Option<bool>> {
        let at_least = if let Wanted::Pass { at_least } = wanted { *at_least } else { 1 };
        let verdict = self.run(scenario, at_least, server)?;
        let counts = format!(
            "{scenario:<48} {:>3} ok {:>3} failed {:>3} warnings {:>3} skipped",
            verdict.succeeded, verdict.failed, verdict.warned, verdict.skipped
        );
        match wanted {
            Wanted::Skip { reason } if !verdict.passed() => {
                println!("SKIP  {scenario:<48} {reason}");
                return Ok(None);
            }
            Wanted::Skip { reason } => {
                println!("FAIL  {counts}\n      it passes, but {LIST} skips it: {reason}");
                return Ok(Some(false));
            }
            Wanted::Pass { .. } => {}
        }
        // One print: the lines of two scenarios do not mix.
        let problems: String = verdict.problems.iter().map(|problem| format!("\n      {problem}")).collect();
        println!("{}  {counts}{problems}", if verdict.passed() { "PASS" } else { "FAIL" });
        Ok(Some(verdict.passed()))
    }

    fn run(&self, scenario: &str, at_least: usize, server: &mut Option<Server>) -> Result<Verdict> {
        let run = Run { leg: self.leg, revision: self.revision, flag: self.flag, scenario, at_least };
        if self.leg == Leg::Client {
            return self.suite.run(&run, &self.fixtures.client);
        }
        let running = match &mut *server {
            Some(server) => server,
            none => {
                let mut command = self.fixtures.server()?;
                command.args(self.flag);
                none.insert(Server::spawn(self.workspace, command)?)
            }
        };
        let mut verdict = self.suite.run(&run, &running.url)?;
        if !running.is_running() {
            verdict.problem(format!("the server did not survive it\n{}", process::tail(&running.log, 20)));
            *server = None; // the next scenario gets a new one
        }
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_command_line() {
        let choice = parse(&["client", "--spec", "2025-11-25", "initialize", "server"]).unwrap();
        assert_eq!((choice.leg, choice.revision), (Some(Leg::Client), Some("2025-11-25")));
        assert_eq!(choice.scenarios, ["initialize", "server"]);
        assert!(parse(&["tools-list"]).is_err(), "which leg?");
        assert!(parse(&["--spec"]).is_err() && parse(&["--sepc", "x"]).is_err());
        assert!(parse(&[]).unwrap().leg.is_none());
    }

    #[test]
    fn the_checked_in_list_makes_sense() {
        let text = include_str!("../../../interop/conformance.list");
        assert!(!list::parse(text).unwrap().is_empty());
    }
}
