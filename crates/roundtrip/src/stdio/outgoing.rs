//! Output queue: lines collected from many calls, written by one task.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::lock::lock;

/// Most bytes that may wait for a slow reader before reading stops.
pub(super) const HIGH_WATER: usize = 1024 * 1024;
/// Longest time for the reader to accept not a single byte.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The same once the input has ended, which is to end the server promptly (I3).
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Lines waiting to be written.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    waiting: Mutex<Waiting>,
    /// Signals that there is something to write, or that the queue is closed.
    ready: Notify,
    /// Signals that the waiting bytes have been taken.
    taken: Notify,
    /// Signals that the input has ended.
    hurried: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// True once the input has ended.
    hurried: bool,
    closed: bool,
}

impl Outgoing {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// Adds whole lines.
    pub(crate) fn push(&self, lines: &[u8]) {
        self.push_below(usize::MAX, lines);
    }

    /// Adds a line that may be dropped if the reader does not keep up.
    pub(crate) fn push_hint(&self, line: &[u8]) {
        self.push_below(HIGH_WATER, line);
    }

    fn push_below(&self, most: usize, lines: &[u8]) {
        let mut waiting = self.waiting();
        if lines.is_empty() || waiting.bytes.len() >= most {
            return;
        }
        waiting.bytes.extend_from_slice(lines);
        drop(waiting);
        self.ready.notify_one();
    }

    /// Shortens the write timeout, once the input has ended.
    pub(crate) fn hurry(&self) {
        self.waiting().hurried = true;
        self.hurried.notify_one();
    }

    /// Closes the queue.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.ready.notify_one();
    }

    /// Waits until the reader has caught up.
    pub(crate) async fn calm(&self) {
        loop {
            let taken = self.taken.notified();
            if self.waiting().bytes.len() < HIGH_WATER {
                return;
            }
            taken.await;
        }
    }

    /// Writes until closed, or until the reader is gone or accepts nothing any more. Where `more` lines are about to come,
    /// the tasks that add them run first: one write for all of them costs less than one for each.
    pub(crate) async fn write_to(
        &self,
        mut writer: impl AsyncWrite + Unpin,
        more: impl Fn() -> bool,
    ) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let closed = {
                let mut waiting = self.waiting();
                std::mem::swap(&mut batch, &mut waiting.bytes);
                waiting.closed
            };
            if batch.is_empty() {
                if closed {
                    return self.in_time(writer.flush()).await;
                }
                self.ready.notified().await;
                if more() {
                    yield_now().await;
                }
                continue;
            }
            self.taken.notify_waiters();
            let mut rest = &batch[..];
            while !rest.is_empty() {
                match self.in_time(writer.write(rest)).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    size => rest = &rest[size..],
                }
            }
            self.in_time(writer.flush()).await?;
            batch.clear();
            // One large answer need not occupy memory for good.
            batch.shrink_to(HIGH_WATER);
        }
    }

    /// Waits for a write, up to the write timeout.
    async fn in_time<T>(&self, write: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut write = pin!(write);
        // Most writes are accepted at once: a timer is only set for those that are not.
        if let Poll::Ready(written) = poll_fn(|cx| Poll::Ready(write.as_mut().poll(cx))).await {
            return written;
        }
        let begun = Instant::now();
        loop {
            let hurried = self.waiting().hurried;
            let patience = if hurried { LAST_WRITE_TIMEOUT } else { WRITE_TIMEOUT };
            tokio::select! {
                biased;
                written = &mut write => return written,
                () = self.hurried.notified(), if !hurried => {}
                () = sleep_until(begun + patience) => {
                    let why = format!("the client does not read the output: it accepted nothing for {patience:?}");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
            }
        }
    }
}
