//! Standard streams as async byte streams.
//!
//! A pipe is reopened through `/dev/stdin`, which gives a file description of our own to make non-blocking: the
//! inherited one may be shared with our parent. A terminal, file or socket is read and written by threads that are
//! never joined, so that the process can end while a read or a write hangs.

use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::lock::lock;

const CHUNK: usize = 64 * 1024;

pub(crate) fn stdin() -> Box<dyn AsyncRead + Send + Unpin> {
    #[cfg(unix)]
    if let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_receiver("/dev/stdin") {
        return Box::new(pipe);
    }
    Box::new(ThreadStdin::start())
}

pub(crate) fn stdout() -> Box<dyn AsyncWrite + Send + Unpin> {
    #[cfg(unix)]
    if let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_sender("/dev/stdout") {
        return Box::new(pipe);
    }
    Box::new(ThreadStdout::start())
}

/// Standard input read by a thread.
struct ThreadStdin {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl ThreadStdin {
    fn start() -> Self {
        let (send, chunks) = mpsc::channel(4);
        std::thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            loop {
                let chunk = match io::stdin().lock().read(&mut buffer) {
                    Ok(0) => return,
                    Ok(size) => Ok(Bytes::copy_from_slice(&buffer[..size])),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let last = chunk.is_err();
                if send.blocking_send(chunk).is_err() || last {
                    return;
                }
            }
        });
        Self { chunks, current: Bytes::new() }
    }
}

impl AsyncRead for ThreadStdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.current.is_empty() {
            match ready!(self.chunks.poll_recv(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(chunk) => self.current = chunk?,
            }
        }
        let size = self.current.len().min(out.remaining());
        out.put_slice(&self.current[..size]);
        self.current.advance(size);
        Poll::Ready(Ok(()))
    }
}

/// Standard output written by a thread, a chunk at a time.
struct ThreadStdout(Arc<Shared>);

#[derive(Default)]
struct Shared {
    chunk: Mutex<Chunk>,
    /// Signals that there is something to write, or that no more will come.
    ready: Condvar,
}

#[derive(Default)]
struct Chunk {
    /// Bytes that the thread is to write, or is writing.
    bytes: Arc<[u8]>,
    error: Option<io::Error>,
    closed: bool,
    waker: Option<Waker>,
}

impl Shared {
    fn chunk(&self) -> MutexGuard<'_, Chunk> {
        lock(&self.chunk)
    }

    /// Writes chunks until there are no more, or writing fails.
    fn write(&self) {
        loop {
            let bytes = {
                let idle = |chunk: &mut Chunk| chunk.bytes.is_empty() && !chunk.closed;
                let chunk = self.ready.wait_while(self.chunk(), idle);
                Arc::clone(&chunk.unwrap_or_else(PoisonError::into_inner).bytes)
            };
            if bytes.is_empty() {
                return;
            }
            let mut stdout = io::stdout().lock();
            let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
            drop(stdout);
            let mut chunk = self.chunk();
            chunk.bytes = Arc::default();
            chunk.error = written.err();
            if let Some(waker) = chunk.waker.take() {
                waker.wake();
            }
        }
    }
}

impl ThreadStdout {
    fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        std::thread::spawn(move || own.write());
        Self(shared)
    }

    /// Waits until the thread has written the chunk it was given.
    fn poll_idle(&self, cx: &mut Context<'_>) -> Poll<io::Result<MutexGuard<'_, Chunk>>> {
        let mut chunk = self.0.chunk();
        if let Some(error) = chunk.error.take() {
            return Poll::Ready(Err(error));
        }
        if chunk.bytes.is_empty() {
            return Poll::Ready(Ok(chunk));
        }
        chunk.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for ThreadStdout {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut chunk = ready!(self.poll_idle(cx))?;
        let size = bytes.len().min(CHUNK);
        chunk.bytes = bytes[..size].into();
        self.0.ready.notify_one();
        Poll::Ready(Ok(size))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_idle(cx).map_ok(drop)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl Drop for ThreadStdout {
    fn drop(&mut self) {
        self.0.chunk().closed = true;
        self.0.ready.notify_one();
    }
}
