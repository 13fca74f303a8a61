//! Errors of a server's setup, and the needs of its handlers.

use std::any::TypeId;
use std::fmt;

use roundtrip_core::error::debug_as_text;

use crate::server::handler::function::Parameters;

/// Mistake in a server's setup. It always names the tool, prompt or resource it is about.
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

/// What a handler's parameters need from the server, collected from their types when it is registered.
#[derive(Debug, Default)]
pub struct Needs {
    pub(crate) arguments: Option<serde_json::Value>,
    pub(crate) state: Vec<(TypeId, &'static str)>,
    pub(crate) logging: bool,
}

impl Needs {
    pub(crate) fn of<P: Parameters>() -> Self {
        let mut needs = Self::default();
        P::needs(&mut needs);
        needs
    }

    /// Declares that the handler takes arguments of this JSON Schema.
    pub fn arguments(&mut self, schema: schemars::Schema) {
        self.arguments = Some(schema.into());
    }

    /// Declares that the handler takes a value given to [`Server::state`](crate::Server::state).
    pub fn state<S: 'static>(&mut self) {
        self.state.push((TypeId::of::<S>(), std::any::type_name::<S>()));
    }
}
