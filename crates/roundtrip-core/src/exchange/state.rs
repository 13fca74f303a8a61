//! What a server gives to be handed back.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A server's state, handed back as it came (mrtr, client 2).
///
/// It is nobody's business but the server's, so nothing here reads it: it can be stored and sent, and that is all.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestState(String);

impl RequestState {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestState(..)")
    }
}
