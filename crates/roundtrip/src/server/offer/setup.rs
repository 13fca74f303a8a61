//! What can be wrong with a server before it starts.

use std::any::TypeId;
use std::fmt;

use roundtrip_core::error::debug_as_text;

use crate::server::handler::function::Parameters;

/// A mistake in how a server was put together. It always names the tool, prompt or resource it is about.
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
    /// The server was put together wrongly.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A stream or the network said no.
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

    /// The handler takes arguments of this JSON Schema.
    pub fn arguments(&mut self, schema: schemars::Schema) {
        self.arguments = Some(schema.into());
    }

    /// The handler takes a value given to [`Server::state`](super::Server::state).
    pub fn state<S: 'static>(&mut self) {
        self.state.push((TypeId::of::<S>(), std::any::type_name::<S>()));
    }
}
