//! The clock and the randomness of a server. The core has neither.

use std::time::SystemTime;

use roundtrip_core::seal::Timestamp;
use roundtrip_core::wire::ErrorObject;

/// Draws random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ErrorObject> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "no randomness to be had");
        ErrorObject::internal("internal error")
    })?;
    Ok(bytes)
}

/// Returns the present time.
pub(crate) fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}
