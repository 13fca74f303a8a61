//! `cargo xtask test`: every check this project has, as steps.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::conformance::{self, Leg};
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{interop, process, spec};

/// Examples that are run: name, arguments, and what their output must contain.
const EXAMPLES: &[(&str, &[&str], &str)] = &[];

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// There was nothing to do, which is no success.
    Nothing,
}

impl From<bool> for Outcome {
    fn from(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

/// A step's name, whether `--quick` runs it too, and what it does.
type Step = (&'static str, bool, fn(&Workspace) -> Result<Outcome>);

const STEPS: &[Step] = &[
    ("tests", true, tests),
    ("doc tests", true, doc_tests),
    ("SPEC.md is fresh", true, |workspace| Ok(spec::check(workspace)?.into())),
    ("examples", true, examples),
    ("conformance server", false, |workspace| {
        Ok(Tally::conclude(conformance::leg(workspace, Leg::Server)).into())
    }),
    ("conformance client", false, |workspace| {
        Ok(Tally::conclude(conformance::leg(workspace, Leg::Client)).into())
    }),
    ("interop", false, |workspace| Ok(Tally::conclude(interop::all(workspace)).into())),
];

pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    let quick = match arguments {
        [] => false,
        ["--quick"] => true,
        other => bail!("wanted nothing or --quick, not {other:?}"),
    };
    let mut summary = Vec::new();
    let mut tally = Tally::default();
    for (name, in_quick, step) in STEPS {
        if quick && !in_quick {
            summary.push(format!("left out  {name}"));
            continue;
        }
        println!("--- {name}");
        // A step that cannot even run has failed; the others still tell what they know.
        let outcome = step(workspace).unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Outcome::Failed
        });
        if outcome != Outcome::Nothing {
            tally.count(outcome == Outcome::Passed);
        }
        let word = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Nothing => "nothing",
        };
        summary.push(format!("{word:<8}  {name}"));
    }
    println!("--- summary");
    for line in summary {
        println!("{line}");
    }
    println!("{tally}");
    Ok(tally.is_green())
}

fn has_nextest(workspace: &Workspace) -> bool {
    workspace.cargo(&["nextest", "--version"]).output().is_ok_and(|said| said.status.success())
}

fn tests(workspace: &Workspace) -> Result<Outcome> {
    let arguments: &[&str] = if has_nextest(workspace) {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace", "--tests"]
    };
    Ok(process::show(&mut workspace.cargo(arguments))?.into())
}

fn doc_tests(workspace: &Workspace) -> Result<Outcome> {
    Ok(process::show(&mut workspace.cargo(&["test", "--workspace", "--doc"]))?.into())
}

fn examples(workspace: &Workspace) -> Result<Outcome> {
    for name in unlisted(workspace)? {
        println!("not run, since xtask has no entry for it: {name}");
    }
    let mut tally = Tally::default();
    for (name, arguments, expected) in EXAMPLES {
        let mut command = workspace.cargo(&["run", "--quiet", "-p", "roundtrip", "--example", name, "--"]);
        let said = command.args(*arguments).output().with_context(|| format!("running example {name}"))?;
        let stdout = String::from_utf8_lossy(&said.stdout);
        let passed = said.status.success() && stdout.contains(expected);
        println!("{}  example {name}", if passed { "PASS" } else { "FAIL" });
        if !passed {
            println!("{}: wanted {expected:?} in\n{stdout}", said.status);
            println!("{}", String::from_utf8_lossy(&said.stderr));
        }
        tally.count(passed);
    }
    Ok(if tally == Tally::default() { Outcome::Nothing } else { Tally::conclude(Ok(tally)).into() })
}

/// Examples that exist and are not on the list above.
fn unlisted(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root.join("crates/roundtrip/examples");
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_example = path.extension().is_some_and(|ending| ending == "rs");
        if is_example && !EXAMPLES.iter().any(|(listed, ..)| *listed == name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
