//! Signals and terminals that are closed: each ends a command as Ctrl-C does.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use roundtrip::{Server, Tool};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::Notify;

use crate::support::own::serve;
use crate::support::terminal::Terminal;
use crate::support::{Folder, ROUNDTRIP, command};

/// Returns the words of a call that takes long, to a server that does not end by itself. The server writes what it is sent into
/// `log`, and its own process into `pid`.
fn long_call(folder: &Folder) -> Vec<String> {
    let (log, pid) = (folder.path("log"), folder.path("pid"));
    let server = format!(
        "trap '' HUP INT QUIT; echo $$ > '{pid}'; tee '{log}' | '{ROUNDTRIP}' serve --stdio; sleep 600"
    );
    let words = ["call", "count", "--args", r#"{"to": 1000}"#, "--", "sh", "-c", &server];
    words.map(str::to_owned).to_vec()
}

/// Asserts that the call was cancelled, and that the server has ended with its group.
#[track_caller]
fn assert_ended(folder: &Folder) {
    let sent = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(sent.contains("notifications/cancelled"), "{sent}");
    #[cfg(target_os = "linux")]
    {
        let pid = std::fs::read_to_string(folder.path("pid")).unwrap();
        assert!(crate::support::is_gone(pid.trim().parse().unwrap()), "the server has ended");
    }
}

#[test]
fn every_signal_to_end_cancels_the_call_and_ends_the_server() {
    for signal in [Signal::TERM, Signal::HUP, Signal::QUIT] {
        let folder = Folder::new(&format!("signal-{}", signal.as_raw()));
        let words = long_call(&folder);
        let mut terminal = Terminal::start(&words.iter().map(String::as_str).collect::<Vec<_>>());
        terminal.shows("counting");
        terminal.signal(signal);
        terminal.shows("roundtrip: interrupted");
        assert!(terminal.is_restored());
        let (status, text) = terminal.ends();
        assert_eq!(status.code(), Some(130), "{signal:?}: {text}");
        assert_ended(&folder);
    }
}

/// The kernel sends SIGHUP to a process whose controlling terminal is closed.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_terminal_cancels_the_call_and_ends_the_server() {
    let folder = Folder::new("closed-terminal");
    let mut command = Command::new("setsid");
    command.args(["--ctty", ROUNDTRIP]).args(long_call(&folder)).env("NO_COLOR", "1");
    let mut terminal = Terminal::running(80, command);
    terminal.shows("counting");
    assert_eq!(terminal.close().code(), Some(130));
    assert_ended(&folder);
}

/// A terminal that shows results but gives no keys is not waited for: writing to it says that it has gone.
#[test]
fn a_result_for_a_terminal_that_has_gone_interrupts_the_command() {
    let server = Server::new("own", "1.0.0").tool(Tool::new("one", async || "one"));
    let catalog = server.catalog();
    let mut terminal = without_keys(&["listen", &serve(server)]);
    terminal.shows("listening for");
    terminal.shows("\n");
    terminal.hang_up();
    catalog.add(Tool::new("two", async || "two")).unwrap();
    assert_eq!(terminal.close().code(), Some(130));
}

/// A line of a trace that cannot be written any more is lost, and does not end the command before its call is over.
#[test]
fn a_trace_for_a_terminal_that_has_gone_does_not_panic() {
    let (go, waits) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let wait = {
        let (go, waits) = (Arc::clone(&go), Arc::clone(&waits));
        move || {
            let (go, waits) = (Arc::clone(&go), Arc::clone(&waits));
            async move {
                waits.notify_one();
                go.notified().await;
                "done"
            }
        }
    };
    let url = serve(Server::new("own", "1.0.0").tool(Tool::new("wait", wait)));
    let mut terminal = without_keys(&["call", &url, "wait", "--args", "{}", "--trace"]);
    terminal.shows("tools/call wait");
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(waits.notified());
    terminal.hang_up();
    go.notify_one();
    assert_eq!(terminal.close().code(), Some(130));
}

/// Starts the command in a terminal from which it reads no keys.
fn without_keys(words: &[&str]) -> Terminal {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" < /dev/null", "sh", ROUNDTRIP]).args(words);
    Terminal::running(200, command)
}

/// `nohup` starts a command that ignores hang-ups.
#[cfg(target_os = "linux")]
#[test]
fn a_command_that_ignores_hang_ups_survives_them() {
    let server = Server::new("own", "1.0.0").tool(Tool::new("one", async || "one"));
    let catalog = server.catalog();
    let mut listening = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", ROUNDTRIP, "listen", &serve(server)])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(listening.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("listening for"));
    kill_process(Pid::from_child(&listening), Signal::HUP).unwrap();
    catalog.add(Tool::new("two", async || "two")).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "the list of tools has changed");
    listening.kill().unwrap();
    listening.wait().unwrap();
}

#[test]
fn every_signal_to_end_ends_a_server() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let mut serving =
            command(&["serve", "--http", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(serving.stdout.take().unwrap()).read_line(&mut url).unwrap();
        kill_process(Pid::from_child(&serving), signal).unwrap();
        assert_eq!(serving.wait().unwrap().code(), Some(0), "{signal:?}");
    }
}
