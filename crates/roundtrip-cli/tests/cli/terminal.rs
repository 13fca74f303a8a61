//! Questions in a pseudo-terminal: review, checks, refusal, interruption, width and colour.

use std::io::Write as _;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::terminal::{PATIENCE, Terminal};
use crate::support::{Folder, ROUNDTRIP, Served, ran};

const ESCAPE: &str = "\u{1b}";
/// A key that does nothing at the end of a line, nor in a list.
const RIGHT: &str = "\u{1b}[C";
/// Help of the prompt for a name: when it is there, keys are read one by one.
const NAME: &str = "Name to greet you by";

fn call(served: &Served, tool: &str) -> Terminal {
    Terminal::start(&["call", &served.url, tool])
}

#[track_caller]
fn ends(terminal: Terminal, code: i32) -> String {
    let (status, text) = terminal.ends();
    assert_eq!(status.code(), Some(code), "{text}");
    text
}

/// Missing arguments are asked for; answers are checked as they are typed, shown, edited and sent.
#[test]
fn answers_are_checked_reviewed_and_edited() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "book_table");
    terminal.answers("restaurant", "Nopa\r");
    terminal.shows("roundtrip-demo at http://127.0.0.1");
    terminal.shows("asks, for book_table");
    terminal.shows("| How many people?");
    terminal.answers("From 1 to 12; 1 to 12", "13\r");
    terminal.answers("at most 12", "\u{7f}\u{7f}3\r");
    terminal.shows("people: 3");
    terminal.answers("Send this?", "Edit\r");
    terminal.answers("Which one?", "\r");
    terminal.answers("From 1 to 12; 1 to 12", "\u{7f}4\r");
    terminal.shows("people: 4");
    terminal.answers("Send this?", "\r");
    terminal.shows("| Which day? The deposit is 80.");
    terminal.answers("date", "tomorrow\r");
    terminal.answers("date", &"\u{7f}".repeat(8));
    terminal.press("2026-12-31\r");
    terminal.shows("date: 2026-12-31");
    terminal.answers("Send this?", "\r");
    terminal.shows("Nopa for 4 on 2026-12-31, deposit 80");
    ends(terminal, 0);
}

/// Two questions of one round in their order, with choices, several choices, and a field that is left out. A default is taken by Enter.
#[test]
fn choices_are_picked() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "order_pizza");
    terminal.shows("| Which pizza?");
    terminal.answers("size", "\u{1b}[B\r");
    terminal.shows("toppings");
    // The first two; a third is one too many.
    terminal.press(" \u{1b}[B \u{1b}[B \r");
    terminal.answers("at most 2", " \r");
    terminal.shows("toppings:");
    terminal.answers("Send this?", "\r");
    terminal.shows("| Where to?");
    terminal.answers("Street", "Main Street\r");
    terminal.answers("Where to confirm", "\r");
    terminal.answers("Send this?", "\r");
    terminal.shows("Large with [Cheese, Olives] to Main Street, confirmed to nobody");
    ends(terminal, 0);
}

#[test]
fn a_question_is_declined_in_the_review() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "greet");
    terminal.answers(NAME, "Ada\r");
    terminal.answers("Send this?", "Decline\r");
    terminal.shows("declined");
    let text = ends(terminal, 4);
    assert!(!text.contains("Hello"), "{text}");
}

/// Escape leaves a prompt for a choice of what to do, and Escape there dismisses the question.
#[test]
fn escape_asks_what_to_do() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "greet");
    terminal.answers(NAME, ESCAPE);
    terminal.answers("What now?", "Go on\r");
    terminal.answers(NAME, ESCAPE);
    terminal.answers("What now?", ESCAPE);
    let text = ends(terminal, 4);
    assert!(text.contains("cancel") || text.contains("dismiss"), "{text}");
}

#[test]
fn ctrl_c_at_a_prompt_interrupts_the_call() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "greet");
    terminal.answers(NAME, "Ad\u{3}");
    terminal.shows("roundtrip: interrupted");
    ends(terminal, 130);
}

/// A signal from outside ends a prompt too, and gives the terminal back as it was.
#[test]
fn a_signal_restores_the_terminal() {
    let served = Served::start(&[]);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let mut terminal = call(&served, "greet");
        terminal.shows(NAME);
        terminal.press("A");
        terminal.shows("A");
        assert!(!terminal.is_restored(), "a prompt reads key by key");
        terminal.signal(signal);
        terminal.shows("roundtrip: interrupted");
        assert_eq!(terminal.process.wait().unwrap().code(), Some(130));
        assert!(terminal.is_restored());
    }
}

#[test]
fn ctrl_c_ends_what_waits_for_the_server() {
    let served = Served::start(&[]);
    let mut terminal = Terminal::start(&["listen", &served.url]);
    terminal.shows("listening for");
    terminal.signal(Signal::INT);
    ends(terminal, 130);
}

/// More than a pipe holds is taken only by a reader: when it is written, the command reads its standard input.
#[test]
fn ctrl_c_ends_what_waits_for_standard_input() {
    let served = Served::start(&[]);
    for options in [["--arg", "paths=a", "--args", "@-"], ["--arg", "paths=a", "--answers", "-"]] {
        let mut reading = Command::new(ROUNDTRIP);
        reading.args(["call", &served.url, "delete_files"]).args(options);
        reading.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut reading = reading.spawn().unwrap();
        let mut input = reading.stdin.take().unwrap();
        input.write_all(" ".repeat(1024 * 1024).as_bytes()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(&reading), Signal::INT).unwrap();
        let (send, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(reading.wait_with_output().unwrap()));
        let ended = ran(ended.recv_timeout(PATIENCE).unwrap()).exits(130);
        assert_eq!(ended.err, "roundtrip: interrupted\n");
        drop(input);
    }
}

/// The server is told, and the terminal given back, while a call is under way.
#[test]
fn ctrl_c_cancels_the_call() {
    let folder = Folder::new("cancelled");
    let log = folder.path("log");
    let script = format!("tee '{log}' | '{ROUNDTRIP}' serve --stdio");
    let call = ["call", "count", "--args", r#"{"to": 1000}"#, "--", "sh", "-c", &script];
    let mut terminal = Terminal::start(&call);
    terminal.shows("counting");
    terminal.signal(Signal::INT);
    terminal.shows("roundtrip: interrupted");
    assert!(terminal.is_restored());
    ends(terminal, 130);
    let sent = std::fs::read_to_string(log).unwrap();
    assert!(sent.contains("notifications/cancelled"), "{sent}");
}

/// A task outlives the command, which says how to find it again.
#[test]
fn ctrl_c_names_the_task_that_goes_on() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "report");
    terminal.shows("Publish 42 rows?");
    terminal.signal(Signal::INT);
    terminal.shows("roundtrip: interrupted");
    terminal.shows("roundtrip task wait --id ");
    ends(terminal, 130);
}

/// A server that is slow to start is waited for in sight.
#[test]
fn a_server_that_says_nothing_is_waited_for_in_sight() {
    for command in ["list", "listen"] {
        let mut terminal = Terminal::start(&[command, "--", "sleep", "60"]);
        terminal.shows("connecting to sleep");
        terminal.signal(Signal::INT);
        ends(terminal, 130);
    }
    let mut terminal = Terminal::start(&["call", "greet", "--", "sleep", "60"]);
    terminal.shows("connecting to sleep");
    terminal.signal(Signal::INT);
    ends(terminal, 130);
}

/// No signal says that a terminal is gone which is not the controlling one: prompts must not wait for its keys.
#[test]
fn a_command_ends_with_its_terminal() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "greet");
    terminal.shows(NAME);
    assert_eq!(terminal.close().code(), Some(130), "at a prompt");
    let mut terminal = Terminal::start(&["listen", &served.url]);
    // It may have more to write, or wait already.
    terminal.shows("listening for");
    assert_eq!(terminal.close().code(), Some(130), "while it waits");
    let mut terminal = Terminal::start(&["demo"]);
    terminal.shows("How many people?");
    assert_eq!(terminal.close().code(), Some(130), "a demo");
}

#[test]
fn a_narrow_terminal_without_colour_is_enough() {
    let served = Served::start(&[]);
    let mut terminal = Terminal::of_width(40, &["call", &served.url, "greet"]);
    terminal.answers(NAME, "Ada\r");
    terminal.answers("Send this?", "\r");
    terminal.shows("Hello, Ada!");
    let text = ends(terminal, 0);
    let is_colour =
        |code: &str| code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m');
    assert!(!text.split("\u{1b}[").skip(1).any(is_colour), "{text:?}");
}

#[test]
fn a_terminal_may_change_its_width_at_a_prompt() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "greet");
    terminal.answers(NAME, "A");
    terminal.shows("A");
    terminal.resize(40);
    terminal.press("da");
    terminal.shows_at_last("Ada", RIGHT);
    terminal.press("\r");
    terminal.shows_at_last("name: Ada", RIGHT);
    terminal.answers("Send this?", "\r");
    terminal.shows_at_last("Hello, Ada!", RIGHT);
    ends(terminal, 0);
}

/// E5: the server, the whole URL and its host are shown before consent, and the page is opened by the user.
#[test]
fn a_page_is_shown_before_consent() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "connect_account");
    terminal.shows("roundtrip-demo at http://127.0.0.1");
    terminal.shows("| Connect your account");
    terminal.shows("https://accounts.example/connect?app=roundtrip-demo");
    terminal.shows("host: accounts.example");
    terminal.answers("Visit this page?", "elsewhere\r");
    terminal.shows("thank you for visiting");
    ends(terminal, 0);
    let mut terminal = call(&served, "connect_account");
    terminal.answers("Visit this page?", "Decline\r");
    ends(terminal, 4);
}

/// A browser in the terminal does not keep the command from hearing a signal.
#[cfg(target_os = "linux")]
#[test]
fn a_browser_in_the_terminal_is_interrupted() {
    use std::os::unix::fs::PermissionsExt as _;
    let (served, folder) = (Served::start(&[]), Folder::new("text-browser"));
    let browser = folder.file("w3m", "#!/bin/sh\necho browsing\nread line\n");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(ROUNDTRIP);
    command.args(["call", &served.url, "connect_account"]).env("NO_COLOR", "1").env("BROWSER", browser);
    let mut terminal = Terminal::running(80, command);
    terminal.answers("Visit this page?", "Open\r");
    terminal.shows("browsing");
    terminal.signal(Signal::INT);
    terminal.shows("roundtrip: interrupted");
    assert_eq!(terminal.process.wait().unwrap().code(), Some(130));
}

#[test]
fn a_locale_without_all_characters_is_shown_escapes() {
    let served = Served::start(&[]);
    let mut command = Command::new(ROUNDTRIP);
    command.args(["call", &served.url, "greet"]).env("NO_COLOR", "1").env("LC_ALL", "C");
    let mut terminal = Terminal::running(80, command);
    terminal.answers(NAME, "Grüße\r");
    terminal.answers("Send this?", "\r");
    terminal.shows("Hello, Gr\\u{fc}\\u{df}e!");
    ends(terminal, 0);
}

/// Parts come while the call goes on, and progress leaves nothing behind.
#[test]
fn parts_and_progress_are_shown() {
    let served = Served::start(&[]);
    let mut terminal = call(&served, "story");
    terminal.shows("A crate was lost at sea. ");
    terminal.answers("confirm", "y\r");
    terminal.answers("Send this?", "\r");
    terminal.shows("It was found.");
    ends(terminal, 0);
    let mut terminal = call(&served, "count");
    terminal.shows("counting");
    terminal.shows("counted to 5");
    ends(terminal, 0);
}
