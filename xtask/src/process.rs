//! Running other programs: with a limit in time, and without leaving any of their children behind.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Exited(ExitStatus),
    TimedOut(Duration),
}

impl Ending {
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "{status}"),
            Self::TimedOut(limit) => write!(f, "no end, and nothing new for {} s", limit.as_secs()),
        }
    }
}

/// Runs a program whose output the user should see; false when it fails.
pub(crate) fn show(command: &mut Command) -> Result<bool> {
    Ok(command.status().with_context(|| format!("running {command:?}"))?.success())
}

/// Runs a program that must succeed, and returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let said = command.output().with_context(|| format!("running {command:?}"))?;
    anyhow::ensure!(said.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said.stderr));
    Ok(String::from_utf8(said.stdout)?)
}

/// Longest run of a program that always says something new, in limits.
const LONGEST: u32 = 10;

/// Runs a program with its output in a file. If it says nothing new for as long as the limit it is ended, and so is everything it
/// started: a busy machine makes a script of many checks slow, and a single one of them less so.
pub(crate) fn log(command: &mut Command, log: &Path, limit: Duration) -> Result<Ending> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let out = File::create(log).with_context(|| format!("making {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out.try_clone()?);
    own_group(command);
    let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    let started = Instant::now();
    let mut last_said = (0, started);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ending::Exited(status));
        }
        let length = out.metadata()?.len();
        if length != last_said.0 {
            last_said = (length, Instant::now());
        }
        if last_said.1.elapsed() > limit || started.elapsed() > limit * LONGEST {
            end_group(&mut child);
            return Ok(Ending::TimedOut(limit));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a program that must succeed; its output is shown only when it does not.
pub(crate) fn quietly(command: &mut Command, log_file: &Path, limit: Duration) -> Result<()> {
    let ending = log(command, log_file, limit)?;
    anyhow::ensure!(ending.is_success(), "{command:?}: {ending}\n{}", tail(log_file, 20));
    Ok(())
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path, lines: usize) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_group(_command: &mut Command) {}

/// Ends a child that leads its own group. The standard library cannot signal a group, so `kill` does it.
fn end_group(child: &mut Child) {
    if cfg!(unix) {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("xtask-{}-{name}.log", std::process::id()))
    }

    #[test]
    fn keeps_the_output_and_the_exit_status() {
        let log_file = scratch("status");
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let ending = log(&mut command, &log_file, Duration::from_secs(10)).unwrap();
        assert!(!ending.is_success());
        assert_eq!(tail(&log_file, 5), "one\ntwo");
        assert_eq!(tail(&log_file, 1), "two");
        fs::remove_file(log_file).unwrap();
    }

    #[test]
    fn a_program_that_says_something_is_given_time() {
        let log_file = scratch("talks");
        let mut command = Command::new("sh");
        command.args(["-c", "for n in 1 2 3 4; do echo $n; sleep 0.5; done"]);
        assert!(log(&mut command, &log_file, Duration::from_secs(1)).unwrap().is_success());
        assert_eq!(tail(&log_file, 5), "1\n2\n3\n4");
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do echo again; sleep 0.05; done"]);
        let limit = Duration::from_millis(200);
        assert_eq!(log(&mut command, &log_file, limit).unwrap(), Ending::TimedOut(limit));
        fs::remove_file(log_file).unwrap();
    }

    #[test]
    fn a_program_past_its_limit_is_ended_with_its_children() {
        let log_file = scratch("limit");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo $!; wait"]);
        let limit = Duration::from_millis(300);
        assert_eq!(log(&mut command, &log_file, limit).unwrap(), Ending::TimedOut(limit));
        let grandchild = tail(&log_file, 1);
        let gone = || {
            let state = Command::new("ps").args(["-o", "stat=", "-p", &grandchild]).output().unwrap();
            let state = String::from_utf8(state.stdout).unwrap();
            state.trim().is_empty() || state.trim().starts_with('Z')
        };
        assert!((0..50).any(|_| gone() || {
            std::thread::sleep(Duration::from_millis(20));
            false
        }));
        fs::remove_file(log_file).unwrap();
    }
}
