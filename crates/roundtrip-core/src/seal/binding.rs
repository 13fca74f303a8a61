//! The call that a token belongs to, and no other.

use super::{Digest, Reason};

/// What a call is known by, to be told apart from every other call.
#[derive(Debug, Clone, Copy)]
pub struct BindingParts<'a> {
    /// The service: the same for all instances that serve each other's flows, different for services that
    /// merely share a key.
    pub audience: &'a str,
    /// The request's method.
    pub method: &'a str,
    /// The tool's name, the prompt's name or the resource's URI.
    pub target: &'a str,
    /// See [`digest_arguments`](super::digest_arguments).
    pub arguments: Digest,
    /// Who is calling, where that is known. Nobody is not the same as anybody: a token made for a known
    /// caller does not open for an unknown one, nor the other way round.
    pub principal: Option<&'a str>,
}

/// The call that a token belongs to, in digests (mrtr, server 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub(super) audience: Digest,
    pub(super) target: Digest,
    pub(super) arguments: Digest,
    pub(super) principal: Option<Digest>,
}

impl Binding {
    /// Digests a call's parts.
    pub fn new(parts: BindingParts<'_>) -> Self {
        let audience = Self::audience(parts.audience);
        Self::of(audience, Self::target(parts.method, parts.target), parts.arguments, parts.principal)
    }

    /// The same, where service and target have been digested once and for all.
    pub fn of(audience: Digest, target: Digest, arguments: Digest, principal: Option<&str>) -> Self {
        let principal = principal.map(|principal| Digest::of("principal", &[principal.as_bytes()]));
        Self { audience, target, arguments, principal }
    }

    /// The digest of a service.
    pub fn audience(audience: &str) -> Digest {
        Digest::of("audience", &[audience.as_bytes()])
    }

    /// The digest of a method and what it is called on.
    pub fn target(method: &str, target: &str) -> Digest {
        Digest::of("target", &[method.as_bytes(), target.as_bytes()])
    }

    /// Whether what a token says is what the call is; the gravest difference first.
    pub(super) fn check(&self, expected: &Self) -> Result<(), Reason> {
        let differs = [
            (self.audience != expected.audience, Reason::WrongAudience),
            (self.principal != expected.principal, Reason::WrongPrincipal),
            (self.target != expected.target, Reason::WrongTarget),
            (self.arguments != expected.arguments, Reason::WrongArguments),
        ];
        differs.into_iter().find(|(differs, _)| *differs).map_or(Ok(()), |(_, reason)| Err(reason))
    }
}
