//! Resource identifiers (RFC 8707, RFC 9728): checks on exact strings.

use super::scope::{OFFLINE_ACCESS, ScopeSet};
use super::url::{HttpUrl, UrlError};
use super::well_known::resource_metadata_url;

/// Returns whether the resource of a metadata document speaks for a server: the same URL, or a parent of it by whole
/// segments of the path, at the same origin. Queries are not compared.
///
/// ```
/// use roundtrip_core::auth::{HttpUrl, covers_server};
///
/// let server = HttpUrl::parse("https://tools.example/mcp/v1").unwrap();
/// assert!(covers_server("https://tools.example", &server));
/// assert!(covers_server("https://tools.example/mcp", &server));
/// assert!(!covers_server("https://tools.example/mc", &server));
/// assert!(!covers_server("https://tools.example.evil/mcp", &server));
/// ```
pub fn covers_server(resource: &str, server: &HttpUrl) -> bool {
    let Ok(resource) = HttpUrl::parse(resource) else {
        return false;
    };
    if resource.origin() != server.origin() {
        return false;
    }
    let parent = resource.path().trim_end_matches('/');
    let below = server.path().trim_end_matches('/').strip_prefix(parent);
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether a metadata document speaks for a server: its resource is the server, or a parent of it whose own metadata
/// the document is, by the URL that it was read from (RFC 9728, 3.3). Otherwise one tenant of a host could get tokens for
/// the others.
pub(super) fn speaks_for(resource: &str, document: &HttpUrl, server: &HttpUrl) -> bool {
    let Ok(url) = HttpUrl::parse(resource) else {
        return false;
    };
    let is_server = url.path().trim_end_matches('/') == server.path().trim_end_matches('/');
    let own = HttpUrl::parse(&resource_metadata_url(&url));
    let is_own = own.is_ok_and(|own| {
        (own.origin(), own.path(), own.query()) == (document.origin(), document.path(), document.query())
    });
    covers_server(resource, server) && (is_server || is_own)
}

/// Identifier of a protected resource, as its author configured it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceIdentifier(HttpUrl);

/// Reason a resource server cannot be set up as it was configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceSetupError {
    /// The identifier is not a URL that can be one.
    #[error("`{identifier}` is not a resource identifier: {why}")]
    Identifier {
        /// The identifier as it was configured.
        identifier: String,
        /// Reason it cannot be one.
        why: UrlError,
    },
    /// The issuer is not a URL that can be one.
    #[error("`{issuer}` is not an issuer: {why}; give the `issuer` of its metadata, byte for byte")]
    Issuer {
        /// The issuer as it was configured.
        issuer: String,
        /// Reason it cannot be one.
        why: UrlError,
    },
    /// No issuer was named.
    #[error("name at least one issuer whose tokens are accepted")]
    NoIssuer,
    /// `offline_access` is among the scopes.
    #[error(
        "`{OFFLINE_ACCESS}` is between a client and its authorization server: leave it out of the scopes"
    )]
    OfflineAccess,
}

impl ResourceIdentifier {
    /// Checks an identifier: `https`, or `http` on this machine, without a fragment.
    ///
    /// # Errors
    /// Fails if it is not one.
    pub fn parse(text: &str) -> Result<Self, ResourceSetupError> {
        let refuse = |why| ResourceSetupError::Identifier { identifier: text.to_owned(), why };
        Ok(Self(secure(text).map_err(refuse)?))
    }

    /// Returns the identifier as it was configured.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the identifier as a URL.
    pub fn url(&self) -> &HttpUrl {
        &self.0
    }
}

/// Checks an issuer: a URL like that of a resource, without a query (RFC 8414, 2).
///
/// # Errors
/// Fails if it is not one.
pub fn check_issuer(text: &str) -> Result<HttpUrl, ResourceSetupError> {
    let checked = secure(text).and_then(|url| match url.query() {
        None => Ok(url),
        Some(_) => Err(UrlError::Query),
    });
    checked.map_err(|why| ResourceSetupError::Issuer { issuer: text.to_owned(), why })
}

/// Checks the scopes that a resource server publishes or asks for.
///
/// # Errors
/// Fails if `offline_access` is among them.
pub fn check_scopes(scopes: &ScopeSet) -> Result<(), ResourceSetupError> {
    if scopes.contains(OFFLINE_ACCESS) { Err(ResourceSetupError::OfflineAccess) } else { Ok(()) }
}

fn secure(text: &str) -> Result<HttpUrl, UrlError> {
    let url = HttpUrl::parse(text)?;
    if url.is_https() || url.is_loopback() { Ok(url) } else { Err(UrlError::Insecure) }
}
