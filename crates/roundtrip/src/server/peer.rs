//! The peer of a call: its identity, its address, and what it can be sent.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::round::Delivery;

/// Who is at the other end, as far as the transport knows.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// The authenticated principal, if the transport has one.
    pub principal: Option<Principal>,
    /// The address it calls from, if the transport knows it. Callers without a principal share by it what a server has
    /// to give.
    pub address: Option<IpAddr>,
    /// What the HTTP stack in front of us attached to the request.
    pub extensions: http::Extensions,
    /// Whether notifications before the result can be delivered at all.
    pub listens: Listens,
    /// What becomes of questions.
    pub questions: Delivery,
}

/// Whether a peer takes notifications before the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listens {
    /// They are delivered.
    #[default]
    Yes,
    /// They are left out: the peer takes a single JSON answer only.
    No,
}

/// An authenticated identity: whoever the server's author says is calling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Names a principal. Two calls with equal names are the same principal.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
