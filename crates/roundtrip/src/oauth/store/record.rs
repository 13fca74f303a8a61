//! Records of a store.

use roundtrip_core::auth::{Grant, Registration, Secret};
use roundtrip_core::wire::json::ByName;
use serde::{Deserialize, Deserializer, Serialize};

/// Greatest number of registrations that are kept for one server.
const MOST_REGISTRATIONS: usize = 16;

/// Record of one server: the grant, the client's registrations, the key of its proofs.
///
/// It serialises as JSON: store it as safely as a password.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// Grant in use: tokens with their expiry as an absolute time, scopes, issuer, resource and client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// Registrations of the client, at most one for each issuer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<Registration>,
    /// Private key that tokens are bound to (DPoP), where the client made it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_key: Option<Secret>,
}

/// The stored form of [`Record`].
#[derive(Deserialize)]
#[serde(remote = "Record")]
struct Stored {
    #[serde(default)]
    grant: Option<Grant>,
    #[serde(default)]
    registrations: Vec<Registration>,
    #[serde(default)]
    proof_key: Option<Secret>,
}

// A store is trusted no more than a peer: lists are not taken for structs.
impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(ByName::new(deserializer))
    }
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
