//! The official suite: installing it, what it requires, and running one of its scenarios.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::list::Leg;
use super::verdict::Verdict;
use crate::workspace::Workspace;
use crate::{install, process};

const PACKAGE: &str = "@modelcontextprotocol/conformance";
/// Npm's `latest` is an older release that does not know revision 2026-07-28.
const VERSION: &str = "0.2.0-alpha.12";
/// First revision that the suite has requirements for.
const FIRST_REQUIREMENTS: &str = "2025-11-25";
/// What a scenario may take by the suite's own clock, and by ours.
const SCENARIO_MS: &str = "30000";
const SCENARIO_LIMIT: Duration = Duration::from_secs(120);

/// One run of a scenario.
pub(crate) struct Run<'a> {
    pub(crate) leg: Leg,
    pub(crate) revision: &'a str,
    /// Argument of the server, if it has one.
    pub(crate) flag: Option<&'a str>,
    pub(crate) scenario: &'a str,
    /// Fewest successful checks.
    pub(crate) at_least: usize,
}

/// The installed suite.
#[derive(Debug)]
pub(crate) struct Suite {
    node: PathBuf,
    package: PathBuf,
    results: PathBuf,
}

impl Suite {
    pub(crate) fn install(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.interop().join("conformance");
        let installed = folder.join("suite");
        install::npm_package(&installed, &format!("{PACKAGE}@{VERSION}"))?;
        Ok(Self {
            node: install::node(workspace)?,
            package: installed.join("node_modules").join(PACKAGE),
            results: folder.join("results"),
        })
    }

    /// The scenarios that a revision requires of a leg, and all that it runs. None of either for a revision before the
    /// suite's first requirements.
    pub(crate) fn requirements(
        &self,
        leg: Leg,
        revision: &str,
    ) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
        let file = self.package.join("requirements").join(format!("{revision}.yaml"));
        if revision < FIRST_REQUIREMENTS {
            return Ok(Default::default());
        }
        let text = fs::read_to_string(&file)
            .with_context(|| format!("the suite has no requirements for revision {revision}"))?;
        let required = required(&text, leg);
        anyhow::ensure!(!required.is_empty(), "{} names no {leg} scenario", file.display());
        let mut known = required.clone();
        known.extend(unscored(&text, leg));
        Ok((required, known))
    }

    /// Runs one scenario in a process of its own. The target is a URL (server) or a command (client).
    pub(crate) fn run(&self, run: &Run<'_>, target: &str) -> Result<Verdict> {
        let Run { leg, revision, flag, scenario, at_least } = *run;
        let results = self.results.join(format!("{leg}-{revision}{}", flag.unwrap_or_default()));
        let folder = results.join(scenario.replace('/', "_"));
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("emptying {}", folder.display()))?;
        }
        fs::create_dir_all(&folder)?;
        let mut command = Command::new(&self.node);
        command.arg(self.package.join("dist").join("index.js")).arg(leg.name());
        command.args([if leg == Leg::Server { "--url" } else { "--command" }, target]);
        // Without --force a scenario that is off the revision's timeline is skipped, and that exits 0.
        command.args([
            "--scenario",
            scenario,
            "--spec-version",
            revision,
            "--force",
            "--timeout",
            SCENARIO_MS,
        ]);
        command.arg("-o").arg(&folder);
        let ending = process::log(&mut command, &folder.join("suite.log"), SCENARIO_LIMIT)?;
        Verdict::read(&folder, ending, at_least)
    }
}

/// The items below `server:` or `client:` of a requirements file. Its layout is frozen with the release
/// that is pinned above, and plain enough to read without a YAML parser.
fn required(text: &str, leg: Leg) -> BTreeSet<String> {
    let head = format!("{leg}:");
    text.lines()
        .skip_while(|line| *line != head)
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with([' ', '#']))
        .filter_map(|line| line.trim().strip_prefix("- "))
        .map(|name| name.trim().to_owned())
        .collect()
}

/// The entries of `not_scored:` that belong to the leg.
fn unscored(text: &str, leg: Leg) -> Vec<String> {
    let mut names = Vec::new();
    let mut current = None;
    for line in text.lines().skip_while(|line| *line != "not_scored:").skip(1) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("- scenario:") {
            current = Some(name.trim());
        } else if line.strip_prefix("leg:").is_some_and(|found| found.trim() == leg.name()) {
            names.extend(current.take().map(String::from));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# frozen\n\nserver:\n  - tools-list\n  # a remark\n  - ping\n\nclient:\n  - auth/basic\n\n\
        not_scored:\n  - scenario: tasks-one\n    leg: server\n    reason: extension\n  - scenario: auth/dpop\n    \
        leg: client\n    reason: extension\n";

    #[test]
    fn reads_what_is_required_and_what_is_not_scored() {
        let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>();
        assert_eq!(list(required(FILE, Leg::Server)), ["ping", "tools-list"]);
        assert_eq!(list(required(FILE, Leg::Client)), ["auth/basic"]);
        assert_eq!(unscored(FILE, Leg::Server), ["tasks-one"]);
        assert_eq!(unscored(FILE, Leg::Client), ["auth/dpop"]);
    }
}
