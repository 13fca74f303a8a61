//! The harness measures what it says it measures, and refuses what it should.

use std::{
    io,
    process::{Command, Output},
};

fn load(words: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_load")).args(words).output()
}

#[test]
fn measures_the_yardstick_in_every_scenario() {
    let limit = concat!("limit=", env!("CARGO_BIN_EXE_limit"));
    let few = ["--calls", "300", "--rounds", "1", "--connections", "100", "--abandoned", "300"];
    let output = load(&[&few[..], &["--format", "markdown", limit]].concat()).unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{complained}");
    for title in [
        "A plain call",
        "A flow of one question",
        "A flow of 50 rounds",
        "10,000 tools",
        "tools/list of 1,000 tools",
        "Memory",
        "Abandoned flows",
        "stdio",
    ] {
        assert!(said.contains(title), "{title} is missing from:\n{said}");
    }
    assert_eq!(said.lines().filter(|line| line.starts_with("| limit")).count(), 8, "{said}");
    assert!(!said.contains("NaN") && !said.contains("inf"), "{said}");
}

#[test]
fn measures_results_in_parts_of_the_yardstick_and_of_ours() {
    let servers = [
        concat!("limit=", env!("CARGO_BIN_EXE_limit")),
        concat!("ours=", env!("CARGO_BIN_EXE_bench-server")),
    ];
    let few = ["--only", "parts", "--calls", "1", "--rounds", "1", "--format", "markdown"];
    let output = load(&[&few[..], &servers[..]].concat()).unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{complained}");
    assert_eq!(
        said.lines().filter(|line| line.starts_with("| limit") || line.starts_with("| ours")).count(),
        2
    );
    assert!(!said.contains("NaN") && !said.contains("inf"), "{said}");
}

#[test]
fn presents_the_access_tokens_of_a_server() {
    let server = concat!("ours=", env!("CARGO_BIN_EXE_bench-server"), " --authorize EdDSA 3");
    let few = ["--only", "plain", "--calls", "100", "--rounds", "1"];
    let output = load(&[&few[..], &[server]].concat()).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let others = load(&["--only", "flow", "--calls", "1", "--rounds", "1", server]).unwrap();
    assert!(String::from_utf8_lossy(&others.stderr).contains("401"), "only plain calls present them");
}

#[test]
fn fails_on_a_server_that_answers_wrongly() {
    // It sends the request back, which holds the text but is no answer.
    let output = load(&["--only", "stdio", "mirror=sh -c cat"]).unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("mirror: a wrong answer"));
}

#[test]
fn fails_on_a_server_that_does_not_start() {
    let output = load(&["--only", "plain", "absent=/nonexistent"]).unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
}
