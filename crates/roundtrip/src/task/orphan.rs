//! Tasks that an earlier release has stored, in today's form.

use roundtrip_core::seal::Digest;
use roundtrip_core::wire::{ErrorObject, Raw, json};
use serde::Deserialize;

use super::call::TaskCall;
use super::ended::Ended;
use super::parts;
use super::record::Record;
use super::rows::{AdoptedTask, OrphanTask, TaskKey};
use super::view::split;

/// What an earlier release has stored in the record that has a place of its own today.
#[derive(Deserialize)]
struct Contents {
    call: Option<TaskCall>,
    result: Option<Raw>,
    error: Option<ErrorObject>,
}

impl OrphanTask {
    /// Returns the name of its tool.
    pub(crate) fn tool(&self) -> &str {
        Record::tool_of(&self.view)
    }

    /// Returns the task as a service adopts it that runs it as this kind.
    ///
    /// # Errors
    /// Fails if the bytes are not those of a task.
    pub(crate) fn adopted(self, service: Digest, kind: Digest) -> Result<AdoptedTask, serde_json::Error> {
        let (head, journal) = split(&self.work);
        let mut record = Record::read(head)?;
        let Contents { call, result, error } = json::from_slice(head)?;
        let call = call.as_ref().map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let ended = result.map(Ended::Completed).or(error.map(Ended::Failed));
        record.set_failure(ended.as_ref());
        // The time of the last change, the tool, and the task come before the parts.
        let (_, rest) = split(self.view.get(8..).unwrap_or_default());
        let (_, parts) = split(rest);
        record.set_parts(parts::count(parts), parts.len());
        let key = TaskKey { service, owner: self.owner, id: self.id };
        let (view, work) = record.write(&key.id)?;
        let piece = |bytes: &[u8]| (!bytes.is_empty()).then(|| bytes.to_vec().into());
        Ok(AdoptedTask {
            key,
            version: self.version,
            kind,
            call: call.into(),
            view,
            work,
            result: ended.and_then(|ended| ended.encoded()),
            journal: piece(journal),
            parts: piece(parts),
        })
    }
}
