//! The peer of a call: its identity, its address, and what it can be sent.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::access::Access;
use super::delivery::{Delivery, Reentry};

/// The peer of a call, as far as the transport knows it.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// The authenticated principal, if the transport has one.
    pub principal: Option<Principal>,
    /// The rights of its access token, if the transport checks tokens.
    pub access: Access,
    /// The address it calls from, if the transport knows it. Callers without a principal share the server's limits by
    /// address.
    pub address: Option<IpAddr>,
    /// True if the transport has no other caller: a pipe.
    pub is_only: bool,
    /// Extensions that the HTTP stack attached to the request.
    pub extensions: http::Extensions,
    /// Delivery of notifications before the result.
    pub listens: Listens,
    /// Delivery of questions.
    pub questions: Delivery,
    /// Pace of the rounds, if the transport enters a handler again by itself.
    pub reentry: Option<Arc<Reentry>>,
}

/// Delivery of notifications before the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listens {
    /// Notifications are delivered.
    #[default]
    Yes,
    /// Notifications are left out: the peer takes a single JSON response only.
    No,
}

/// An authenticated identity, as the server's author determines it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Names a principal. Two calls with equal names are the same principal.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
