//! Needs of a handler: what its parameters must find when they are taken from a call.

use std::any::TypeId;

/// Needs of a handler's parameters, collected from their types when it is registered.
#[derive(Debug, Default)]
pub struct Needs {
    pub(crate) arguments: Option<serde_json::Value>,
    pub(crate) state: Vec<(TypeId, &'static str)>,
    pub(crate) logging: bool,
    /// True if a parameter can ask.
    pub(crate) asks: bool,
    /// True if a parameter is an argument that is being typed.
    pub(crate) typed: bool,
}

impl Needs {
    /// Declares that the handler takes arguments of this JSON Schema.
    pub fn arguments(&mut self, schema: schemars::Schema) {
        self.arguments = Some(schema.into());
    }

    /// Adds the needs of a completer to those of its prompt or template.
    pub(crate) fn add_completer(&mut self, completer: Self) {
        self.state.extend(completer.state);
        self.logging |= completer.logging;
    }

    /// Declares that the handler takes a value given to [`Server::state`](crate::Server::state).
    pub fn state<S: 'static>(&mut self) {
        self.state.push((TypeId::of::<S>(), std::any::type_name::<S>()));
    }
}
