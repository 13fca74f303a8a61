//! Words of a peer, made fit to be shown.

use std::fmt;

use serde::Deserialize;

use super::json;
use crate::wire::clip;

/// Quotes a peer's text: on one line, without characters that act on a terminal, and shortened.
pub(super) fn quote(text: &str) -> String {
    let shown = |char: char| if char.is_control() || is_steering(char) { ' ' } else { char };
    clip(text).chars().map(shown).collect()
}

/// Returns whether a character changes the direction of the text around it.
fn is_steering(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `error` and `error_description` of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerError {
    /// The code, such as `access_denied`.
    pub code: String,
    /// The server's words, on one line and shortened.
    pub description: Option<String>,
}

impl PeerError {
    /// Reads the error of a response's body.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Body {
            error: String,
            #[serde(default)]
            error_description: Option<String>,
        }
        let body: Body = json::document(body).ok()?;
        let description = body.error_description.as_deref().map(quote);
        Some(Self { code: quote(&body.error), description })
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.description {
            Some(description) => write!(f, "{}: {description}", self.code),
            None => f.write_str(&self.code),
        }
    }
}
