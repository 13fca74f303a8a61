//! Credentials of a request: the `Authorization` header, as a resource server reads it.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::challenge::TokenScheme;
use super::jwt::LONGEST_TOKEN;

/// A token as it was presented. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Credentials<'a> {
    scheme: TokenScheme,
    token: &'a str,
}

/// An `Authorization` header that is malformed, too long, or there twice: answer 400 with `invalid_request`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("send one `Authorization` header: a scheme, a space, and a token of at most {LONGEST_TOKEN} bytes")]
pub struct MalformedCredentials;

impl<'a> Credentials<'a> {
    /// Reads the token of a request. A header of another scheme is none: the challenge says which are known. The query is
    /// never looked at.
    ///
    /// # Errors
    /// Fails for two headers, and for one of a known scheme that has no token.
    pub fn read(headers: &'a HeaderMap) -> Result<Option<Self>, MalformedCredentials> {
        let mut all = headers.get_all(AUTHORIZATION).iter();
        match (all.next(), all.next()) {
            (None, _) => Ok(None),
            (Some(header), None) => Self::parse(header),
            (Some(_), Some(_)) => Err(MalformedCredentials),
        }
    }

    fn parse(header: &'a HeaderValue) -> Result<Option<Self>, MalformedCredentials> {
        let text = header.to_str().map_err(|_| MalformedCredentials)?;
        let (name, token) = text.split_once(' ').unwrap_or((text, ""));
        let scheme = match name {
            _ if name.eq_ignore_ascii_case("Bearer") => TokenScheme::Bearer,
            _ if name.eq_ignore_ascii_case("DPoP") => TokenScheme::Dpop,
            "" => return Err(MalformedCredentials),
            _ => return Ok(None),
        };
        let token = token.trim_start_matches(' ');
        if token.len() > LONGEST_TOKEN || !is_token68(token) {
            return Err(MalformedCredentials);
        }
        Ok(Some(Self { scheme, token }))
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> TokenScheme {
        self.scheme
    }

    /// Returns the token.
    pub fn token(&self) -> &'a str {
        self.token
    }
}

/// Returns whether a text has the form of a token in a header (RFC 6750, 2.1).
pub(super) fn is_token68(text: &str) -> bool {
    let token = text.trim_end_matches('=');
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !token.is_empty() && token.bytes().all(fits)
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
