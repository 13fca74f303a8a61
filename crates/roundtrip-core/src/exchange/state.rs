//! `requestState`, on the client.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A server's `requestState`, returned as it came (mrtr, client 2).
///
/// It is opaque to the client: it can be stored and sent, and nothing here reads it.
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
