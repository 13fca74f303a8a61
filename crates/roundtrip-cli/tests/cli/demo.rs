//! The demo shows what it promises, and leaves nothing behind.

#[cfg(unix)]
mod terminal;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

#[cfg(target_os = "linux")]
use crate::support::is_gone;

/// Returns the processes that a demo introduces, in its order.
fn processes(text: &str) -> Vec<u32> {
    let introduced = |line: &str| {
        let (_, pid) = line.trim().split_once("  process ").or_else(|| line.split_once("file: process "))?;
        pid.trim().parse().ok()
    };
    text.lines().filter_map(introduced).collect()
}

/// Returns the database that a demo introduces.
fn database(text: &str) -> PathBuf {
    let path = text.lines().map(str::trim).find(|line| line.ends_with("tasks.db"));
    PathBuf::from(path.unwrap_or_else(|| panic!("a file: {text}")))
}

/// Asserts that a text has these parts, in this order.
#[track_caller]
fn assert_in_order(mut rest: &str, parts: &[&str]) {
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} should come next in {rest}"));
        rest = &rest[at..];
    }
}

/// Without a terminal the answers are scripted. Each round goes to another process when the one before is gone, the
/// step runs once, and neither the token nor a question is shown twice.
#[test]
fn the_demo_passes_a_call_from_process_to_process() {
    let demo = Command::new(env!("CARGO_BIN_EXE_roundtrip")).arg("demo").output().unwrap();
    let text = String::from_utf8(demo.stdout).unwrap();
    assert!(demo.status.success(), "{text}{}", String::from_utf8_lossy(&demo.stderr));
    let pids = processes(&text);
    assert_eq!(BTreeSet::from_iter(&pids).len(), 3, "three processes: {text}");
    let parts = [
        "(no terminal: answers are scripted)",
        "client  calls book_table at Ann",
        "Ann     has a question",
        " characters)",
        &format!("Ann     is killed: process {} is gone", pids[0]),
        "> How many people? 2",
        "client  takes the answer and the token to Ben",
        "Ben     asks the restaurant for its deposit, once",
        "Ben     has another question",
        &format!("Ben     is killed: process {} is gone", pids[1]),
        "> Which day? The deposit is 40. 2026-12-24",
        "client  takes the answer and the token to Cem",
        "Cem     is done",
        "Nopa for 2 on 2026-12-24, deposit 40",
        "Try next",
    ];
    assert_in_order(&text, &parts);
    for once in [" characters)", "How many people?", "Which day?", "asks the restaurant"] {
        assert_eq!(text.matches(once).count(), 1, "{once:?} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "no line is wrapped: {text}");
    #[cfg(target_os = "linux")]
    assert!(pids.into_iter().all(is_gone), "{text}");
}

/// T7, T17: a task on SQLite outlives the processes that work on it: each is killed with SIGKILL while it asks, the next has the answer,
/// and the step ran once.
#[test]
fn the_demo_of_tasks_kills_its_workers() {
    let demo = Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(["demo", "--tasks"]).output().unwrap();
    let text = String::from_utf8(demo.stdout).unwrap();
    assert!(demo.status.success(), "{text}{}", String::from_utf8_lossy(&demo.stderr));
    let pids = processes(&text);
    assert_eq!(BTreeSet::from_iter(&pids).len(), 3, "three processes: {text}");
    let killed = |at: usize| format!("is killed: process {} is gone (signal: 9 (SIGKILL))", pids[at]);
    let parts = [
        "(no terminal: answers are scripted)",
        "Ann     is started",
        "client  calls book_table at Ann",
        "Ann     runs the handler",
        "Ann     has a question",
        &killed(0),
        "> How many people? 2",
        "Ben     is started",
        "client  answers the task at Ben",
        "Ben     runs the handler",
        "Ben     asks the restaurant for its deposit, once",
        "Ben     has a question",
        &killed(1),
        "> Which day? The deposit is 40. 2026-12-24",
        "client  answers the task at Cem",
        "Cem     runs the handler",
        "Cem     is done",
        "Nopa for 2 on 2026-12-24, deposit 40",
        "the handler ran 3 times",
        "deposit ran once",
        "Try next",
    ];
    assert_in_order(&text, &parts);
    assert_eq!(text.matches("asks the restaurant").count(), 1, "{text}");
    assert!(!database(&text).exists(), "nothing is left behind");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "no line is wrapped: {text}");
    #[cfg(target_os = "linux")]
    assert!(pids.into_iter().all(is_gone), "{text}");
}
