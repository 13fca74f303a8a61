//! The OAuth client that the answers of a task have to come from.

use roundtrip_core::seal::Digest;

use super::Record;

impl Record {
    /// Binds its answers to an OAuth client, if there is one.
    pub(crate) fn answered_by(mut self, client: Option<Digest>) -> Self {
        self.client = client.map(|client| client.to_string());
        self
    }

    /// Returns whether it takes answers from an OAuth client.
    pub(crate) fn is_answered_by(&self, client: Option<Digest>) -> bool {
        self.client.as_ref().is_none_or(|own| client.is_some_and(|client| client.to_string() == *own))
    }
}
