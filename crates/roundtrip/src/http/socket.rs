//! TCP connection that hyper serves, watched for three conditions that hyper does not watch for.
//!
//! A client that does not read would block writing forever: a write that is not accepted in time breaks the
//! connection. And hyper stops reading once a byte of the next request has arrived, so that it does not see a client
//! hang up: while a request is being answered, this type reads on into a buffer. Last, hyper bounds what it has read when a
//! head is incomplete, but not the read that completes it: this type counts, so that long heads are noticed.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// Most bytes of further requests that are read while one is being answered. Beyond them the client has to wait.
const READ_AHEAD: usize = 64 * 1024;

/// State that a connection and the requests on it share. HTTP/1 answers one request after the other.
#[derive(Debug, Clone)]
pub(super) struct Answering(Arc<Shared>);

/// Time of a connection that has a request: it waits for no head.
const BUSY: u64 = u64::MAX;

#[derive(Debug)]
struct Shared {
    /// Time at which the connection was accepted.
    accepted: Instant,
    /// Time from then to when the connection began to wait for the next head, in milliseconds, or [`BUSY`].
    waits_since: AtomicU64,
    /// True while a request has been read and is being answered.
    is_on: AtomicBool,
    /// Bytes that hyper has read since the head before, and the most that it may have read ahead of that time.
    unparsed: AtomicUsize,
    /// Bytes of the last read.
    last_read: AtomicUsize,
}

impl Answering {
    fn new() -> Self {
        Self(Arc::new(Shared {
            accepted: Instant::now(),
            waits_since: AtomicU64::new(0),
            is_on: AtomicBool::new(false),
            unparsed: AtomicUsize::new(0),
            last_read: AtomicUsize::new(0),
        }))
    }

    /// Takes note that a head has arrived. The next one is waited for once the guard is dropped.
    pub(super) fn begin(&self) -> AnsweringGuard {
        self.0.waits_since.store(BUSY, Ordering::Relaxed);
        AnsweringGuard(self.clone())
    }

    /// Returns the time since which the next head is waited for; `None` while there is a request.
    pub(super) fn waits_for_head_since(&self) -> Option<Instant> {
        let since = self.0.waits_since.load(Ordering::Relaxed);
        (since != BUSY).then(|| self.0.accepted + Duration::from_millis(since))
    }

    /// Gives the next head its whole time again: the client has read on in the answer before it.
    fn wait_anew(&self) {
        if self.0.waits_since.load(Ordering::Relaxed) != BUSY {
            self.wait_for_head();
        }
    }

    fn wait_for_head(&self) {
        let since = u64::try_from(self.0.accepted.elapsed().as_millis()).unwrap_or_default();
        self.0.waits_since.store(since, Ordering::Relaxed);
    }

    fn set(&self, on: bool) {
        self.0.is_on.store(on, Ordering::Relaxed);
    }

    fn is_on(&self) -> bool {
        self.0.is_on.load(Ordering::Relaxed)
    }

    /// Counts bytes that hyper has read. One task reads and parses.
    #[inline]
    fn read(&self, bytes: usize) {
        self.0.unparsed.store(self.0.unparsed.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
        self.0.last_read.store(bytes, Ordering::Relaxed);
    }

    /// Returns the most bytes that the head which hyper has just parsed can have had: far less work than to measure each head.
    /// hyper reads only if it lacks something, so that no more than its last read is left for the next head.
    #[inline]
    pub(super) fn next_head(&self) -> usize {
        self.0.unparsed.swap(self.0.last_read.load(Ordering::Relaxed), Ordering::Relaxed)
    }
}

/// Request body that sets the flag when dropped: once it has been read, the request is being answered. Until then
/// hyper itself reads.
#[derive(Debug)]
pub(super) struct RequestBody {
    pub(super) body: Incoming,
    pub(super) answering: Answering,
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.answering.set(true);
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Clears the flag when dropped, and has the next head waited for: with the response, or earlier by a connection that ends.
#[derive(Debug)]
pub(super) struct AnsweringGuard(Answering);

impl Drop for AnsweringGuard {
    fn drop(&mut self) {
        self.0.set(false);
        self.0.wait_for_head();
    }
}

/// The connection as hyper reads and writes it.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    answering: Answering,
    /// Bytes that were read before hyper asked for them.
    ahead: BytesMut,
    /// True once the client has closed its side.
    ended: bool,
    /// True once hyper has seen that.
    told: bool,
    write_timeout: Duration,
    /// Deadline of a blocked write.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, write_timeout: Duration) -> Self {
        let (answering, ahead) = (Answering::new(), BytesMut::new());
        Self { stream, answering, ahead, ended: false, told: false, write_timeout, blocked: None }
    }

    /// Returns the flag that is set while a request is being answered.
    pub(super) fn answering(&self) -> Answering {
        self.answering.clone()
    }

    /// Reads on while a request is being answered. Fails if the client has hung up, which hyper would not notice.
    #[inline]
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.answering.is_on() && !self.told { self.read_on(cx) } else { Ok(()) }
    }

    /// The part of it that calls which are answered at once do without.
    #[inline(never)]
    fn read_on(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.ended {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the client hung up"));
        }
        while !self.ended && self.ahead.len() < READ_AHEAD {
            let mut space = [const { MaybeUninit::uninit() }; 4 * 1024];
            let mut chunk = ReadBuf::uninit(&mut space);
            match Pin::new(&mut self.stream).poll_read(cx, &mut chunk) {
                Poll::Pending => return Ok(()),
                Poll::Ready(read) => read?,
            }
            // hyper may be waiting for these bytes.
            cx.waker().wake_by_ref();
            self.ended = chunk.filled().is_empty();
            self.ahead.extend_from_slice(chunk.filled());
        }
        Ok(())
    }

    /// Passes a write on. A write that is not accepted in time breaks the connection.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), cx) {
            if self.blocked.take().is_some() {
                self.answering.wait_anew();
            }
            return Poll::Ready(written);
        }
        self.read_ahead(cx)?;
        let patience = self.write_timeout;
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(blocked.as_mut().poll(cx));
        let why = format!("the client has read nothing for {patience:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let size = self.ahead.len().min(out.remaining());
            out.put_slice(&self.ahead[..size]);
            self.ahead.advance(size);
            self.answering.read(size);
            return Poll::Ready(Ok(()));
        }
        if self.ended {
            self.told = true;
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.stream).poll_read(cx, out);
        if read.is_ready() {
            // What was there before, if anything, counts too: this is a bound.
            self.answering.read(out.filled().len());
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Reads ahead too: hyper flushes whenever it has looked at the connection.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.read_ahead(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
