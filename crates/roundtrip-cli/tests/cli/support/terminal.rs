//! The command in a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use rustix::event::{PollFd, PollFlags};

use super::{DATA, ROUNDTRIP};

/// Time for anything that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The command in a terminal, killed when dropped.
pub(crate) struct Terminal {
    pub(crate) process: Child,
    keyboard: Option<File>,
    /// End of a pair of sockets, and the thread that reads the screen: closed, the end stops it.
    reading: Option<(UnixStream, JoinHandle<()>)>,
    output: Receiver<Vec<u8>>,
    /// Everything written so far, with its escape sequences.
    pub(crate) text: String,
    /// Place behind the last text that was waited for.
    seen: usize,
}

impl Terminal {
    /// Starts the command in 80 columns, without colours.
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::of_width(80, words)
    }

    pub(crate) fn of_width(columns: u16, words: &[&str]) -> Self {
        let mut command = Command::new(ROUNDTRIP);
        command.args(words).env("NO_COLOR", "1").env("XDG_DATA_HOME", DATA);
        Self::running(columns, command)
    }

    pub(crate) fn running(columns: u16, mut command: Command) -> Self {
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        // A process that inherits this end keeps the terminal open.
        rustix::io::fcntl_setfd(&pty.master, rustix::io::FdFlags::CLOEXEC).unwrap();
        let end = |fd: &OwnedFd| fd.try_clone().unwrap();
        command.stdin(end(&pty.slave)).stdout(end(&pty.slave)).stderr(end(&pty.slave));
        let process = command.spawn().unwrap();
        // The command keeps ends of the terminal, which would hide that the process has gone.
        drop(command);
        let (send, output) = mpsc::channel();
        let (reading, stopped) = UnixStream::pair().unwrap();
        let screen = File::from(end(&pty.master));
        let reader = std::thread::spawn(move || read(screen, &stopped, &send));
        let (keyboard, reading) = (Some(File::from(pty.master)), Some((reading, reader)));
        Self { process, keyboard, reading, output, text: String::new(), seen: 0 }
    }

    /// Waits until the command has written this, behind what was waited for before.
    #[track_caller]
    pub(crate) fn shows(&mut self, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.text[self.seen..].find(what) {
                self.seen += at + what.len();
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.text.push_str(&String::from_utf8_lossy(&chunk)),
                Err(_) => panic!("no {what:?} in {}", self.text),
            }
        }
    }

    /// Waits as [`shows`](Self::shows) does, and presses a key from time to time: where a resize and a key come at once, the
    /// library that reads keys looks at the key only when the next one comes.
    #[track_caller]
    pub(crate) fn shows_at_last(&mut self, what: &str, key: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.text[self.seen..].contains(what) && Instant::now() < deadline {
            match self.output.recv_timeout(Duration::from_millis(200)) {
                Ok(chunk) => self.text.push_str(&String::from_utf8_lossy(&chunk)),
                Err(_) => self.press(key),
            }
        }
        self.shows(what);
    }

    fn keyboard(&self) -> &File {
        self.keyboard.as_ref().unwrap()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text, and presses keys.
    #[track_caller]
    pub(crate) fn answers(&mut self, what: &str, keys: &str) {
        self.shows(what);
        self.press(keys);
    }

    /// Changes the width of the terminal, and tells the process.
    pub(crate) fn resize(&mut self, columns: u16) {
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(self.keyboard(), size).unwrap();
        // It is not the process's controlling terminal, which would be told by the system.
        self.signal(rustix::process::Signal::WINCH);
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Returns whether the terminal shows what is typed, and reads it by lines, as a shell expects.
    pub(crate) fn is_restored(&self) -> bool {
        let flags = tcgetattr(self.keyboard()).unwrap().local_flags;
        flags.contains(LocalFlags::ICANON | LocalFlags::ECHO)
    }

    /// Takes the terminal away.
    pub(crate) fn hang_up(&mut self) {
        drop(self.keyboard.take());
        if let Some((reading, reader)) = self.reading.take() {
            drop(reading);
            reader.join().unwrap();
        }
    }

    /// Takes the terminal away. Returns how the command ended for it.
    pub(crate) fn close(mut self) -> ExitStatus {
        self.hang_up();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the command goes on: {}", self.text);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end of the command.
    pub(crate) fn ends(mut self) -> (ExitStatus, String) {
        let status = self.process.wait().unwrap();
        while let Ok(chunk) = self.output.recv_timeout(PATIENCE) {
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
        (status, std::mem::take(&mut self.text))
    }
}

/// Reads the screen until the last process that has the terminal ends, or reading is stopped.
fn read(mut screen: File, stopped: &UnixStream, send: &Sender<Vec<u8>>) {
    let mut buffer = [0; 4096];
    loop {
        let mut ready = [PollFd::new(&screen, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        rustix::event::poll(&mut ready, None).unwrap();
        if !ready[1].revents().is_empty() {
            return;
        }
        match screen.read(&mut buffer) {
            Ok(size @ 1..) if send.send(buffer[..size].to_vec()).is_ok() => {}
            _ => return,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
