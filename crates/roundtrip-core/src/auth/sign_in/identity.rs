//! Identity assertions: of the platform that the client runs on, and of an organisation's identity provider (ID-JAG), which are
//! looked at and sent on once.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::http::{AuthRequest, AuthResponse};
use super::machine::{SignIn, State, Step};
use super::settings::{IdentityProvider, Settings};
use super::token::{TokenCall, TokenKind, refusal};
use crate::auth::error::AuthError;
use crate::auth::grant::Terms;
use crate::auth::jwt::Jwt;
use crate::auth::pairs::Pairs;
use crate::auth::surroundings::Surroundings;
use crate::auth::token_response::TokenResponse;
use crate::auth::url::{HttpUrl, UrlError};

/// Type of the token that is asked for.
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Request for an assertion of the platform that the client runs on: a token that names the issuer as its audience is of no use
/// anywhere else.
#[derive(Debug, Clone)]
#[must_use = "the sign-in continues with the assertion: pass it to `SignIn::assert`"]
pub struct AssertionRequest {
    pub(super) terms: Terms,
}

impl AssertionRequest {
    /// Returns the issuer that the assertion is sent to, which should be its audience.
    pub fn issuer(&self) -> &str {
        &self.terms.issuer
    }

    /// Returns the resource that tokens are wanted for.
    pub fn resource(&self) -> &str {
        &self.terms.resource
    }
}

/// Asks the identity provider for an assertion for the issuer of the server.
pub(super) fn begin(
    settings: Arc<Settings>,
    provider: &IdentityProvider,
    terms: Terms,
) -> Result<Step, AuthError> {
    let url = &provider.token_endpoint;
    if !(url.is_https() || url.is_loopback() && terms.server.is_loopback()) {
        return Err(AuthError::Issuer { issuer: url.as_str().to_owned(), why: UrlError::Insecure });
    }
    let mut form = Pairs::default();
    form.push("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    form.push("requested_token_type", ID_JAG);
    form.push("audience", &terms.issuer);
    form.push("resource", &terms.resource);
    if !terms.requested.is_empty() {
        form.push("scope", &terms.requested.to_string());
    }
    form.push("subject_token", provider.identity.expose());
    form.push("subject_token_type", provider.identity_type);
    form.push("client_id", &provider.client_id);
    if let Some(secret) = &provider.secret {
        form.push("client_secret", secret.expose());
    }
    let request = AuthRequest::form(url.clone(), form.as_str());
    Ok(SignIn::send(settings, State::Identity(Box::new(terms)), request))
}

/// Takes the assertion, and exchanges it at the issuer.
pub(super) fn respond(
    settings: Arc<Settings>,
    terms: Terms,
    (url, response): (&HttpUrl, &AuthResponse<'_>),
    around: &mut dyn Surroundings,
) -> Result<Step, AuthError> {
    if !response.status.is_success() {
        return Err(response.error(url, refusal));
    }
    let response = TokenResponse::parse(response.body)?;
    if response.issued_token_type.as_deref() != Some(ID_JAG) {
        return Err(AuthError::IdentityAssertion("issued_token_type"));
    }
    check(response.access_token.expose(), &terms)?;
    TokenCall::new(terms, TokenKind::Assertion(response.access_token)).send(settings, around)
}

/// Looks at an assertion before it is sent on: an issuer should see none that was meant for another.
fn check(assertion: &str, terms: &Terms) -> Result<(), AuthError> {
    let differs = AuthError::IdentityAssertion;
    let jwt = Jwt::parse(assertion).map_err(|_| differs("form"))?;
    if jwt.header().kind.as_deref() != Some("oauth-id-jag+jwt") {
        return Err(differs("typ"));
    }
    let claims = jwt.claims().map_err(|_| differs("form"))?;
    let expected =
        [("aud", &terms.issuer), ("resource", &terms.resource), ("client_id", &terms.client.client_id)];
    match expected.into_iter().find(|(name, value)| !is_exactly(&claims, name, value)) {
        Some((name, _)) => Err(differs(name)),
        None => Ok(()),
    }
}

/// Returns whether a claim is one text, alone or as the only one of a list.
fn is_exactly(claims: &Map<String, Value>, name: &str, value: &str) -> bool {
    match claims.get(name) {
        Some(Value::String(text)) => text == value,
        Some(Value::Array(list)) => matches!(&list[..], [only] if only == value),
        _ => false,
    }
}
