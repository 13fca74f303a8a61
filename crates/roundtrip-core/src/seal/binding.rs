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
    pub(super) client: Option<Digest>,
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
        Self { audience, target, arguments, principal, client: None }
    }

    /// Binds the OAuth client that the call comes from, if there is one, by its digest ([`client`](Self::client)). It counts from
    /// [`TokenVersion::V2`](super::TokenVersion::V2) on.
    ///
    /// ```
    /// use roundtrip_core::seal::{Binding, digest_arguments};
    ///
    /// # fn main() -> Result<(), roundtrip_core::seal::ArgumentsError> {
    /// let (audience, target) = (Binding::audience("bookings"), Binding::target("tools/call", "book_table"));
    /// let client = Binding::client("https://login.example", "agent");
    /// let binding = Binding::of(audience, target, digest_arguments(None)?, Some("alice")).through(Some(client));
    /// # assert_eq!(binding.digests()[4], ("client", Some(client)));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn through(self, client: Option<Digest>) -> Self {
        Self { client, ..self }
    }

    /// Digests the id of an OAuth client at its issuer.
    pub fn client(issuer: &str, client_id: &str) -> Digest {
        Digest::of("client", &[issuer.as_bytes(), client_id.as_bytes()])
    }

    /// Digests the name of a service.
    pub fn audience(audience: &str) -> Digest {
        Digest::of("audience", &[audience.as_bytes()])
    }

    /// Digests a method and its target.
    pub fn target(method: &str, target: &str) -> Digest {
        Digest::of("target", &[method.as_bytes(), target.as_bytes()])
    }

    /// Returns its digests by name. Principal and client are there if they were known.
    pub const fn digests(&self) -> [(&'static str, Option<Digest>); 5] {
        [
            ("audience", Some(self.audience)),
            ("target", Some(self.target)),
            ("arguments", Some(self.arguments)),
            ("principal", self.principal),
            ("client", self.client),
        ]
    }

    /// Compares the token's binding with that of the call, and returns the gravest difference.
    pub(super) fn check(&self, expected: &Self) -> Result<(), Reason> {
        let differs = [
            (self.audience != expected.audience, Reason::WrongAudience),
            (self.principal != expected.principal, Reason::WrongPrincipal),
            (self.client != expected.client, Reason::WrongClient),
            (self.target != expected.target, Reason::WrongTarget),
            (self.arguments != expected.arguments, Reason::WrongArguments),
        ];
        differs.into_iter().find(|(differs, _)| *differs).map_or(Ok(()), |(_, reason)| Err(reason))
    }
}
