//! Judging one scenario from the checks it left behind, more strictly than the suite does.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process::Ending;

/// Outcome of one scenario.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    pub(crate) warned: usize,
    pub(crate) skipped: usize,
    /// Why it did not pass; empty when it did.
    pub(crate) problems: Vec<String>,
}

impl Verdict {
    pub(crate) fn passed(&self) -> bool {
        self.problems.is_empty()
    }

    /// Collects every `checks.json` below the folder.
    pub(crate) fn read(folder: &Path, ending: Ending, at_least: usize) -> Result<Self> {
        let mut checks = Vec::new();
        collect(folder, &mut checks)?;
        Ok(Self::of(&checks, ending, at_least))
    }

    /// The suite forgives warnings on the server leg, counts a scenario that observed nothing as green, and
    /// in places ignores how the tested program ended. Here each of these fails.
    fn of(checks: &[Value], ending: Ending, at_least: usize) -> Self {
        let mut verdict = Self::default();
        let mut exercised = 0;
        for check in checks {
            let id = check["id"].as_str().unwrap_or("a check without an id");
            match check["status"].as_str().unwrap_or_default() {
                "SUCCESS" => {
                    verdict.succeeded += 1;
                    // Well-formed messages alone do not show that the scenario happened.
                    exercised += usize::from(!id.starts_with("wire-schema-"));
                }
                "FAILURE" => {
                    verdict.failed += 1;
                    verdict.problem(format!("failure {id}: {}", explanation(check)));
                }
                "WARNING" => {
                    verdict.warned += 1;
                    verdict.problem(format!("warning {id}: {}", explanation(check)));
                }
                "SKIPPED" => verdict.skipped += 1,
                "INFO" => {}
                other => verdict.problem(format!("{id} has the unknown status {other:?}")),
            }
        }
        if checks.is_empty() {
            verdict.problem("the suite left no result".into());
        } else if exercised == 0 {
            verdict.problem("no check was exercised".into());
        } else if verdict.succeeded < at_least {
            verdict.problem(format!("{} successful checks, {at_least} are wanted", verdict.succeeded));
        }
        if !ending.is_success() {
            verdict.problem(format!("the run ended badly: {ending}"));
        }
        verdict
    }

    pub(crate) fn problem(&mut self, what: String) {
        if !self.problems.contains(&what) {
            self.problems.push(what);
        }
    }
}

fn explanation(check: &Value) -> String {
    let text = ["errorMessage", "description"]
        .iter()
        .find_map(|field| check[*field].as_str())
        .unwrap_or("no reason");
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

fn collect(folder: &Path, checks: &mut Vec<Value>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, checks)?;
        } else if path.file_name().is_some_and(|name| name == "checks.json") {
            let text = fs::read_to_string(&path)?;
            let found: Vec<Value> =
                serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
            checks.extend(found);
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn exit(code: i32) -> Ending {
        Ending::Exited(ExitStatus::from_raw(code << 8))
    }

    fn judge(statuses: &[(&str, &str)], ending: Ending, at_least: usize) -> Verdict {
        let checks: Vec<Value> = statuses
            .iter()
            .map(|(id, status)| json!({ "id": id, "status": status, "errorMessage": "why" }))
            .collect();
        Verdict::of(&checks, ending, at_least)
    }

    #[test]
    fn successes_and_a_clean_exit_pass() {
        let verdict = judge(&[("a", "SUCCESS"), ("wire-schema-valid", "SUCCESS"), ("b", "INFO")], exit(0), 2);
        assert!(verdict.passed(), "{verdict:?}");
        assert_eq!((verdict.succeeded, verdict.failed), (2, 0));
    }

    #[test]
    fn a_warning_fails() {
        let verdict = judge(&[("a", "SUCCESS"), ("b", "WARNING")], exit(0), 1);
        assert_eq!(verdict.problems, ["warning b: why"]);
    }

    #[test]
    fn a_crash_and_a_timeout_fail() {
        assert!(!judge(&[("a", "SUCCESS")], exit(1), 1).passed());
        assert!(!judge(&[("a", "SUCCESS")], Ending::TimedOut(Duration::from_secs(1)), 1).passed());
    }

    #[test]
    fn a_run_that_observed_nothing_fails() {
        assert_eq!(judge(&[], exit(0), 1).problems, ["the suite left no result"]);
        for idle in [("wire-schema-valid", "SUCCESS"), ("a", "SKIPPED"), ("a", "INFO")] {
            assert_eq!(judge(&[idle], exit(0), 1).problems, ["no check was exercised"]);
        }
    }

    #[test]
    fn too_few_successes_fail() {
        let verdict = judge(&[("a", "SUCCESS"), ("b", "SUCCESS")], exit(0), 3);
        assert_eq!(verdict.problems, ["2 successful checks, 3 are wanted"]);
    }
}
