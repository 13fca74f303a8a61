//! Standard streams as async byte streams.
//!
//! A pipe is opened anew through `/dev/stdin`, which gives a description of our own to make non-blocking: the one
//! we inherited may be shared with our parent. What is not a pipe (a terminal, a file, a socket) is read by a thread
//! that nobody waits for, so that a process can end while a read hangs.

use std::io::{self, Read as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

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
    Box::new(tokio::io::stdout())
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
