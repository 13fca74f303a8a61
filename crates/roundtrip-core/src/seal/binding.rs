//! Bindings: the call that a token belongs to.

use super::{Digest, Reason};

/// The parts that identify a call.
#[derive(Debug, Clone, Copy)]
pub struct BindingParts<'a> {
    /// The service: the same for all instances that serve each other's flows, different for services that
    /// merely share a key.
    pub audience: &'a str,
    /// The request's method.
    pub method: &'a str,
    /// The tool's name, the prompt's name or the resource's URI.
    pub target: &'a str,
    /// The digest of the arguments ([`digest_arguments`](super::digest_arguments)).
    pub arguments: Digest,
    /// The caller, where known. A token made for a known caller does not open for an unknown one, nor the other way
    /// round.
    pub principal: Option<&'a str>,
}

/// Digests of the call that a token belongs to (mrtr, server 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub(super) audience: Digest,
    pub(super) target: Digest,
    pub(super) arguments: Digest,
    pub(super) principal: Option<Digest>,
}

impl Binding {
    /// Digests the parts of a call.
    pub fn new(parts: BindingParts<'_>) -> Self {
        let audience = Self::audience(parts.audience);
        Self::of(audience, Self::target(parts.method, parts.target), parts.arguments, parts.principal)
    }

    /// Creates a binding from digests that were computed before.
    pub fn of(audience: Digest, target: Digest, arguments: Digest, principal: Option<&str>) -> Self {
        let principal = principal.map(|principal| Digest::of("principal", &[principal.as_bytes()]));
        Self { audience, target, arguments, principal }
    }

    /// Digests the name of a service.
    pub fn audience(audience: &str) -> Digest {
        Digest::of("audience", &[audience.as_bytes()])
    }

    /// Digests a method and its target.
    pub fn target(method: &str, target: &str) -> Digest {
        Digest::of("target", &[method.as_bytes(), target.as_bytes()])
    }

    /// Returns its digests by name. One of the principal is there if the caller was known.
    pub const fn digests(&self) -> [(&'static str, Option<Digest>); 4] {
        [
            ("audience", Some(self.audience)),
            ("target", Some(self.target)),
            ("arguments", Some(self.arguments)),
            ("principal", self.principal),
        ]
    }

    /// Compares the token's binding with that of the call, and returns the gravest difference.
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
