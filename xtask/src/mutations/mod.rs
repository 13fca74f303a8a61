//! `cargo xtask mutations`: switches off one check of authorization, of tasks, of JSON or of stored replies at a time, and shows
//! that a test notices.
//!
//! The sources are copied to a worktree of git below `target/mutations`, with what is not committed yet. There each check gets a
//! switch, which an environment variable turns: so the tests are built once for all mutations. With no check switched off each
//! test must succeed, and with its own it must not.

mod grants;
mod list;
mod records;
mod suite;
mod tasks;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::process;
use crate::workspace::Workspace;
use grants::GRANTS;
use list::AUTHORIZATION;
use records::RECORDS;
use suite::{Mutation, Suite};
use tasks::TASKS;

/// Environment variable that names the check which is switched off.
const SWITCH: &str = "ROUNDTRIP_MUTATION";
/// Longest time of a build, and of a test: a check that is off may leave a test waiting.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);
const TEST_LIMIT: Duration = Duration::from_secs(60);

fn all() -> impl Iterator<Item = &'static Mutation> {
    AUTHORIZATION.iter().chain(GRANTS).chain(TASKS).chain(RECORDS)
}

/// Runs all mutations, or the named ones; false when one goes unnoticed.
pub(crate) fn command(workspace: &Workspace, names: &[&str]) -> Result<bool> {
    for name in names {
        ensure!(all().any(|mutation| mutation.name == *name), "no such mutation: {name}");
    }
    let chosen = |mutation: &&Mutation| names.is_empty() || names.contains(&mutation.name);
    let chosen: Vec<&Mutation> = all().filter(chosen).collect();
    let copy = Copy::make(workspace)?;
    let tests =
        Tests { programs: copy.build(&chosen)?, sources: copy.sources(), folder: copy.folder.clone() };
    for mutation in &chosen {
        ensure!(!tests.is_red(mutation, None)?, "{} fails without a mutation", mutation.test);
    }
    let mut noticed = true;
    for mutation in chosen {
        let is_red = tests.is_red(mutation, Some(mutation.name))?;
        let verdict = if is_red { "noticed" } else { "NOT NOTICED" };
        println!("{verdict:<12} {:<4} {:<18} {}", mutation.rule, mutation.name, mutation.test);
        noticed &= is_red;
    }
    copy.remove()?;
    Ok(noticed)
}

/// Copy of the sources, with a target folder of its own.
struct Copy {
    repository: PathBuf,
    folder: PathBuf,
}

impl Copy {
    fn make(workspace: &Workspace) -> Result<Self> {
        let copy = Self { repository: workspace.root.clone(), folder: workspace.target.join("mutations") };
        // A run that was cut short has left one.
        copy.remove()?;
        let stash = process::output(copy.git().args(["stash", "create"]))?;
        let commit = if stash.trim().is_empty() { "HEAD" } else { stash.trim() };
        process::output(copy.git().args(["worktree", "add", "--detach"]).arg(copy.sources()).arg(commit))?;
        Ok(copy)
    }

    fn remove(&self) -> Result<()> {
        if self.sources().exists() {
            process::output(self.git().args(["worktree", "remove", "--force"]).arg(self.sources()))?;
        }
        Ok(())
    }

    fn git(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.repository);
        command
    }

    fn sources(&self) -> PathBuf {
        self.folder.join("sources")
    }

    /// Puts switches into the copy, and builds the tests of these mutations: the programs by their suites.
    fn build(&self, mutations: &[&Mutation]) -> Result<HashMap<&'static Suite, PathBuf>> {
        let mut programs = HashMap::new();
        for mutation in mutations {
            let file = self.sources().join(mutation.file);
            let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            fs::write(&file, mutation.apply(&text)?)?;
        }
        for mutation in mutations {
            if !programs.contains_key(mutation.suite) {
                programs.insert(mutation.suite, self.program(mutation.suite)?);
            }
        }
        Ok(programs)
    }

    /// Builds the tests of a suite. Without lines for backtraces, which nothing reads here.
    fn program(&self, suite: &Suite) -> Result<PathBuf> {
        let mut command = Command::new("cargo");
        command.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]);
        command.args(["--package", suite.package]).args(suite.target).current_dir(self.sources());
        command.env("CARGO_TARGET_DIR", self.folder.join("target"));
        command.env("CARGO_PROFILE_DEV_DEBUG", "false");
        let log = self.folder.join("build.log");
        process::quietly(&mut command, &log, BUILD_LIMIT)?;
        let built = fs::read_to_string(&log)?;
        built.lines().find_map(test_program).context("cargo has built no test")
    }
}

/// Reads a message of cargo: the path of a test binary, if it is about one.
fn test_program(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_test = message["profile"]["test"] == true;
    message["executable"].as_str().filter(|_| is_test).map(PathBuf::from)
}

/// Built tests.
struct Tests {
    programs: HashMap<&'static Suite, PathBuf>,
    sources: PathBuf,
    /// Folder of logs.
    folder: PathBuf,
}

impl Tests {
    /// Runs the test of a mutation, with a check switched off or none; true when it fails, or does not end.
    fn is_red(&self, mutation: &Mutation, off: Option<&str>) -> Result<bool> {
        let suite = mutation.suite;
        let mut command = Command::new(self.programs.get(suite).context("the suite is not built")?);
        command.current_dir(self.sources.join("crates").join(suite.package));
        command.args(["--exact", mutation.test]).env_remove(SWITCH).envs(off.map(|name| (SWITCH, name)));
        let log = self.folder.join(format!("{}.log", mutation.name));
        let ending = process::log(&mut command, &log, TEST_LIMIT)?;
        let ran = fs::read_to_string(&log)?.contains("running 1 test");
        ensure!(ran, "there is no test {}\n{}", mutation.test, process::tail(&log, 20));
        Ok(!ending.is_success())
    }
}

impl Mutation {
    /// Changes the text of a file, so that the check has a switch.
    fn apply(&self, text: &str) -> Result<String> {
        let places = text.matches(self.from).count();
        ensure!(places == 1, "{}: `{}` is {places} times in {}", self.name, self.from, self.file);
        let off = format!("::std::env::var_os({SWITCH:?}).is_some_and(|off| off == {:?})", self.name);
        Ok(text.replacen(self.from, &self.to.replace("OFF", &off), 1))
    }

    /// Returns whether the test is in the sources of its suite.
    #[cfg(test)]
    fn has_test(&self, root: &std::path::Path) -> bool {
        let name = self.test.rsplit("::").next().unwrap_or_default();
        let mut folders = vec![root.join(self.suite.folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("fn {name}("))) {
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list follows the sources: every mutation has its place, and its test.
    #[test]
    fn mutations_fit_the_sources() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for mutation in all() {
            let text = fs::read_to_string(root.join(mutation.file)).unwrap();
            assert!(mutation.to.contains("OFF"), "{}: nothing switches it", mutation.name);
            assert_ne!(mutation.apply(&text).unwrap(), text, "{}", mutation.name);
            assert!(mutation.has_test(root), "{}: no test {}", mutation.name, mutation.test);
        }
    }
}
