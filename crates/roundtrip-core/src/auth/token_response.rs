//! The response of a token endpoint (RFC 6749, 5.1).

use serde::Deserialize;
use serde_json::Value;

use super::challenge::TokenScheme;
use super::credentials::is_token68;
use super::error::AuthError;
use super::grant::{Grant, Terms};
use super::json;
use super::jwt::LONGEST_TOKEN;
use super::scope::ScopeSet;
use super::secret::Secret;
use crate::seal::Timestamp;

/// Longest lifetime that is believed, in seconds: ten years.
const LONGEST_LIFE: u64 = 10 * 365 * 24 * 3600;

/// Members of a token response.
#[derive(Debug, Deserialize)]
pub(super) struct TokenResponse {
    pub(super) access_token: Secret,
    pub(super) token_type: String,
    #[serde(default)]
    expires_in: Option<Value>,
    #[serde(default)]
    refresh_token: Option<Secret>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    pub(super) issued_token_type: Option<String>,
}

impl TokenResponse {
    pub(super) fn parse(body: &[u8]) -> Result<Self, AuthError> {
        let refuse = AuthError::TokenResponse;
        let response: Self = json::document(body)
            .map_err(|_| refuse("it is not an object with `access_token` and `token_type`"))?;
        let token = response.access_token.expose();
        if token.len() > LONGEST_TOKEN || !is_token68(token) {
            return Err(refuse("its `access_token` cannot stand in a header"));
        }
        Ok(response)
    }

    /// Makes a grant. What the response leaves out stays as `old` has it (RFC 6749, 6), or as it was requested.
    pub(super) fn into_grant(
        self,
        terms: Terms,
        old: Option<&Grant>,
        now: Timestamp,
    ) -> Result<Grant, AuthError> {
        // RFC 9449, 5: an issuer that ignores the proof, or one in the middle, must not get a token used without its key.
        let is_bound = terms.requires_dpop || old.is_some_and(|old| old.scheme == TokenScheme::Dpop);
        let scheme = match self.token_type.as_str() {
            kind if kind.eq_ignore_ascii_case("Bearer") && is_bound => {
                return Err(AuthError::TokenResponse(
                    "its token is not bound to the key, and DPoP is required: ask the operator of the issuer",
                ));
            }
            kind if kind.eq_ignore_ascii_case("Bearer") => TokenScheme::Bearer,
            kind if kind.eq_ignore_ascii_case("DPoP") && terms.dpop.is_some() => TokenScheme::Dpop,
            _ => return Err(AuthError::TokenResponse("its `token_type` is not one that was asked for")),
        };
        let scope = self.scope.as_deref().map(|scope| ScopeSet::of_valid(scope.split(' ')));
        let granted = scope.unwrap_or_else(|| old.map_or(&terms.requested, |old| &old.granted).clone());
        // An empty one is none, and leaves the old one good.
        let refresh_token = self.refresh_token.filter(|token| !token.expose().is_empty());
        let life = self.expires_in.as_ref().and_then(seconds);
        Ok(Grant {
            granted,
            access_token: self.access_token,
            scheme,
            expires_at: life.map(|life| now.as_unix().saturating_add(life.min(LONGEST_LIFE))),
            refresh_token: refresh_token.or_else(|| old.and_then(|old| old.refresh_token.clone())),
            terms,
        })
    }
}

/// Reads a lifetime, which some servers write as text. One that cannot be read is unknown.
fn seconds(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => {
            let whole = |time: f64| (0.0..9.0e15).contains(&time).then_some(time as u64);
            number.as_u64().or_else(|| number.as_f64().and_then(whole))
        }
        _ => None,
    }
}
