//! Needs of a handler: what its parameters must find when they are taken from a call.

use std::any::TypeId;

use roundtrip_core::form::placeholders;
use roundtrip_core::round::Askable;

/// Needs of a handler's parameters, collected from their types when it is registered.
#[derive(Debug, Default)]
pub struct Needs {
    pub(crate) arguments: Option<serde_json::Value>,
    pub(crate) state: Vec<(TypeId, &'static str)>,
    pub(crate) logging: bool,
    /// Keys and messages of the questions among its parameters.
    asked: Vec<(&'static str, &'static str)>,
    /// True if a parameter is an argument that is being typed.
    pub(crate) typed: bool,
    /// True if it takes the URI of a resource.
    pub(crate) uri: bool,
    /// The way in which it can ask, if it can.
    pub(crate) asks: Option<AskStyle>,
    /// First two parameters that do not go together.
    clash: Option<&'static str>,
}

/// Way in which a handler's parameters ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskStyle {
    /// Before the handler's body: `Asked`.
    Before,
    /// In its body: `Ask`.
    Inline,
    /// By its return value: `Round`.
    ByHand,
}

impl Needs {
    /// Declares that the handler takes arguments of this JSON Schema.
    pub fn arguments(&mut self, schema: schemars::Schema) {
        if self.arguments.replace(schema.into()).is_some() {
            self.clash.get_or_insert("its handler takes the arguments twice: put both types into one `Args`");
        }
    }

    /// Declares that the handler can ask.
    pub(crate) fn asks(&mut self, how: AskStyle) {
        match (self.asks, how) {
            (Some(AskStyle::Inline), AskStyle::ByHand) | (Some(AskStyle::ByHand), AskStyle::Inline) => {
                self.clash.get_or_insert(
                    "its handler takes `Ask` beside `Round`: take `Ask` to ask inline, or `Round` to ask by hand",
                );
            }
            (Some(_), AskStyle::Before) => {}
            _ => self.asks = Some(how),
        }
    }

    /// Returns the mistake in a handler's parameters, if there is one. `has_uri` says whether it reads a resource.
    pub(crate) fn mistake(&self, has_uri: bool) -> Option<&'static str> {
        let uri = "its handler takes `Uri`, which resources and resource templates alone have";
        let typed = "its handler takes `Partial`, which only completers have: take `Args`";
        self.clash.or((self.uri && !has_uri).then_some(uri)).or(self.typed.then_some(typed))
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

    /// Declares that the handler takes a question, or its answer.
    pub(crate) fn asked<T: Askable>(&mut self) {
        self.asked.push((T::KEY, T::MESSAGE));
    }

    /// Checks the questions among the parameters: each has its own key, and each name in a message is an argument.
    pub(crate) fn check_asked(&self, is_argument: impl Fn(&str) -> bool) -> Result<(), String> {
        for (at, (key, message)) in self.asked.iter().enumerate() {
            if self.asked[..at].iter().any(|(other, _)| other == key) {
                return Err(format!(
                    "two parameters ask under the key `{key}`: give each question a key of its own"
                ));
            }
            if let Some(unknown) = placeholders(message).find(|name| !is_argument(name)) {
                return Err(format!(
                    "the message of `{key}` has `{{{unknown}}}`, and there is no argument `{unknown}`: name an \
                     argument, or write `{{{{` for a brace"
                ));
            }
        }
        Ok(())
    }
}
