//! The authorization response: a callback URL, read and checked before its code is used.

use super::issuer::{IssError, check_iss};
use super::pairs;
use super::secret::Secret;
use super::text::{PeerError, quote};

/// Longest callback URL, in bytes.
const LONGEST: usize = 16 * 1024;

/// Record that a callback is checked against.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// `state` of the authorization request.
    pub state: &'a Secret,
    /// Issuer of the validated metadata, recorded before the browser opened.
    pub issuer: &'a str,
    /// Tells whether the metadata promises `iss`.
    pub promises_iss: bool,
    /// Redirect URI of the authorization request.
    pub redirect_uri: &'a str,
}

/// Reason a callback gives no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackError {
    /// The URL is not the redirect URI, or its `state` is not that of this sign-in: drop it, and go on waiting.
    #[error(
        "the callback is not of this sign-in: drop it and go on waiting, or paste the whole URL of this one"
    )]
    NotOurs,
    /// Too long, or not in the encoding of forms.
    #[error("the callback cannot be read: sign in again")]
    Malformed,
    /// A parameter is there twice.
    #[error("the callback has `{0}` twice: sign in again")]
    Repeated(&'static str),
    /// The response is not from the issuer that was asked.
    #[error(
        "the callback was dropped, and its code sent nowhere: {0}; sign in again, and report the server if it recurs"
    )]
    Issuer(#[from] IssError),
    /// The authorization server, or the person at it, refused.
    #[error("the authorization server refused: {0}")]
    Refused(PeerError),
    /// Neither a code nor an error.
    #[error("the callback has neither `code` nor `error`: sign in again")]
    NoCode,
}

/// Reads a callback URL and checks it. The order matters: nothing of a response is acted on before `state` and `iss` hold.
///
/// # Errors
/// Fails if the callback gives no code that may be used.
pub fn read_callback(url: &str, expected: &Expected<'_>) -> Result<Secret, CallbackError> {
    if url.len() > LONGEST {
        return Err(CallbackError::Malformed);
    }
    let url = url.split('#').next().unwrap_or_default();
    let (base, query) = url.split_once('?').ok_or(CallbackError::NotOurs)?;
    if base != expected.redirect_uri {
        return Err(CallbackError::NotOurs);
    }
    let pairs = pairs::parse(query).ok_or(CallbackError::Malformed)?;
    // With two of them, one could be a guess.
    let state = single(&pairs, "state").ok().flatten().ok_or(CallbackError::NotOurs)?;
    if !expected.state.matches(state) {
        return Err(CallbackError::NotOurs);
    }
    check_iss(expected.issuer, single(&pairs, "iss")?, expected.promises_iss)?;
    let (code, error) = (single(&pairs, "code")?, single(&pairs, "error")?);
    if let Some(error) = error {
        let description = pairs.iter().find(|(name, _)| name == "error_description");
        let description = description.map(|(_, text)| quote(text));
        return Err(CallbackError::Refused(PeerError { code: quote(error), description }));
    }
    code.filter(|code| !code.is_empty()).map(Secret::new).ok_or(CallbackError::NoCode)
}

fn single<'a>(pairs: &'a [(String, String)], name: &'static str) -> Result<Option<&'a str>, CallbackError> {
    let mut values = pairs.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str());
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(CallbackError::Repeated(name)),
        (value, None) => Ok(value),
    }
}
