//! Records of a store.

use roundtrip_core::auth::{Grant, Registration, Secret};
use serde::{Deserialize, Serialize};

/// Greatest number of registrations that are kept for one server.
const MOST_REGISTRATIONS: usize = 16;

/// Record of one server: the grant, the client's registrations, the key of its proofs.
///
/// It serialises as JSON: store it as safely as a password.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// Grant in use: tokens with their expiry as an absolute time, scopes, issuer, resource and client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// Registrations of the client, at most one for each issuer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<Registration>,
    /// Private key that tokens are bound to (DPoP), where the client made it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof_key: Option<Secret>,
}

impl Record {
    /// Adds a registration in place of an older one of its issuer.
    pub(crate) fn register(&mut self, registration: Registration) {
        self.registrations.retain(|held| held.issuer != registration.issuer);
        self.registrations.truncate(MOST_REGISTRATIONS - 1);
        self.registrations.insert(0, registration);
    }

    /// Takes a new grant, and the registration that it was got with.
    pub(crate) fn sign_in(&mut self, grant: Grant) {
        self.register(grant.terms.client.clone());
        self.grant = Some(grant);
    }
}
