//! Server side of the handshake eras.

mod calling;
mod http;
mod negotiated;
mod outstanding;
mod question;
mod session;
mod stdio_session;
mod translate;

pub use http::ResumableStream;
pub(crate) use http::{Accepts, Arrival, LegacyHttp, Reply, SESSION, Taken};
pub(crate) use session::{Handled, LONGEST_BATCH, Sink, Weight};
pub(crate) use stdio_session::StdioSession;
