//! Encoding of body values in HTTP headers (transports, "Value Encoding").

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// Encodes a header value: as it is, or in base64 where a header could not carry it or would change it.
pub fn encode_header_value(value: &str) -> Cow<'_, str> {
    let is_plain = value.bytes().all(is_header_byte);
    let is_padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let is_marked = value.starts_with(SENTINEL_START) && value.ends_with(SENTINEL_END);
    if is_plain && !is_padded && !is_marked {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{SENTINEL_START}{}{SENTINEL_END}", STANDARD.encode(value)))
    }
}

/// Decodes a header value.
///
/// # Errors
/// Fails if it has characters that no header value may have, or says that it is base64 and is not.
pub fn decode_header_value(value: &str) -> Result<Cow<'_, str>, HeaderValueError> {
    if !value.bytes().all(is_header_byte) {
        return Err(HeaderValueError::Characters);
    }
    let Some(encoded) = value.strip_prefix(SENTINEL_START).and_then(|rest| rest.strip_suffix(SENTINEL_END))
    else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| HeaderValueError::Base64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| HeaderValueError::Utf8)
}

/// Returns whether a byte is visible ASCII, space or tab.
fn is_header_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~')
}

/// A header value that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderValueError {
    /// Characters that no header value may have.
    #[error("a header value may have only visible ascii characters, spaces and tabs")]
    Characters,
    /// Marked as base64, and not base64.
    #[error("the header value is marked as base64 and is not padded standard base64")]
    Base64,
    /// Not UTF-8 once decoded.
    #[error("the header value does not decode to utf-8")]
    Utf8,
}
