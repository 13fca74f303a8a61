//! `cargo xtask mutations`: switches off one security check at a time, and shows that a test notices.
//!
//! The sources are copied to a worktree of git below `target/mutations`, with what is not committed yet. There each check is
//! changed, its test built, which must succeed, and run, which must not.

mod list;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::process;
use crate::workspace::Workspace;
use list::{MUTATIONS, Mutation, Suite};

/// Longest time of a build, and of a test: a check that is off may leave a test waiting.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);
const TEST_LIMIT: Duration = Duration::from_secs(120);

/// Runs all mutations, or the named ones; false when one goes unnoticed.
pub(crate) fn command(workspace: &Workspace, names: &[&str]) -> Result<bool> {
    for name in names {
        ensure!(MUTATIONS.iter().any(|mutation| mutation.name == *name), "no such mutation: {name}");
    }
    let chosen = |mutation: &&Mutation| names.is_empty() || names.contains(&mutation.name);
    let chosen: Vec<&Mutation> = MUTATIONS.iter().filter(chosen).collect();
    let copy = Copy::make(workspace)?;
    copy.check_unchanged(&chosen)?;
    let mut noticed = true;
    for mutation in chosen {
        let is_red = copy.try_out(mutation)?;
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

    fn cargo(&self, suite: &Suite) -> Command {
        let mut command = Command::new("cargo");
        command.arg("test").args(suite.arguments).current_dir(self.sources());
        command.env("CARGO_TARGET_DIR", self.folder.join("target"));
        command
    }

    /// Runs the tests on the sources as they are: a test that is red by itself notices nothing.
    fn check_unchanged(&self, mutations: &[&Mutation]) -> Result<()> {
        for mutation in mutations {
            self.build(mutation)?;
            ensure!(!self.is_red(mutation)?, "{} fails without a mutation", mutation.test);
        }
        Ok(())
    }

    fn try_out(&self, mutation: &Mutation) -> Result<bool> {
        let file = self.sources().join(mutation.file);
        let original = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        fs::write(&file, mutation.apply(&original)?)?;
        let is_red = self.build(mutation).and_then(|()| self.is_red(mutation));
        fs::write(&file, original)?;
        is_red
    }

    fn build(&self, mutation: &Mutation) -> Result<()> {
        let mut command = self.cargo(mutation.suite);
        process::quietly(command.arg("--no-run"), &self.log(mutation), BUILD_LIMIT)
    }

    /// Runs the test of a mutation; true when it fails, or does not end.
    fn is_red(&self, mutation: &Mutation) -> Result<bool> {
        let mut command = self.cargo(mutation.suite);
        let log = self.log(mutation);
        let ending = process::log(command.args(["--", "--exact", mutation.test]), &log, TEST_LIMIT)?;
        let ran = fs::read_to_string(&log)?.contains("running 1 test");
        ensure!(ran, "there is no test {}\n{}", mutation.test, process::tail(&log, 20));
        Ok(!ending.is_success())
    }

    fn log(&self, mutation: &Mutation) -> PathBuf {
        self.folder.join(format!("{}.log", mutation.name))
    }
}

impl Mutation {
    /// Changes the text of a file.
    fn apply(&self, text: &str) -> Result<String> {
        let places = text.matches(self.from).count();
        ensure!(places == 1, "{}: `{}` is {places} times in {}", self.name, self.from, self.file);
        Ok(text.replacen(self.from, self.to, 1))
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
        for mutation in MUTATIONS {
            let text = fs::read_to_string(root.join(mutation.file)).unwrap();
            assert_ne!(mutation.apply(&text).unwrap(), text, "{}", mutation.name);
            assert!(mutation.has_test(root), "{}: no test {}", mutation.name, mutation.test);
        }
    }
}
