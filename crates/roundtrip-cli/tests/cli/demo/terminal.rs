//! The demo in a terminal.

use std::process::ExitStatus;

use rustix::process::Signal;

use super::processes;
use crate::support::terminal::Terminal;

fn demo(options: &[&str]) -> Terminal {
    Terminal::start(&[&["demo"], options].concat())
}

/// Waits for the end of the demo, which takes all its processes along, so many of them.
fn ends(terminal: Terminal, number: usize) -> (ExitStatus, String) {
    let (status, text) = terminal.ends();
    let pids = processes(&text);
    assert_eq!(pids.len(), number, "{text}");
    #[cfg(target_os = "linux")]
    pids.into_iter().for_each(crate::support::goes);
    (status, text)
}

#[test]
fn questions_are_answered_in_the_terminal() {
    let mut terminal = demo(&[]);
    terminal.shows("How many people?");
    terminal.press("13\r");
    terminal.shows("at most 12");
    terminal.press("\u{7f}\u{7f}4\r");
    terminal.shows("Which day? The deposit is 80.");
    terminal.press("2026-12-31\r");
    terminal.shows("Nopa for 4 on 2026-12-31, deposit 80");
    let (status, text) = ends(terminal, 3);
    assert!(status.success(), "{text}");
}

/// The worker of a task is killed before its question is shown, and the next one has the answer.
#[test]
fn questions_of_a_task_are_answered_in_the_terminal() {
    let mut terminal = demo(&["--tasks"]);
    terminal.shows("Ann     is killed");
    terminal.shows("How many people?");
    terminal.press("4\r");
    terminal.shows("answers the task at Ben");
    terminal.shows("Which day? The deposit is 80.");
    terminal.press("2026-12-31\r");
    terminal.shows("Nopa for 4 on 2026-12-31, deposit 80");
    let (status, text) = ends(terminal, 3);
    assert!(status.success() && text.contains("deposit ran once"), "{text}");
}

#[test]
fn ctrl_c_ends_a_demo_of_tasks_and_removes_its_files() {
    let mut terminal = demo(&["--tasks"]);
    terminal.shows("How many people?");
    terminal.press("\u{3}");
    terminal.shows("roundtrip: interrupted");
    let (status, text) = ends(terminal, 1);
    assert!(status.code() == Some(130) && !super::database(&text).exists(), "{text}");
}

/// A signal ends a demo as Ctrl-C does: its files are removed, its terminal is restored, and its processes end.
#[test]
fn signals_end_a_demo_and_remove_its_files() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let mut terminal = demo(&["--tasks"]);
        terminal.shows("How many people?");
        terminal.signal(signal);
        terminal.shows("roundtrip: interrupted");
        assert_eq!(terminal.process.wait().unwrap().code(), Some(130), "{signal:?}");
        assert!(terminal.is_restored(), "{signal:?}");
        let (_, text) = ends(terminal, 1);
        assert!(!super::database(&text).exists(), "{signal:?}: {text}");
    }
}

/// Esc is said to decline, and does: the next process is told so, and ends the call.
#[test]
fn escape_declines() {
    let mut terminal = demo(&[]);
    terminal.shows("Esc declines");
    terminal.shows("How many people?");
    terminal.press("\u{1b}");
    terminal.shows("<declined>");
    terminal.shows("the answer and the token to Ben");
    terminal.shows("the user declined to answer `party`");
    let (status, text) = ends(terminal, 3);
    assert!(status.success() && !text.contains("Which day?"), "{text}");
}

#[test]
fn ctrl_c_ends_the_demo_and_its_processes() {
    let mut terminal = demo(&[]);
    terminal.shows("How many people?");
    terminal.press("\u{3}");
    terminal.shows("roundtrip: interrupted");
    let (status, text) = ends(terminal, 3);
    assert!(status.code() == Some(130) && !text.contains("token to Ben"), "{text}");
}

/// A demo that is killed cannot end its processes: they notice by themselves.
#[test]
fn a_demo_that_is_killed_leaves_no_process_behind() {
    let mut terminal = demo(&[]);
    terminal.shows("How many people?");
    terminal.process.kill().unwrap();
    ends(terminal, 3);
}
