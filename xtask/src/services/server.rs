//! [`Server`]: a server process, started again when it ends, ended when dropped.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::process;

/// Time for a server to start.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(50);

/// User ids that servers run as. PostgreSQL refuses to run as root.
pub(super) struct User(Option<u32>);

impl User {
    /// "nobody" if we are root, else ourselves.
    pub(super) fn unprivileged() -> Self {
        Self(is_root().then_some(65_534))
    }

    /// Creates a command that runs as this user in a folder of its own.
    pub(super) fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder);
        #[cfg(unix)]
        if let Some(id) = self.0 {
            use std::os::unix::process::CommandExt as _;
            command.uid(id).gid(id);
        }
        command
    }

    /// Gives a folder to this user.
    pub(super) fn own(&self, folder: &Path) -> Result<()> {
        #[cfg(unix)]
        if let Some(id) = self.0 {
            std::os::unix::fs::chown(folder, Some(id), Some(id))
                .with_context(|| format!("giving {} away", folder.display()))?;
        }
        Ok(())
    }
}

pub(super) fn is_root() -> bool {
    let said = Command::new("id").arg("-u").output();
    said.is_ok_and(|said| said.stdout.trim_ascii() == b"0")
}

/// A server process. Tests may end it: it is started again, so that they can see what a restart does.
pub(crate) struct Server {
    child: Arc<Mutex<Child>>,
    stopping: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts it, and waits until it is ready.
    pub(crate) fn start(
        mut command: Command,
        log: &Path,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<Self> {
        File::create(log)?;
        let child = Arc::new(Mutex::new(spawn(&mut command, log)?));
        let started = Instant::now();
        while !is_ready() {
            let ended = lock(&child).try_wait()?;
            if ended.is_some() || started.elapsed() > LIMIT {
                let _ = lock(&child).kill();
                anyhow::bail!("{command:?} is not ready\n{}", process::tail(log, 20));
            }
            std::thread::sleep(PAUSE);
        }
        let stopping = Arc::new(AtomicBool::new(false));
        let (kept, stop, log) = (Arc::clone(&child), Arc::clone(&stopping), log.to_path_buf());
        let keeper = std::thread::spawn(move || keep(&kept, &stop, command, &log));
        Ok(Self { child, stopping, keeper: Some(keeper) })
    }
}

/// Starts a server again whenever it has ended.
fn keep(child: &Mutex<Child>, stopping: &AtomicBool, mut command: Command, log: &Path) {
    while !stopping.load(Ordering::SeqCst) {
        let mut child = lock(child);
        if matches!(child.try_wait(), Ok(Some(_)))
            && let Ok(again) = spawn(&mut command, log)
        {
            *child = again;
        }
        drop(child);
        std::thread::sleep(PAUSE);
    }
}

fn spawn(command: &mut Command, log: &Path) -> Result<Child> {
    let out = OpenOptions::new().append(true).open(log)?;
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    command.spawn().with_context(|| format!("starting {command:?}"))
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Server {
    /// Asks it to end, which PostgreSQL needs to end its own children, and insists after a while.
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        let mut child = lock(&self.child);
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let asked = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && asked.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(PAUSE);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Returns whether a Redis answers at a port.
pub(super) fn pongs(port: u16) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        Ok(&answer == b"+PONG")
    };
    ask().unwrap_or(false)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_started_again_and_ended_with_its_owner() {
        let log = std::env::temp_dir().join(format!("xtask-server-{}.log", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo started; exec sleep 60"]);
        let read = log.clone();
        let starts = move || std::fs::read_to_string(&read).unwrap_or_default().lines().count();
        let ready = starts.clone();
        let server = Server::start(command, &log, move || ready() == 1).unwrap();
        let pid = || lock(&server.child).id().to_string();
        let first = pid();
        assert!(Command::new("kill").args(["-KILL", &first]).status().unwrap().success());
        while starts() < 2 {
            std::thread::sleep(PAUSE);
        }
        let second = pid();
        assert_ne!(first, second);
        drop(server);
        assert!(
            !Command::new("kill").args(["-0", &second]).stderr(Stdio::null()).status().unwrap().success()
        );
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_server_that_ends_at_once_is_an_error_with_its_output() {
        let log = std::env::temp_dir().join(format!("xtask-failing-{}.log", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such luck; exit 1"]);
        let error = Server::start(command, &log, || false).err().map(|error| format!("{error:#}"));
        assert!(error.as_deref().unwrap_or_default().contains("no such luck"), "{error:?}");
        std::fs::remove_file(log).unwrap();
    }
}
