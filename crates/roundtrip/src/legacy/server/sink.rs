//! Where the messages of a call go.

/// Whether a message may be left out where a client does not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Progress and logs.
    Hint,
    /// Questions and answers.
    Must,
}

/// Takes whole JSON-RPC messages on their way to the client.
pub(crate) trait Sink: Send + Sync + 'static {
    /// Takes one.
    fn send(&self, message: Vec<u8>, weight: Weight);
}
