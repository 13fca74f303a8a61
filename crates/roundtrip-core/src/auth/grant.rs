//! A grant: tokens, and all that is needed to present and renew them.

use std::time::Duration;

use http::HeaderValue;
use serde::{Deserialize, Deserializer, Serialize};

use super::challenge::TokenScheme;
use super::client_auth::ClientAuthMethod;
use super::registration::Registration;
use super::resource::covers_server;
use super::scope::ScopeSet;
use super::secret::Secret;
use super::url::HttpUrl;
use crate::seal::Timestamp;
use crate::wire::json::ByName;

/// Time before its end at which a token is renewed.
const EARLY: Duration = Duration::from_secs(30);

/// Terms on which a client gets tokens: of which issuer, for which resource, as which client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Terms {
    /// URL of the server that is called.
    pub server: HttpUrl,
    /// `resource` of every request, byte for byte as published.
    pub resource: String,
    /// Issuer, byte for byte as published.
    pub issuer: String,
    /// URL of the resource metadata that named the issuer, if there is some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_metadata: Option<HttpUrl>,
    /// URL at which tokens are got.
    pub token_endpoint: HttpUrl,
    /// The client as the issuer knows it.
    pub client: Registration,
    /// Way in which the client authenticates itself.
    pub method: ClientAuthMethod,
    /// Scopes that were requested.
    pub requested: ScopeSet,
    /// Thumbprint of the key that tokens are bound to.
    pub dpop: Option<String>,
    /// Tells that tokens have to be bound to that key: the resource or the author requires it, or the issuer has done so before.
    #[serde(default)]
    pub requires_dpop: bool,
    /// Tells that no metadata names the endpoints: they were assumed at the origin of the server.
    pub assumed_endpoints: bool,
    /// Random name of the sign-in that gave the tokens. Renewals keep it; a grant from before there were names has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<String>,
}

/// Tokens of one issuer for one resource. It serialises as JSON: store it as safely as a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Grant {
    /// Terms on which the tokens were got.
    pub terms: Terms,
    /// Access token.
    pub access_token: Secret,
    /// Scheme by which the token is presented.
    pub scheme: TokenScheme,
    /// Time at which the access token ends, in seconds since 1970; `None` if the server did not say.
    pub expires_at: Option<u64>,
    /// Refresh token, if the server gave one.
    pub refresh_token: Option<Secret>,
    /// Scopes that were granted.
    pub granted: ScopeSet,
}

/// The stored form of [`Grant`].
#[derive(Deserialize)]
#[serde(remote = "Grant")]
struct Stored {
    terms: Terms,
    access_token: Secret,
    scheme: TokenScheme,
    expires_at: Option<u64>,
    refresh_token: Option<Secret>,
    granted: ScopeSet,
}

// A store is trusted no more than a peer: lists are not taken for structs.
impl<'de> Deserialize<'de> for Grant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(ByName::new(deserializer))
    }
}

impl Grant {
    /// Returns the `Authorization` header for a request, or `None` if the token was got for another resource than this URL.
    pub fn authorization(&self, url: &HttpUrl) -> Option<HeaderValue> {
        if !covers_server(&self.terms.resource, url) {
            return None;
        }
        let text = Secret::new(format!("{} {}", self.scheme.as_str(), self.access_token.expose()));
        let mut value = HeaderValue::from_str(text.expose()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns whether this grant and another come from one sign-in: they are the same, or one renews the other.
    pub fn is_of_same_sign_in(&self, other: &Self) -> bool {
        self.terms.sign_in.is_some() && self.terms.sign_in == other.terms.sign_in
    }

    /// Returns whether the access token should be renewed: it ends within 30 seconds.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now.plus(EARLY).as_unix() >= end)
    }

    /// Returns whether the access token has ended. One whose end is unknown is used until it is refused.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now.as_unix() >= end)
    }

    /// Drops the refresh token after `invalid_grant`, if it is still the one that was refused: another process may have renewed
    /// the grant meanwhile. Returns whether it was dropped.
    pub fn drop_refused(&mut self, refused: &Secret) -> bool {
        let same = self.refresh_token.as_ref() == Some(refused);
        if same {
            self.refresh_token = None;
        }
        same
    }
}
