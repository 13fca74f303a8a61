//! Sets of cargo features: each builds without a warning and passes its tests.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Sets of features of the crate `roundtrip` whose tests are run, besides all of them: none; and all of the default but `legacy` and
/// authorization.
const TESTED: &[&str] = &["", "client,validation"];

/// Sets that are built: their tests run in those above and by default. `cargo xtask features` runs them in each.
const BUILT: &[&str] = &[
    "authorize",
    "client",
    "client,legacy,validation",
    "client,opentelemetry",
    "anyhow",
    "chrono,jiff,time,url,uuid",
    "client,http2",
    "legacy",
    "oauth",
    "opentelemetry",
    "validation",
];

/// Sets of features of the crate `roundtrip-store` that are built.
const STORES: &[&str] = &["", "sqlite", "postgres", "redis"];

/// Tests that depend on features. Doc tests, examples and the rest are built with all of them, in the other steps; so is
/// `abandoned`, a load test that takes a minute and uses nothing optional.
const TESTS: &[&str] = &[
    "--package",
    "roundtrip",
    "--lib",
    "--test",
    "spec",
    "--test",
    "client",
    "--test",
    "without_validation",
];

/// The library alone, without what its tests need: their dependencies have features that could hide a missing one.
const ALONE: &[&str] = &["--package", "roundtrip", "--lib"];

/// `cargo xtask features`: tests every set.
pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    anyhow::ensure!(arguments.is_empty(), "wanted nothing, not {arguments:?}");
    let sets = BUILT.iter().chain(TESTED);
    let mut tally = Tally::default();
    for set in sets {
        tally.count(tests_quietly(workspace, TESTS, set)?);
    }
    Ok(tally.is_green())
}

/// Builds every set and tests some; false when one of them warns or fails.
pub(crate) fn check(workspace: &Workspace) -> Result<bool> {
    let mut tally = Tally::default();
    tally.count(checks_alone(workspace)?);
    for &set in BUILT {
        tally.count(checks_quietly(workspace, TESTS, set)?);
    }
    for &set in TESTED {
        tally.count(tests_quietly(workspace, TESTS, set)?);
    }
    for &set in STORES {
        tally.count(checks_quietly(workspace, &["--package", "roundtrip-store", "--all-targets"], set)?);
    }
    Ok(tally.is_green())
}

/// Checks the types of tests with a set of features, without building them; false when the compiler has something to say.
fn checks_quietly(workspace: &Workspace, tests: &[&str], set: &str) -> Result<bool> {
    println!("features of {}: {}, built", tests[1], shown(set));
    let check = ["check", "--quiet", "--profile", "test", "--no-default-features", "--features", set];
    is_quiet(workspace, &[&check[..], tests].concat())
}

/// Checks the library as a server without features has it.
fn checks_alone(workspace: &Workspace) -> Result<bool> {
    println!("features of roundtrip: none, alone");
    is_quiet(workspace, &[&["check", "--quiet", "--no-default-features"], ALONE].concat())
}

fn shown(set: &str) -> &str {
    if set.is_empty() { "none" } else { set }
}

/// Runs the tests of a set even if there are warnings: one run tells everything.
fn tests_quietly(workspace: &Workspace, tests: &[&str], set: &str) -> Result<bool> {
    println!("features of {}: {}", tests[1], shown(set));
    let quiet = is_quiet(workspace, &cargo_test(tests, set, &["--no-run"]))?;
    let tests = cargo_test(tests, set, &["--no-fail-fast"]);
    Ok(process::show(&mut workspace.cargo(&tests))? && quiet)
}

fn cargo_test<'a>(tests: &[&'a str], set: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let features = ["test", "--quiet", "--no-default-features", "--features", set];
    [&features[..], tests, more].concat()
}

/// Runs a build, and shows the compiler's messages; false when there are any. They are read from the build that is needed anyway: a
/// lint run would compile everything a second time.
fn is_quiet(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    let mut build = workspace.cargo(arguments);
    build.arg("--message-format=json").stderr(std::process::Stdio::inherit());
    let output = build.output().context("running cargo")?;
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
