//! Shapes that only some of the handshake revisions have.

use bytes::Bytes;
use roundtrip_core::wire::{ProtocolVersion, Raw, decode_batch};
use serde_json::Value;

use crate::client::{Error, PeerMisbehaved};

/// Most messages in one batch.
const BATCH: usize = 256;

/// Splits a batch into its messages (2025-03-26 alone).
pub(super) fn batch(bytes: &[u8]) -> Result<Vec<Bytes>, Error> {
    let messages = decode_batch(bytes, BATCH).map_err(|error| {
        // The messages are not read yet, so the only data error is one message too many.
        if error.is_data() {
            PeerMisbehaved::TooLarge(format!("a batch of more than {BATCH} messages"))
        } else {
            PeerMisbehaved::MalformedMessage(format!("not a batch: {error}"))
        }
    })?;
    // A batch within a batch would be read without end.
    let messages = messages.into_iter().filter(|message| !message.get().starts_with('['));
    Ok(messages.map(|message| Bytes::copy_from_slice(message.get().as_bytes())).collect())
}

/// Returns a sampling answer for a revision: before 2025-11-25 its content is one block, never a list.
pub(super) fn plain(answer: &Raw, version: ProtocolVersion) -> Raw {
    if version >= ProtocolVersion::V2025_11_25 {
        return answer.clone();
    }
    let mut value = answer.to_value();
    match value.get_mut("content").map(Value::take) {
        Some(Value::Array(mut contents)) if contents.len() == 1 => {
            value["content"] = contents.remove(0);
            value.into()
        }
        _ => answer.clone(),
    }
}
