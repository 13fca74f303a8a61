//! The demo in a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};

use super::processes;

/// Time for anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A demo in a terminal of 80 columns, killed when dropped.
struct Terminal {
    demo: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    /// Everything written so far, with its escape sequences.
    text: String,
}

impl Terminal {
    fn start() -> Self {
        Self::playing(&["demo"])
    }

    fn playing(demo: &[&str]) -> Self {
        let size = Winsize { ws_row: 40, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let end = |fd: &OwnedFd| fd.try_clone().unwrap();
        let demo = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
            .args(demo)
            .env("NO_COLOR", "1")
            .stdin(end(&pty.slave))
            .stdout(end(&pty.slave))
            .stderr(end(&pty.slave))
            .spawn()
            .unwrap();
        let (send, output) = mpsc::channel();
        let mut screen = File::from(end(&pty.master));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when the last process that has the terminal ends.
            while let Ok(size @ 1..) = screen.read(&mut buffer) {
                if send.send(buffer[..size].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { demo, keyboard: File::from(pty.master), output, text: String::new() }
    }

    /// Waits until the demo has written this.
    fn shows(&mut self, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.text.contains(what) {
            let left = deadline.saturating_duration_since(Instant::now());
            let chunk =
                self.output.recv_timeout(left).unwrap_or_else(|_| panic!("no {what:?} in {}", self.text));
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end of the demo, which takes all its processes along, so many of them.
    fn ends(mut self, number: usize) -> (ExitStatus, String) {
        let status = self.demo.wait().unwrap();
        while let Ok(chunk) = self.output.recv_timeout(PATIENCE) {
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
        let text = std::mem::take(&mut self.text);
        let pids = processes(&text);
        assert_eq!(pids.len(), number, "{text}");
        #[cfg(target_os = "linux")]
        {
            let deadline = Instant::now() + PATIENCE;
            while !pids.iter().copied().all(super::is_gone) {
                assert!(Instant::now() < deadline, "{pids:?} go on");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        (status, text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.demo.kill();
        let _ = self.demo.wait();
    }
}

#[test]
fn questions_are_answered_in_the_terminal() {
    let mut terminal = Terminal::start();
    terminal.shows("How many people?");
    terminal.press("13\r");
    terminal.shows("at most 12");
    terminal.press("\u{7f}\u{7f}4\r");
    terminal.shows("Which day? The deposit is 80.");
    terminal.press("2026-12-31\r");
    terminal.shows("Nopa for 4 on 2026-12-31, deposit 80");
    let (status, text) = terminal.ends(3);
    assert!(status.success(), "{text}");
}

/// The worker of a task is killed before its question is shown, and the next one has the answer.
#[test]
fn questions_of_a_task_are_answered_in_the_terminal() {
    let mut terminal = Terminal::playing(&["demo", "--tasks"]);
    terminal.shows("Ann     is killed");
    terminal.shows("How many people?");
    terminal.press("4\r");
    terminal.shows("answers the task at Ben");
    terminal.shows("Which day? The deposit is 80.");
    terminal.press("2026-12-31\r");
    terminal.shows("Nopa for 4 on 2026-12-31, deposit 80");
    let (status, text) = terminal.ends(3);
    assert!(status.success() && text.contains("deposit ran once"), "{text}");
}

#[test]
fn ctrl_c_ends_a_demo_of_tasks_and_removes_its_files() {
    let mut terminal = Terminal::playing(&["demo", "--tasks"]);
    terminal.shows("How many people?");
    terminal.press("\u{3}");
    terminal.shows("roundtrip: interrupted");
    let (status, text) = terminal.ends(1);
    assert!(!status.success() && !super::database(&text).exists(), "{text}");
}

/// Esc is said to decline, and does: the next process is told so, and ends the call.
#[test]
fn escape_declines() {
    let mut terminal = Terminal::start();
    terminal.shows("Esc declines");
    terminal.shows("How many people?");
    terminal.press("\u{1b}");
    terminal.shows("<declined>");
    terminal.shows("the answer and the token to Ben");
    terminal.shows("the user declined to answer `party`");
    let (status, text) = terminal.ends(3);
    assert!(status.success() && !text.contains("Which day?"), "{text}");
}

#[test]
fn ctrl_c_ends_the_demo_and_its_processes() {
    let mut terminal = Terminal::start();
    terminal.shows("How many people?");
    terminal.press("\u{3}");
    terminal.shows("roundtrip: interrupted");
    let (status, text) = terminal.ends(3);
    assert!(!status.success() && !text.contains("token to Ben"), "{text}");
}

/// A demo that is killed cannot end its processes: they notice by themselves.
#[test]
fn a_demo_that_is_killed_leaves_no_process_behind() {
    let mut terminal = Terminal::start();
    terminal.shows("How many people?");
    terminal.demo.kill().unwrap();
    terminal.ends(3);
}
