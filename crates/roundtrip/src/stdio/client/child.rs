//! One child process: started in a group of its own, written to by one task, read and finally reaped by another.

use std::fmt;
use std::ops::Range;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::task::coop::consume_budget;
use tokio::time::timeout;

use super::inbox::Inbox;
use super::stderr::LastWords;
use crate::client::{Error, PeerMisbehaved, Sent, Unreachable};
use crate::stdio::MAX_LINE;
use crate::stdio::lines::{Line, Lines, piece};

/// Time for a child to end by itself, and again after SIGTERM (I3).
const GRACE: Duration = Duration::from_secs(2);
/// Time to read the pipes of a dead child to their end: other processes may hold them open.
const DRAIN: Duration = Duration::from_millis(500);
/// Most requests that may wait to be written.
const QUEUE: usize = 64;
/// Most lines in a row that are not messages: banners and logs are passed over, a child that writes nothing else is given up.
const MAX_STRANGE: usize = 1000;

/// Starts children, as often as needed.
pub(super) struct Launcher {
    command: CommandWrap,
    program: String,
    /// Counts children, to tell them apart.
    lives: u64,
}

impl Launcher {
    pub(super) fn new(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let mut command = CommandWrap::from(command);
        command.wrap(KillOnDrop);
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        Self { command, program, lives: 0 }
    }

    pub(super) fn start(&mut self) -> Result<Child, Error> {
        self.lives += 1;
        let life = self.lives;
        let program = &self.program;
        let mut child = self.command.spawn().map_err(|error| Error::Unreachable {
            why: Unreachable::NoConnection(format!("cannot start `{program}`: {error}")),
            sent: Sent::No,
            cause: Some(Box::new(error)),
        })?;
        let pipes = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        let leash = Leash { child, over: false };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Error::closed_by_server(format!("`{program}` came without its pipes"), Sent::No));
        };
        tracing::debug!(program, "server process started");
        let inbox = Arc::new(Inbox::default());
        let words = LastWords::default();
        let (queue, queued) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let supervisor = Supervisor {
            leash,
            output: Output::new(stdout),
            writer: tokio::spawn(write(stdin, queued)),
            stderr: tokio::spawn(words.clone().listen(program.clone(), stderr)),
            words,
            inbox: Arc::clone(&inbox),
            program: program.clone(),
        };
        let places = Arc::new(Semaphore::new(QUEUE));
        let supervisor = tokio::spawn(supervisor.run(stopped));
        Ok(Child { life, inbox, queue, places, _stop: stop, supervisor })
    }
}

/// A child that runs, or did when last checked. Dropping it ends it, in the background.
pub(super) struct Child {
    /// Number of this child.
    pub(super) life: u64,
    pub(super) inbox: Arc<Inbox>,
    /// The only strong sender: when it is dropped, the child's standard input is closed.
    queue: mpsc::UnboundedSender<Queued>,
    places: Arc<Semaphore>,
    /// Never sent on: dropping it is the signal.
    _stop: oneshot::Sender<()>,
    supervisor: JoinHandle<()>,
}

type Queued = (Bytes, Option<OwnedSemaphorePermit>);

impl Child {
    pub(super) fn writer(&self) -> Writer {
        Writer { queue: self.queue.downgrade(), places: Arc::clone(&self.places) }
    }

    /// Begins to end the child; returns the task that ends with it.
    pub(super) fn stop(self) -> JoinHandle<()> {
        self.supervisor
    }
}

/// Writes lines to a child, without keeping it alive. A task of its own does the writing, so that a cancelled caller
/// never cuts a line short.
#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::WeakUnboundedSender<Queued>,
    places: Arc<Semaphore>,
}

impl Writer {
    /// Waits for a place in the queue; returns whether the line got there.
    pub(super) async fn write(&self, line: Bytes) -> bool {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        self.queue.upgrade().is_some_and(|queue| queue.send((line, place)).is_ok())
    }

    /// Queues a short line that must not wait.
    pub(super) fn write_now(&self, line: Bytes) {
        if let Some(queue) = self.queue.upgrade() {
            let _ = queue.send((line, None));
        }
    }
}

async fn write(mut stdin: ChildStdin, mut queued: mpsc::UnboundedReceiver<Queued>) {
    while let Some((line, place)) = queued.recv().await {
        if let Err(error) = stdin.write_all(&line).await {
            tracing::debug!(%error, "the server process takes no more input");
            return;
        }
        drop(place);
    }
}

/// The process. When this is dropped, the whole group is killed.
struct Leash {
    child: Box<dyn ChildWrapper>,
    /// True once the group has been killed, after its leader was waited for: its number may soon be reused.
    over: bool,
}

impl Leash {
    /// Kills the rest of the group.
    fn kill(&mut self) {
        // Most often there is no process left to kill.
        let _ = self.child.start_kill();
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if !self.over {
            self.kill();
        }
    }
}

struct Output {
    stdout: ChildStdout,
    lines: Lines,
    buffer: Vec<u8>,
    /// Part of the buffer that has not been split into lines.
    unread: Range<usize>,
    /// Number of lines since the last message.
    strange: usize,
}

impl Output {
    fn new(stdout: ChildStdout) -> Self {
        Self { stdout, lines: Lines::new(MAX_LINE), buffer: vec![0; 64 * 1024], unread: 0..0, strange: 0 }
    }

    /// Routes the child's output until it closes its standard output, or has written too much that is not a message. Can be
    /// dropped and resumed.
    async fn pump(&mut self, inbox: &Inbox) {
        while !self.is_given_up() {
            if self.unread.is_empty() {
                match self.stdout.read(&mut self.buffer).await {
                    Ok(size @ 1..) => self.unread = 0..size,
                    _ => return,
                }
            }
            // A line costs far more than the bytes that were read: other tasks, and timers, get their turn in between.
            consume_budget().await;
            self.route_next(inbox);
        }
    }

    /// Routes the next line of the buffer.
    fn route_next(&mut self, inbox: &Inbox) {
        let unread = piece(&self.buffer[self.unread.clone()]);
        let strange = &mut self.strange;
        self.unread.start += self.lines.feed_while(unread, |line| {
            match line {
                Line::Whole(line) if inbox.route(line) => *strange = 0,
                Line::Whole(_) => *strange += 1,
                // The request it belongs to is unknown.
                Line::TooLong => inbox.fail(|| {
                    let why = format!("it wrote a line longer than {} MiB", MAX_LINE >> 20);
                    PeerMisbehaved::TooLarge(why).into()
                }),
            }
            false
        });
    }

    fn is_given_up(&self) -> bool {
        self.strange >= MAX_STRANGE
    }
}

struct Supervisor {
    leash: Leash,
    output: Output,
    writer: JoinHandle<()>,
    stderr: JoinHandle<()>,
    words: LastWords,
    inbox: Arc<Inbox>,
    program: String,
}

impl Supervisor {
    /// Runs from the child's first line to its end.
    async fn run(mut self, stopped: oneshot::Receiver<()>) {
        let (exited, deaf) = tokio::select! {
            () = self.output.pump(&self.inbox) => (None, true),
            status = self.leash.child.wait() => (status.ok(), true),
            _ = stopped => (None, false),
            _ = &mut self.writer => (None, true),
        };
        if deaf {
            self.writer.abort();
        }
        if self.output.is_given_up() {
            let why = format!(
                "`{}` was given up: it wrote {MAX_STRANGE} lines in a row that are not messages",
                self.program
            );
            self.inbox.end(&format!("{why}{}", self.words.quoted()));
        }
        let status = match exited {
            Some(status) => {
                let _ = timeout(DRAIN, self.output.pump(&self.inbox)).await;
                Some(status)
            }
            None => self.end().await,
        };
        // Processes the child has left in its group are killed too, which closes the pipes.
        self.leash.kill();
        self.leash.over = status.is_some();
        let _ = timeout(DRAIN, &mut self.stderr).await;
        let shown = status.map_or_else(|| "it did not end".to_owned(), |status| status.to_string());
        tracing::debug!(program = self.program, status = shown, "server process ended");
        self.inbox.end(&format!("`{}` ended ({shown}){}", self.program, self.words.quoted()));
    }

    /// Waits for the child to end: by itself, after SIGTERM, after SIGKILL. Its standard input has been closed (I3).
    async fn end(&mut self) -> Option<ExitStatus> {
        for insist in [Insist::Wait, Insist::Terminate, Insist::Kill] {
            match insist {
                // Nothing is to be hoped for.
                Insist::Wait if self.output.is_given_up() => continue,
                Insist::Wait => {}
                #[cfg(unix)]
                Insist::Terminate => drop(self.leash.child.signal(SIGTERM)),
                #[cfg(not(unix))]
                Insist::Terminate => continue,
                Insist::Kill => self.leash.kill(),
            }
            let ended = async {
                tokio::select! {
                    status = self.leash.child.wait() => status.ok(),
                    // A child that is blocked on writing cannot end.
                    () = async { self.output.pump(&self.inbox).await; std::future::pending().await } => None,
                }
            };
            if let Ok(status) = timeout(GRACE, ended).await {
                return status;
            }
        }
        None
    }
}

/// Number of SIGTERM on POSIX systems.
#[cfg(unix)]
const SIGTERM: i32 = 15;

#[derive(Clone, Copy)]
enum Insist {
    Wait,
    Terminate,
    Kill,
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    /// Z2: whatever a child has written, other tasks get their turn after some of its lines.
    #[tokio::test]
    async fn one_poll_reads_a_bounded_number_of_lines() {
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
        for line in ["y", notification] {
            // Less than a pipe holds: it is all there before the first poll.
            let mut command = Command::new("sh");
            command.args(["-c", &format!("yes '{line}' | head -c 60000")]).stdout(Stdio::piped());
            let mut child = command.spawn().expect("a shell");
            let stdout = child.stdout.take().expect("a pipe");
            child.wait().await.expect("an end");
            let (mut output, inbox) = (Output::new(stdout), Inbox::default());
            while output.unread.end == 0 {
                tokio::task::yield_now().await;
                let mut pump = pin!(output.pump(&inbox));
                let polled = poll_fn(|cx| Poll::Ready(pump.as_mut().poll(cx))).await;
                assert!(polled.is_pending(), "{line}");
            }
            assert!(output.unread.start <= 128 * (line.len() + 1), "{line}: {:?}", output.unread);
            output.pump(&inbox).await;
            assert_eq!(output.is_given_up(), line == "y", "{line}");
        }
    }
}
