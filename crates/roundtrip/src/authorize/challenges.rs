//! Challenges of a resource server, written once.

use http::HeaderValue;
use roundtrip_core::auth::{Challenge, ChallengeCode, ChallengeError, HttpUrl, ScopeSet};

/// The `WWW-Authenticate` headers of a resource. Nothing of a request is in them.
#[derive(Debug)]
pub(super) struct Challenges {
    /// Without `error`: no credentials were sent (O4).
    pub(super) no_token: HeaderValue,
    pub(super) bad_token: HeaderValue,
    pub(super) malformed: HeaderValue,
    /// Lack of the scopes that every request needs.
    pub(super) too_little: HeaderValue,
    metadata: HttpUrl,
}

impl Challenges {
    /// Writes the challenges of a resource: the URL of its metadata, and the scopes that every request needs.
    pub(super) fn new(metadata: HttpUrl, needed: &ScopeSet) -> Result<Self, ChallengeError> {
        let plain = Challenge::bearer().resource_metadata(&metadata);
        let scoped = plain.clone().scope(needed);
        Ok(Self {
            no_token: scoped.to_header()?,
            bad_token: scoped.clone().code(&ChallengeCode::InvalidToken).to_header()?,
            malformed: plain.code(&ChallengeCode::InvalidRequest).to_header()?,
            too_little: scoped.code(&ChallengeCode::InsufficientScope).to_header()?,
            metadata,
        })
    }

    /// Writes the challenge of a call that needs more scopes.
    pub(super) fn insufficient(&self, needed: &ScopeSet) -> Result<HeaderValue, ChallengeError> {
        let challenge = Challenge::bearer().resource_metadata(&self.metadata).scope(needed);
        challenge.code(&ChallengeCode::InsufficientScope).to_header()
    }
}
