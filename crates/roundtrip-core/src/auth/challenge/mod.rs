//! Challenges of `WWW-Authenticate` (RFC 9110, 11): reading and writing.

mod demand;
mod parse;

use std::fmt;

use http::HeaderValue;

use super::scope::ScopeSet;
use super::url::HttpUrl;

pub use demand::{Demand, TokenScheme};

/// Reason a text is not a list of challenges, or a parameter cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChallengeError {
    /// More than 8 KiB, 16 challenges, or 32 parameters in one.
    #[error("there are more challenges or parameters than are read")]
    TooMany,
    /// Not the grammar of challenges.
    #[error("it is not a list of challenges")]
    Malformed,
    /// A parameter is there twice.
    #[error("a parameter is there twice")]
    Duplicate,
    /// A character that cannot stand in a header.
    #[error("a parameter has a name or a character that cannot be written into a header")]
    Character,
}

/// The `error` of a challenge (RFC 6750, 3.1; RFC 9449, 7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChallengeCode {
    /// `invalid_request`: the request presents its credentials wrongly.
    InvalidRequest,
    /// `invalid_token`: the token is expired, revoked or not for this resource.
    InvalidToken,
    /// `insufficient_scope`: the token is good, and not enough.
    InsufficientScope,
    /// `use_dpop_nonce`: the proof needs the nonce of the response.
    UseDpopNonce,
    /// Any other code.
    Other(String),
}

impl ChallengeCode {
    /// Returns the code as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
            Self::UseDpopNonce => "use_dpop_nonce",
            Self::Other(code) => code,
        }
    }

    fn read(code: &str) -> Self {
        match code {
            "invalid_request" => Self::InvalidRequest,
            "invalid_token" => Self::InvalidToken,
            "insufficient_scope" => Self::InsufficientScope,
            "use_dpop_nonce" => Self::UseDpopNonce,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// One challenge: a scheme, with a token or with parameters.
///
/// ```
/// use roundtrip_core::auth::{Challenge, ChallengeCode, HttpUrl};
///
/// let metadata = HttpUrl::parse("https://tools.example/.well-known/oauth-protected-resource/mcp").unwrap();
/// let challenge = Challenge::bearer().resource_metadata(&metadata).code(&ChallengeCode::InvalidToken);
/// let text = challenge.to_string();
/// assert!(text.ends_with(r#", error="invalid_token""#));
/// assert_eq!(Challenge::parse(&text).unwrap(), [challenge]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    token: Option<String>,
    params: Vec<(String, String)>,
}

impl Challenge {
    /// Creates a `Bearer` challenge without parameters.
    pub fn bearer() -> Self {
        Self::of("Bearer")
    }

    /// Creates a `DPoP` challenge without parameters.
    pub fn dpop() -> Self {
        Self::of("DPoP")
    }

    fn of(scheme: &str) -> Self {
        Self { scheme: scheme.to_owned(), token: None, params: Vec::new() }
    }

    /// Reads the challenges of one header field.
    ///
    /// # Errors
    /// Fails if it is not a list of challenges, or a longer one than is read.
    pub fn parse(field: &str) -> Result<Vec<Self>, ChallengeError> {
        parse::challenges(field)
    }

    /// Reads the challenges of several header fields. One that cannot be read is passed over: it may be of schemes
    /// that are not used here.
    pub fn parse_all<'a>(fields: impl IntoIterator<Item = &'a HeaderValue>) -> Vec<Self> {
        let text = |field: &'a HeaderValue| std::str::from_utf8(field.as_bytes()).ok();
        let read = fields.into_iter().filter_map(text).take(parse::MOST_CHALLENGES);
        let mut found: Vec<Self> = read.filter_map(|field| Self::parse(field).ok()).flatten().collect();
        found.truncate(parse::MOST_CHALLENGES);
        found
    }

    /// Returns the scheme as it was written.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns whether the scheme is this one, in any case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the token of a scheme that has one in place of parameters (`Negotiate`).
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns the value of a parameter. Names are compared in any case.
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.params.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Adds a parameter.
    ///
    /// # Errors
    /// Fails if the name is not a token or is there already, and if the value cannot stand in a header.
    pub fn with(self, name: &str, value: &str) -> Result<Self, ChallengeError> {
        let is_name = !name.is_empty() && name.bytes().all(parse::is_token_byte);
        if !is_name || value.chars().any(char::is_control) {
            return Err(ChallengeError::Character);
        }
        if self.param(name).is_some() {
            return Err(ChallengeError::Duplicate);
        }
        Ok(self.set(name, value))
    }

    /// Sets `resource_metadata`, the URL of the protected resource's metadata (RFC 9728, 5.1).
    #[must_use]
    pub fn resource_metadata(self, url: &HttpUrl) -> Self {
        self.set("resource_metadata", url.as_str())
    }

    /// Sets `scope`, all that the request needs. An empty set adds nothing.
    #[must_use]
    pub fn scope(self, scopes: &ScopeSet) -> Self {
        if scopes.is_empty() { self } else { self.set("scope", &scopes.to_string()) }
    }

    /// Sets `error`.
    #[must_use]
    pub fn code(self, code: &ChallengeCode) -> Self {
        self.set("error", code.as_str())
    }

    /// Sets a parameter that is known to be writable, in place of one of its name.
    fn set(mut self, name: &str, value: &str) -> Self {
        self.params.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        self.params.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the challenge as a header value.
    ///
    /// # Errors
    /// Fails for a code with characters that cannot stand in a header.
    pub fn to_header(&self) -> Result<HeaderValue, ChallengeError> {
        HeaderValue::from_bytes(self.to_string().as_bytes()).map_err(|_| ChallengeError::Character)
    }
}

/// Writes scheme and parameters, every value as a quoted string.
impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        if let Some(token) = &self.token {
            write!(f, " {token}")?;
        }
        for (index, (name, value)) in self.params.iter().enumerate() {
            f.write_str(if index == 0 { " " } else { ", " })?;
            write!(f, "{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))?;
        }
        Ok(())
    }
}
