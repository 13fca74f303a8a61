//! Introspection of tokens (RFC 7662): the request, and the members of the response.

use http::header::AUTHORIZATION;
use serde_json::{Map, Value};

use super::client_auth::{ClientAuth, ClientAuthMethod};
use super::error::AuthError;
use super::json::{self, DocumentError};
use super::pairs::Pairs;
use super::secret::Secret;
use super::sign_in::AuthRequest;
use super::url::HttpUrl;

/// Creates the request that asks an introspection endpoint about a token. `client` is the id and secret of the one that asks.
///
/// # Errors
/// Fails if the id cannot be in a header.
pub fn introspection_request(
    url: HttpUrl,
    client: Option<(&str, &Secret)>,
    token: &str,
) -> Result<AuthRequest, AuthError> {
    let mut form = Pairs::default();
    form.push("token", token);
    form.push("token_type_hint", "access_token");
    let mut request = AuthRequest::form(url, form.as_str());
    if let Some((client_id, secret)) = client {
        let method = ClientAuthMethod::ClientSecretBasic;
        let client = ClientAuth { method, client_id, secret: Some(secret), key: None, issuer: "" };
        request.headers.insert(AUTHORIZATION, client.basic()?);
    }
    Ok(request)
}

/// Reads the response of an introspection endpoint. [`ClaimRules::check_introspected`](super::ClaimRules::check_introspected)
/// checks what it says.
///
/// # Errors
/// Fails if it is not a JSON object, and if a member is there twice.
pub fn read_introspection(body: &[u8]) -> Result<Map<String, Value>, DocumentError> {
    json::object(body)
}
