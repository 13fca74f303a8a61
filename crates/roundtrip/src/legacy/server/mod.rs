//! Server side of the handshake eras.

mod calling;
mod http;
mod negotiated;
mod outstanding;
mod question;
mod session;
mod settings;
mod stdio_session;
mod translate;

pub use http::ResumableStream;
pub(crate) use http::{Arrival, LegacyHttp, Reply, SESSION};
pub(crate) use session::{Handled, LONGEST_BATCH, Sink, Weight};
pub use settings::Handshake;
pub(crate) use stdio_session::StdioSession;
