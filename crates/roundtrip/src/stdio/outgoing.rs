//! What is to be written: collected from many calls, written by one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// How much may wait for a slow reader before we stop reading ourselves.
const HIGH_WATER: usize = 1024 * 1024;

/// Lines waiting to be written.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    waiting: Mutex<Waiting>,
    /// There is something to write, or nothing more to come.
    ready: Notify,
    /// What was waiting has been taken.
    taken: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    closed: bool,
}

impl Outgoing {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Bytes are appended a line at a time: a panic elsewhere cannot leave half a line.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds whole lines.
    pub(crate) fn push(&self, lines: &[u8]) {
        self.push_below(usize::MAX, lines);
    }

    /// Adds a line that may be left out where the reader does not keep up.
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

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.ready.notify_one();
    }

    /// Waits until the reader at the other end has caught up.
    pub(crate) async fn calm(&self) {
        loop {
            let taken = self.taken.notified();
            if self.waiting().bytes.len() < HIGH_WATER {
                return;
            }
            taken.await;
        }
    }

    /// Writes until closed, or until the other end is gone.
    pub(crate) async fn write_to(&self, mut writer: impl AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let closed = {
                let mut waiting = self.waiting();
                std::mem::swap(&mut batch, &mut waiting.bytes);
                waiting.closed
            };
            if batch.is_empty() {
                if closed {
                    return writer.flush().await;
                }
                self.ready.notified().await;
                continue;
            }
            self.taken.notify_waiters();
            writer.write_all(&batch).await?;
            writer.flush().await?;
            batch.clear();
        }
    }
}
