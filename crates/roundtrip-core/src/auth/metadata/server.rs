//! Authorization server metadata (RFC 8414, 2; OpenID Connect Discovery, 3).

use serde::{Deserialize, Serialize};

use crate::auth::json::{self, DocumentError};
use crate::auth::url::{HttpUrl, UrlError};
use crate::auth::url_policy::UrlPolicy;

/// Metadata of an authorization server. Members that are absent are `None`, or an empty list where the two mean the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// Issuer, byte for byte as published.
    pub issuer: String,
    /// URL to open in a browser.
    pub authorization_endpoint: Option<String>,
    /// URL at which tokens are got.
    pub token_endpoint: Option<String>,
    /// URL at which clients register (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// URL at which a device asks for a code (RFC 8628).
    pub device_authorization_endpoint: Option<String>,
    /// URL at which tokens are introspected (RFC 7662).
    pub introspection_endpoint: Option<String>,
    /// URL of the keys that tokens are signed with.
    pub jwks_uri: Option<String>,
    /// Scopes that the server knows.
    pub scopes_supported: Option<Vec<String>>,
    /// Grants that the server offers.
    pub grant_types_supported: Option<Vec<String>>,
    /// Methods of PKCE.
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Ways in which a client authenticates itself. Absent means `client_secret_basic`.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Algorithms of client assertions.
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// Algorithms of proofs (RFC 9449).
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Tells whether authorization responses have `iss` (RFC 9207).
    pub authorization_response_iss_parameter_supported: Option<bool>,
    /// Tells whether a client id may be the URL of a metadata document.
    pub client_id_metadata_document_supported: Option<bool>,
}

/// Reason an authorization server's metadata cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// Not a document.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// The document speaks for another issuer.
    #[error("it is of the issuer `{found}`, and `{expected}` was asked for")]
    Issuer {
        /// Issuer that led to the document.
        expected: String,
        /// Issuer that the document names.
        found: String,
    },
    /// An endpoint is missing.
    #[error("it has no `{0}`")]
    Missing(&'static str),
    /// An endpoint is not a URL that is used.
    #[error("its `{member}` is not used: {why}")]
    Endpoint {
        /// Member of the document.
        member: &'static str,
        /// Reason the URL is not used.
        why: UrlError,
    },
    /// The server does not say that it does PKCE with S256.
    #[error(
        "it does not list S256 in `code_challenge_methods_supported`, without which a code can be stolen"
    )]
    NoPkce,
}

impl ServerMetadata {
    /// Reads a document, and checks that it is of the issuer that led to it, as plain strings.
    ///
    /// # Errors
    /// Fails if it is not JSON, too long, of another issuer, or a member that is looked at has another type.
    pub fn parse(bytes: &[u8], issuer: &str) -> Result<Self, MetadataError> {
        let document: Self = json::document(bytes)?;
        if document.issuer != issuer {
            let found = crate::wire::clip(&document.issuer).into_owned();
            return Err(MetadataError::Issuer { expected: issuer.to_owned(), found });
        }
        Ok(document)
    }

    /// Returns the endpoints that revision 2025-03-26 assumed at the origin of a server without metadata.
    pub(crate) fn assumed(origin: &str) -> Self {
        let at = |path: &str| Some(format!("{origin}{path}"));
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }

    /// Returns an endpoint that is needed.
    ///
    /// # Errors
    /// Fails if it is missing, or a URL that is not allowed.
    pub fn endpoint(&self, member: &'static str, policy: &UrlPolicy) -> Result<HttpUrl, MetadataError> {
        let text = match member {
            "authorization_endpoint" => &self.authorization_endpoint,
            "token_endpoint" => &self.token_endpoint,
            "registration_endpoint" => &self.registration_endpoint,
            "device_authorization_endpoint" => &self.device_authorization_endpoint,
            "introspection_endpoint" => &self.introspection_endpoint,
            "jwks_uri" => &self.jwks_uri,
            _ => &None,
        };
        let text = text.as_deref().ok_or(MetadataError::Missing(member))?;
        policy.read(text).map_err(|why| MetadataError::Endpoint { member, why })
    }

    /// Checks that the server does PKCE with S256.
    ///
    /// # Errors
    /// Fails if it does not say so.
    pub fn check_pkce(&self) -> Result<(), MetadataError> {
        if lists(&self.code_challenge_methods_supported, "S256") {
            Ok(())
        } else {
            Err(MetadataError::NoPkce)
        }
    }

    /// Returns whether the server lists a scope.
    pub fn lists_scope(&self, scope: &str) -> bool {
        lists(&self.scopes_supported, scope)
    }

    /// Returns whether the server takes proofs of an algorithm.
    pub fn lists_dpop(&self, algorithm: &str) -> bool {
        lists(&self.dpop_signing_alg_values_supported, algorithm)
    }

    /// Returns whether every authorization response must have `iss`.
    pub fn promises_iss(&self) -> bool {
        self.authorization_response_iss_parameter_supported == Some(true)
    }
}

fn lists(list: &Option<Vec<String>>, value: &str) -> bool {
    list.iter().flatten().any(|listed| listed == value)
}
