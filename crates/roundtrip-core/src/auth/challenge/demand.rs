//! The demand of a refusal: what its challenges want from a client.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use super::{Challenge, ChallengeCode};
use crate::auth::scope::ScopeSet;

/// Scheme by which a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenScheme {
    /// `Bearer` (RFC 6750).
    Bearer,
    /// `DPoP` (RFC 9449): with a proof that the sender holds a key.
    #[serde(rename = "DPoP")]
    Dpop,
}

impl TokenScheme {
    /// Returns the name of the scheme.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

/// Demand of a 401 or 403 for a token, or for one with more scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Demand {
    /// Scheme of the challenge.
    pub scheme: TokenScheme,
    /// Tells that the response offers `DPoP`, and not `Bearer` beside it.
    pub requires_dpop: bool,
    /// `resource_metadata` as it was written; it may be relative to the URL that was called.
    pub resource_metadata: Option<String>,
    /// Scopes that the request needs.
    pub scope: Option<ScopeSet>,
    /// `error` of the challenge.
    pub code: Option<ChallengeCode>,
}

impl Demand {
    /// Reads the demand of a response. `dpop` tells whether the client has a key: one that has prefers `DPoP` where both
    /// schemes are offered. A scope that cannot be read counts as none.
    pub fn of(headers: &HeaderMap, dpop: bool) -> Option<Self> {
        let challenges = Challenge::parse_all(headers.get_all(WWW_AUTHENTICATE));
        let schemes = if dpop { ["DPoP", "Bearer"] } else { ["Bearer", "DPoP"] };
        let found = schemes.iter().find_map(|scheme| {
            let of_scheme = || challenges.iter().filter(|challenge| challenge.is(scheme));
            of_scheme()
                .find(|challenge| challenge.param("resource_metadata").is_some())
                .or(of_scheme().next())
        })?;
        let offers = |scheme: &str| challenges.iter().any(|challenge| challenge.is(scheme));
        Some(Self {
            requires_dpop: offers("DPoP") && !offers("Bearer"),
            scheme: if found.is("DPoP") { TokenScheme::Dpop } else { TokenScheme::Bearer },
            resource_metadata: found.param("resource_metadata").map(str::to_owned),
            scope: found
                .param("scope")
                .and_then(|scope| scope.parse().ok())
                .filter(|set: &ScopeSet| !set.is_empty()),
            code: found.param("error").map(ChallengeCode::read),
        })
    }

    /// Returns whether the response wants a token with more scopes.
    pub fn wants_more_scope(&self, status: StatusCode) -> bool {
        status == StatusCode::FORBIDDEN && self.code == Some(ChallengeCode::InsufficientScope)
    }

    /// Returns whether the response wants the same token with a proof that has its nonce.
    pub fn wants_nonce(&self) -> bool {
        self.scheme == TokenScheme::Dpop && self.code == Some(ChallengeCode::UseDpopNonce)
    }
}
