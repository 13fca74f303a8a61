//! Errors of a server's setup.

use std::fmt;

use roundtrip_core::error::debug_as_text;

/// Mistake in a server's setup. It always names the tool, prompt, resource or server it is about.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct SetupError {
    what: String,
    problem: String,
}

impl SetupError {
    pub(crate) fn new(kind: &str, name: &str, problem: impl Into<String>) -> Self {
        Self { what: format!("{kind} `{name}`"), problem: problem.into() }
    }
}

impl fmt::Debug for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_as_text(self, f)
    }
}

/// Error that ends serving.
#[derive(thiserror::Error)]
pub enum ServeError {
    /// The server's setup has a mistake.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A stream or the network failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_as_text(self, f)
    }
}
