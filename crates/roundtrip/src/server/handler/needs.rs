//! Needs of a handler: what its parameters must find when they are taken from a call.

use std::any::{TypeId, type_name};
use std::borrow::Cow;
use std::mem;

use roundtrip_core::form::placeholders;
use roundtrip_core::round::Askable;

/// Needs of a handler's parameters, collected from their types when it is registered.
#[derive(Debug, Default)]
pub struct Needs {
    pub(crate) arguments: Option<serde_json::Value>,
    /// True if the parameters that are being collected, the handler's or a resolver's, have the arguments among them.
    has_arguments: bool,
    pub(crate) state: Vec<(TypeId, &'static str)>,
    pub(crate) logging: bool,
    /// Keys and messages of the questions and resolvers among its parameters. A resolver has no message.
    asked: Vec<(&'static str, &'static str)>,
    /// True if a parameter is an argument that is being typed.
    pub(crate) typed: bool,
    /// True if it takes the URI of a resource.
    pub(crate) uri: bool,
    /// True if it sends its result in parts.
    pub(crate) parts: bool,
    /// Types of the extensions of the request that it takes.
    pub(crate) extensions: Vec<(TypeId, &'static str)>,
    /// True if it takes the connection of a client of a handshake era.
    pub(crate) stream: bool,
    /// The way in which it can ask, if it can.
    pub(crate) asks: Option<AskStyle>,
    /// Resolvers among its parameters, and those that they need.
    resolvers: Vec<TypeId>,
    /// Types of the resolvers whose needs are being collected, each needed by the one before it.
    resolving: Vec<(TypeId, &'static str)>,
    /// First parameters that do not go together.
    clash: Option<Cow<'static, str>>,
}

/// Way in which a handler's parameters ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskStyle {
    /// Before the handler's body: `Asked`.
    Before,
    /// In its body: `Ask` and `Asking`.
    Inline,
    /// By its return value: `Round`.
    ByHand,
}

impl Needs {
    /// Declares that the handler takes arguments of this JSON Schema.
    pub fn arguments(&mut self, schema: schemars::Schema) {
        let schema = schema.into();
        let others = self.arguments.as_ref().is_some_and(|others| *others != schema);
        if mem::replace(&mut self.has_arguments, true) {
            self.clash("its handler takes the arguments twice: put both types into one `Args`");
        } else if others {
            self.clash(
                "its handler and its resolvers take arguments of different types: give them one `Args`",
            );
        }
        self.arguments = Some(schema);
    }

    fn clash(&mut self, mistake: impl Into<Cow<'static, str>>) {
        self.clash.get_or_insert_with(|| mistake.into());
    }

    /// Declares that the handler can ask.
    pub(crate) fn asks(&mut self, how: AskStyle) {
        // A resolver has declared that it asks before the body, whatever it takes for that.
        if !self.resolving.is_empty() {
            if how == AskStyle::ByHand {
                self.clash("a resolver takes `Round`: it asks with the `Ask` that it is given");
            }
            return;
        }
        match (self.asks, how) {
            (Some(AskStyle::Inline), AskStyle::ByHand) | (Some(AskStyle::ByHand), AskStyle::Inline) => {
                self.clash(
                    "its handler takes `Ask` or `Asking` beside `Round`: take `Ask` to ask inline, or `Round` to ask by hand",
                );
            }
            (Some(_), AskStyle::Before) => {}
            _ => self.asks = Some(how),
        }
    }

    /// Declares that the handler sends its result in parts.
    pub(crate) fn streams(&mut self) {
        if !self.resolving.is_empty() {
            self.clash("a resolver takes `Parts`: the handler alone has a result to send");
        }
        if mem::replace(&mut self.parts, true) {
            self.clash("its handler takes `Parts` twice: a call has one result");
        }
    }

    /// Returns the mistake in a handler's parameters, if there is one. `has_uri` says whether it reads a resource, `is_tool`
    /// whether it is called as a tool.
    pub(crate) fn mistake(&self, has_uri: bool, is_tool: bool) -> Option<&str> {
        let parts = "its handler takes `Parts`, which tools alone have";
        let uri = "its handler takes `Uri`, which resources and resource templates alone have";
        let typed = "its handler takes `Partial`, which only completers have: take `Args`";
        self.clash
            .as_deref()
            .or((self.uri && !has_uri).then_some(uri))
            .or(self.typed.then_some(typed))
            .or((self.parts && !is_tool).then_some(parts))
    }

    /// Adds the needs of a completer to those of its prompt or template.
    pub(crate) fn add_completer(&mut self, completer: Self) {
        self.state.extend(completer.state);
        self.logging |= completer.logging;
    }

    /// Declares that the handler takes a value given to [`Server::state`](crate::Server::state).
    pub fn state<S: 'static>(&mut self) {
        self.state.push((TypeId::of::<S>(), type_name::<S>()));
    }

    /// Declares that the handler takes an extension of the request
    /// ([`Peer::extensions`](crate::server::Peer::extensions)), which a task has only if its server stores it
    /// ([`Tasks::keep_extension`](crate::Tasks::keep_extension)).
    pub fn extension<T: 'static>(&mut self) {
        self.extensions.push((TypeId::of::<T>(), type_name::<T>()));
    }

    /// Declares that the handler takes a question, or its answer.
    pub(crate) fn asked<T: Askable>(&mut self) {
        self.asked.push((T::KEY, T::MESSAGE));
    }

    /// Declares that the handler takes the value of a resolver, with its key. `from` declares the needs of its parameters.
    pub(crate) fn resolver<T: 'static>(&mut self, key: &'static str, from: fn(&mut Self)) {
        let resolver = (TypeId::of::<T>(), type_name::<T>());
        self.asks(AskStyle::Before);
        if let Some(at) = self.resolving.iter().position(|outer| *outer == resolver) {
            return self.circle(at);
        }
        if self.resolvers.contains(&resolver.0) {
            return;
        }
        self.resolvers.push(resolver.0);
        self.asked.push((key, ""));
        self.resolving.push(resolver);
        let has_arguments = mem::take(&mut self.has_arguments);
        from(self);
        self.has_arguments = has_arguments;
        self.resolving.pop();
    }

    /// Notes resolvers that need each other: those from a position on, the last of which needs the first.
    fn circle(&mut self, first: usize) {
        let circle = &self.resolving[first..];
        let names: Vec<&str> = circle.iter().chain(&circle[..1]).map(|(_, name)| *name).collect();
        let names = names.join("` from `");
        self.clash(format!("`{names}` is a circle of resolvers: resolve one of them without the others"));
    }

    /// Checks the questions among the parameters: each has its own key, and each name in a message is an argument.
    pub(crate) fn check_asked(&self, is_argument: impl Fn(&str) -> bool) -> Result<(), String> {
        for (at, (key, message)) in self.asked.iter().enumerate() {
            if self.asked[..at].iter().any(|(other, _)| other == key) {
                return Err(format!(
                    "two parameters have the key `{key}`: give each question and each resolver a key of its own"
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
