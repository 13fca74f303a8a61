//! `cargo xtask test`: every check this project has, as steps.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::conformance::{self, Leg};
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{features, interop, process, services, spec};

/// A step's name, whether `--quick` runs it too, and what it does.
type Step = (&'static str, bool, fn(&Workspace) -> Result<bool>);

const STEPS: &[Step] = &[
    ("tests", true, tests),
    ("doc tests", true, doc_tests),
    ("features", false, features::check),
    ("stores", false, services::check_stores),
    ("SPEC.md is fresh", true, spec::check),
    ("conformance server", false, |workspace| Ok(Tally::conclude(conformance::leg(workspace, Leg::Server)))),
    ("conformance client", false, |workspace| Ok(Tally::conclude(conformance::leg(workspace, Leg::Client)))),
    ("interop", false, |workspace| Ok(Tally::conclude(interop::all(workspace)))),
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
        let begun = Instant::now();
        // A step that cannot even run has failed; the others still tell what they know.
        let passed = step(workspace).unwrap_or_else(|error| {
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

fn tests(workspace: &Workspace) -> Result<bool> {
    // Some tests run examples as programs. Built here, they do not count against the time of a test.
    if !process::show(&mut workspace.cargo(&["build", "--quiet", "--workspace", "--examples"]))? {
        return Ok(false);
    }
    services::find_shells();
    let arguments: &[&str] = if has_nextest(workspace) {
        &["nextest", "run", "--workspace", "--no-fail-fast"]
    } else {
        &["test", "--workspace", "--tests", "--examples", "--no-fail-fast"]
    };
    process::show(&mut workspace.cargo(arguments))
}

fn doc_tests(workspace: &Workspace) -> Result<bool> {
    process::show(&mut workspace.cargo(&["test", "--workspace", "--doc"]))
}
