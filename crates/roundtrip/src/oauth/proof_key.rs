//! Key that tokens are bound to (DPoP).

use std::sync::Arc;

use roundtrip_core::auth::{AuthError, Signer};

use super::tokens::Tokens;
use crate::signature::PrivateKey;

/// Origin of the key.
#[derive(Clone)]
pub(super) enum ProofKey {
    /// The author's.
    Given(Arc<dyn Signer>),
    /// One that is made, and stored with the tokens.
    Stored,
}

impl ProofKey {
    /// Returns the key.
    pub(super) async fn key(&self, tokens: &Tokens) -> Result<Arc<dyn Signer>, AuthError> {
        match self {
            Self::Given(key) => Ok(Arc::clone(key)),
            Self::Stored => {
                let unusable =
                    |_| AuthError::Settings("the stored key of proofs cannot be used: sign in again");
                let fresh = PrivateKey::generate().and_then(|key| key.to_pem()).map_err(unusable)?;
                let stored = tokens.proof_key(fresh).await?;
                Ok(Arc::new(PrivateKey::from_pem(stored.expose()).map_err(unusable)?))
            }
        }
    }
}
