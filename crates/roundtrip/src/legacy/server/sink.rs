//! Where the messages of a call go.

/// Whether a message may be left out where a client does not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Progress and logs.
    Hint,
    /// Questions.
    Must,
    /// What takes a question back. It is sent even where the call itself may say nothing more.
    TakeBack,
    /// The answer.
    Answer,
}

/// Takes whole JSON-RPC messages on their way to the client.
pub(crate) trait Sink: Send + Sync + 'static {
    /// Takes one.
    fn send(&self, message: Vec<u8>, weight: Weight);
}
