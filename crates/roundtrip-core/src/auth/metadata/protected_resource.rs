//! Protected resource metadata (RFC 9728, 2).

use serde::{Deserialize, Serialize};

use crate::auth::json::{self, DocumentError};
use crate::auth::resource::{ResourceIdentifier, ResourceSetupError, check_issuer, check_scopes};
use crate::auth::scope::ScopeSet;

/// Metadata of a protected resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProtectedResource {
    /// Identifier of the resource, byte for byte as published.
    pub resource: String,
    /// Issuers of the authorization servers, byte for byte as published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// Scopes that requests may need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// Ways to present a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// Name of the resource, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// Tells whether every token must be bound to a key (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
}

impl ProtectedResource {
    /// Creates the metadata that a resource server publishes.
    ///
    /// # Errors
    /// Fails without an issuer, for a text that cannot be one, and for `offline_access` among the scopes.
    pub fn publish(
        resource: &ResourceIdentifier,
        issuers: &[String],
        scopes: &ScopeSet,
    ) -> Result<Self, ResourceSetupError> {
        if issuers.is_empty() {
            return Err(ResourceSetupError::NoIssuer);
        }
        for issuer in issuers {
            check_issuer(issuer)?;
        }
        check_scopes(scopes)?;
        Ok(Self {
            resource: resource.as_str().to_owned(),
            authorization_servers: issuers.to_vec(),
            scopes_supported: (!scopes.is_empty()).then(|| scopes.iter().map(str::to_owned).collect()),
            bearer_methods_supported: Some(vec!["header".to_owned()]),
            resource_name: None,
            dpop_bound_access_tokens_required: None,
        })
    }

    /// Reads a document.
    ///
    /// # Errors
    /// Fails if it is not JSON, too long, or a member that is looked at has another type.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        json::document(bytes)
    }

    /// Returns the scopes that requests may need, without what is not a scope.
    pub fn scopes(&self) -> ScopeSet {
        ScopeSet::of_valid(self.scopes_supported.iter().flatten())
    }
}
