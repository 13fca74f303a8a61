//! Issuer identification in authorization responses (RFC 9207).

/// Reason an authorization response is not from the issuer that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssError {
    /// `iss` is of another issuer.
    #[error("`iss` is not the issuer that was asked")]
    Different,
    /// `iss` is missing, though the metadata promises it.
    #[error("`iss` is missing, though the metadata of the authorization server promises it")]
    Missing,
}

/// Checks `iss` of an authorization response: compared as a plain string when it is there, whether promised or not, and
/// required when the metadata promises it.
///
/// # Errors
/// Fails on another issuer, and on none where one is promised. The code must then be sent nowhere, and nothing of the response
/// be shown.
pub fn check_iss(recorded: &str, received: Option<&str>, promised: bool) -> Result<(), IssError> {
    match received {
        Some(received) if received == recorded => Ok(()),
        Some(_) => Err(IssError::Different),
        None if promised => Err(IssError::Missing),
        None => Ok(()),
    }
}
