//! The call that a handler's parameters are taken from, and its peer.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use roundtrip_core::auth::ScopeSet;
use roundtrip_core::wire::{CompleteRequestParams, ErrorObject, RequestId, RequestMeta};
use serde_json::Value;
use serde_json::value::RawValue;

use super::resolving::Resolvers;
use crate::server::notify::outbox::Outbox;
use crate::server::notify::status::StatusSlot;
use crate::server::peer::Peer;
use crate::server::round::{RoundInput, RoundState};

/// Values that handlers' parameters are taken from, by type: the state of [`Server::state`](crate::Server::state), and
/// what the server adds.
#[derive(Default)]
pub(crate) struct StateMap(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl StateMap {
    /// Adds a value; returns false if it replaced one of its type.
    pub(crate) fn insert<S: Send + Sync + 'static>(&mut self, value: S) -> bool {
        self.0.insert(TypeId::of::<S>(), Box::new(value)).is_none()
    }

    pub(crate) fn get<S: 'static>(&self) -> Option<&S> {
        self.0.get(&TypeId::of::<S>()).and_then(|value| value.downcast_ref())
    }

    pub(crate) fn types(&self) -> impl Iterator<Item = TypeId> {
        self.0.keys().copied()
    }
}

impl fmt::Debug for StateMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateMap({} values)", self.0.len())
    }
}

/// Arguments of a call, in the form they were received.
pub(crate) enum Arguments<'a> {
    /// Arguments of a tool, not yet parsed.
    Text(Option<&'a RawValue>),
    /// Arguments of a tool, parsed because its schema had to be checked.
    Value(Value),
    /// Arguments of a prompt, or variables of a template.
    Strings(Vec<(Cow<'a, str>, Cow<'a, str>)>),
    /// An argument that is being typed, and those that are known already.
    Typed(&'a CompleteRequestParams<'a>),
}

/// Returns the arguments that are known while another one is typed.
pub(crate) fn known<'a>(typed: &'a CompleteRequestParams<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let arguments = typed.context.iter().flat_map(|context| &context.arguments);
    arguments.map(|(name, value)| (&**name, &**value))
}

/// A call, while its handler's parameters are taken from it. See [`FromCall`](super::FromCall).
pub struct Call<'a> {
    pub(crate) meta: &'a RequestMeta<'a>,
    pub(crate) peer: &'a Peer,
    /// Scopes that callers of its target need.
    pub(crate) needed: Option<&'a Arc<ScopeSet>>,
    pub(crate) target: &'a str,
    pub(crate) arguments: Arguments<'a>,
    pub(crate) state: &'a StateMap,
    /// Created by the first parameter that can send notifications.
    pub(crate) outbox: Option<Arc<Outbox>>,
    /// Place for the description of its state, of a call that is a task or may become one.
    pub(crate) status: Option<Arc<StatusSlot>>,
    /// Id of the request, if its result is wanted in parts.
    pub(crate) stream: Option<&'a RequestId>,
    /// Inputs of this round of its flow.
    pub(crate) input: RoundInput<'a>,
    /// Resolvers that parameters have asked for.
    pub(crate) resolvers: Resolvers,
}

/// Shows neither arguments nor `_meta` nor `inputResponses`: they do not belong into a log.
impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("target", &self.target)
            .field("peer", &self.peer)
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}

impl<'a> Call<'a> {
    /// Returns the tool's or prompt's name, or the resource's URI.
    pub fn target(&self) -> &str {
        self.target
    }

    /// Returns the request's `_meta`.
    pub fn meta(&self) -> &RequestMeta<'a> {
        self.meta
    }

    /// Returns the peer.
    pub fn peer(&self) -> &Peer {
        self.peer
    }

    /// Returns the state of the round, built by the first parameter that can ask.
    pub(crate) fn round_state(&mut self) -> Result<Arc<RoundState>, Rejection> {
        // `completion/complete` has no rounds (M1).
        if matches!(self.arguments, Arguments::Typed(_)) {
            return Err(ErrorObject::internal("a completer cannot ask").into());
        }
        Ok(self.input.round_state()?)
    }

    pub(crate) fn outbox(&mut self) -> Arc<Outbox> {
        Arc::clone(self.outbox.get_or_insert_with(|| Arc::new(Outbox::new(self.peer.listens))))
    }
}

/// Reason why a parameter could not be taken from a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Rejection {
    /// The arguments do not fit. A tool reports this as a tool error, which a model can correct (N4); prompts and
    /// resources report -32602.
    Arguments(String),
    /// Any other JSON-RPC error.
    Error(ErrorObject),
}

impl From<ErrorObject> for Rejection {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error)
    }
}
