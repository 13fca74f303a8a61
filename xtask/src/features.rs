//! Sets of cargo features: each builds without a warning and passes its tests.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Features of the crate `roundtrip` that are built together, besides the default: none, each alone, all but `legacy`, the
/// default with `opentelemetry`, and the types of other crates.
const SETS: &[&str] = &[
    "",
    "client",
    "legacy",
    "validation",
    "opentelemetry",
    "client,validation",
    "client,legacy,validation,opentelemetry",
    "anyhow,chrono,jiff,time,url,uuid",
];

/// Tests that depend on features. Doc tests, examples and the rest are built with all of them, in the other steps; so is
/// `abandoned`, a load test that takes a minute and uses nothing optional.
const TESTS: &[&str] =
    &["--package", "roundtrip", "--lib", "--test", "spec", "--test", "client", "--test", "telemetry"];

/// Doc tests of a feature that is off in the other steps.
const DOC_TESTS: &[&str] =
    &["test", "--quiet", "--package", "roundtrip", "--features", "opentelemetry", "--doc", "telemetry"];

/// Builds and tests every set; false when one of them warns or fails.
pub(crate) fn check(workspace: &Workspace) -> Result<bool> {
    let mut tally = Tally::default();
    for &set in SETS {
        println!("features: {}", if set.is_empty() { "none" } else { set });
        // Tests are run even if there are warnings: one run tells everything.
        let quiet = builds_quietly(workspace, TESTS, set)?;
        let tests = cargo_test(TESTS, set, &["--no-fail-fast"]);
        tally.count(process::show(&mut workspace.cargo(&tests))? && quiet);
    }
    println!("doc tests: opentelemetry");
    tally.count(process::show(&mut workspace.cargo(DOC_TESTS))?);
    Ok(tally.is_green())
}

fn cargo_test<'a>(tests: &[&'a str], set: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let features = ["test", "--quiet", "--no-default-features", "--features", set];
    [&features[..], tests, more].concat()
}

/// Builds the tests of a set, and shows the compiler's messages; false when there are any. They are read from the build that
/// is needed anyway: a lint run would compile everything a second time.
pub(crate) fn builds_quietly(workspace: &Workspace, tests: &[&str], set: &str) -> Result<bool> {
    let mut build = workspace.cargo(&cargo_test(tests, set, &["--no-run", "--message-format=json"]));
    let output = build.stderr(std::process::Stdio::inherit()).output().context("running cargo test")?;
    let messages = messages(&String::from_utf8_lossy(&output.stdout));
    messages.iter().for_each(|message| println!("{message}"));
    Ok(output.status.success() && messages.is_empty())
}

/// Returns the warnings and errors in cargo's output.
fn messages(output: &str) -> Vec<String> {
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages = messages.filter(|message| message["reason"] == "compiler-message");
    messages.filter_map(|message| message["message"]["rendered"].as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_found_among_artifacts() {
        let output = r#"{"reason":"compiler-artifact","fresh":true}
not JSON: what a program prints
{"reason":"compiler-message","message":{"level":"warning","rendered":"warning: unused"}}
{"reason":"build-finished","success":true}"#;
        assert_eq!(messages(output), ["warning: unused"]);
    }

    #[test]
    fn a_set_replaces_the_default_features() {
        let command = cargo_test(TESTS, "client", &["--no-run"]).join(" ");
        assert!(
            command.contains("--no-default-features --features client --package roundtrip --lib"),
            "{command}"
        );
        assert!(command.ends_with("--no-run"), "{command}");
    }
}
