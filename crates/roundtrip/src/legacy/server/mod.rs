//! Serving clients of the handshake eras.

mod calling;
mod desk;
mod http;
mod pipe;
mod question;
mod session;
mod settings;
mod sink;
mod terms;
mod translate;

pub use http::Connection;
pub(crate) use http::{Arrival, Door, Reply, SESSION};
pub(crate) use pipe::Pipe;
pub(crate) use session::Handled;
pub use settings::Handshake;
pub(crate) use sink::{Sink, Weight};
