//! Needs of a handler: what its parameters must find when they are taken from a call.

use std::any::TypeId;

/// Needs of a handler's parameters, collected from their types when it is registered.
#[derive(Debug, Default)]
pub struct Needs {
    pub(crate) arguments: Option<serde_json::Value>,
    pub(crate) state: Vec<(TypeId, &'static str)>,
    pub(crate) logging: bool,
}

impl Needs {
    /// Declares that the handler takes arguments of this JSON Schema.
    pub fn arguments(&mut self, schema: schemars::Schema) {
        self.arguments = Some(schema.into());
    }

    /// Declares that the handler takes a value given to [`Server::state`](crate::Server::state).
    pub fn state<S: 'static>(&mut self) {
        self.state.push((TypeId::of::<S>(), std::any::type_name::<S>()));
    }
}
