//! `cargo xtask test`: every check this project has, as steps.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::conformance::{self, Leg};
use crate::services::{self, Services};
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{features, interop, process, spec};

/// A step's name, whether `--quick` runs it too, and what it does.
type Step = (&'static str, bool, fn(&Workspace) -> Result<bool>);

const STEPS: &[Step] = &[
    ("tests", true, tests),
    ("doc tests", true, doc_tests),
    ("SPEC.md is fresh", true, spec::check),
    ("conformance server", false, |workspace| Ok(Tally::conclude(conformance::leg(workspace, Leg::Server)))),
    ("conformance client", false, |workspace| Ok(Tally::conclude(conformance::leg(workspace, Leg::Client)))),
    ("interop", false, |workspace| Ok(Tally::conclude(interop::all(workspace)))),
    ("features", false, features::check),
];

pub(crate) fn command(mut workspace: Workspace, arguments: &[&str]) -> Result<bool> {
    let quick = match arguments {
        [] => false,
        ["--quick"] => true,
        other => bail!("wanted nothing or --quick, not {other:?}"),
    };
    workspace.is_whole = !quick;
    let mut summary = Vec::new();
    let mut tally = Tally::default();
    for (name, in_quick, step) in STEPS {
        if quick && !in_quick {
            summary.push(format!("left out  {name}"));
            continue;
        }
        println!("--- {name}");
        let begun = Instant::now();
        // A step that cannot even run has failed; the others still tell what they know.
        let passed = step(&workspace).unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            false
        });
        tally.count(passed);
        let word = if passed { "passed" } else { "FAILED" };
        summary.push(format!("{word:<8}  {name}, {} s", begun.elapsed().as_secs()));
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

/// Runs the tests of all packages: on every database, unless this is the quick run.
fn tests(workspace: &Workspace) -> Result<bool> {
    // Some tests run examples as programs. Built here, they do not count against the time of a test.
    if !process::show(&mut workspace.cargo_on_all(&["build", "--quiet", "--bins", "--examples"]))? {
        return Ok(false);
    }
    let arguments: &[&str] = if has_nextest(workspace) {
        &["nextest", "run", "--no-fail-fast"]
    } else {
        &["test", "--tests", "--examples", "--no-fail-fast"]
    };
    let mut tests = workspace.cargo_on_all(arguments);
    if !workspace.is_whole {
        return process::show(&mut tests);
    }
    services::find_shells();
    let services = Services::start()?;
    Ok(process::show(services.set(&mut tests))? && services.are_complete())
}

fn doc_tests(workspace: &Workspace) -> Result<bool> {
    process::show(&mut workspace.cargo_on_all(&["test", "--doc"]))
}
