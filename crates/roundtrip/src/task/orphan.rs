//! Tasks that an earlier release has stored, in today's form.

use std::borrow::Cow;

use roundtrip_core::round::Journal;
use roundtrip_core::seal::Digest;
use roundtrip_core::wire::{ErrorObject, Raw, json};
use serde::Deserialize;

use super::call::TaskCall;
use super::ended::Ended;
use super::parts;
use super::record::Record;
use super::rows::{AdoptedTask, OrphanTask, TaskKey};
use super::view::split;

/// Members of an earlier release's record that are stored apart today.
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
        let mut record = Record::read(&with_state(head, journal))?;
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

/// Returns the JSON of a record, with the member that an earlier release had in the journal only. Members are not read and written
/// again: numbers of answers stay as they came.
fn with_state<'a>(head: &'a [u8], journal: &[u8]) -> Cow<'a, [u8]> {
    let has_state = Journal::decode(journal).is_ok_and(|journal| journal.state().is_some());
    match head.strip_prefix(b"{").filter(|_| has_state) {
        Some(members) => [&b"{\"stateful\":true,"[..], members].concat().into(),
        None => head.into(),
    }
}

#[cfg(test)]
mod tests {
    use roundtrip_core::round::{Kind, PinKey};
    use roundtrip_core::wire::TaskStatus;
    use serde_json::json;

    use super::*;
    use crate::task::view::prefixed;
    use crate::task::{TaskId, TaskOwner};

    /// Returns a task that asks, as an earlier release has stored it with this journal.
    fn orphan(journal: &[u8]) -> OrphanTask {
        let record = json!({
            "tool": "job", "status": "input_required", "message": null, "created": 1, "updated": 2, "ttl": null,
            "call": { "params": { "name": "job" }, "principal": null }, "flow": vec![7; 16], "rounds": 1,
            "questions": [{ "wire": "sure", "key": "sure", "request": { "method": "roots/list" } }],
            "spent": [], "answers": {}, "cancelled": false, "result": null, "error": null,
        });
        let (mut view, mut work) = (2_u64.to_be_bytes().to_vec(), Vec::new());
        prefixed(&mut view, b"job");
        prefixed(&mut view, b"{}");
        prefixed(&mut work, record.to_string().as_bytes());
        work.extend_from_slice(journal);
        let (id, owner) = (TaskId::new([1; 16]), TaskOwner::new(None));
        OrphanTask { id, owner, version: 3, view: view.into(), work: work.into() }
    }

    /// K5: the journal of an adopted task is that of the orphan, and its state is seen without it.
    #[test]
    fn an_adopted_task_keeps_its_journal_and_the_state_in_it() {
        let digest = Digest::from_bytes([1; Digest::LEN]);
        let adopted = |journal: &[u8]| {
            let adopted = orphan(journal).adopted(digest, digest).unwrap();
            (Record::read(&adopted.work).unwrap(), adopted.journal)
        };
        let mut journal = Journal::new(PinKey::new([9; PinKey::LEN]));
        journal.remember(Kind::Step, "paid", None, "1");
        let stateless = journal.encode([]);
        journal.set_state("{\"cart\":1}");
        let stateful = journal.encode([]);
        for (journal, is_stateful) in [(stateless, false), (stateful, true)] {
            let (record, kept) = adopted(&journal);
            assert_eq!(record.status(), TaskStatus::InputRequired);
            assert_eq!(record.asks_with_state(), is_stateful);
            assert_eq!(kept.as_deref(), Some(&journal[..]));
        }
        assert!(adopted(&[]).1.is_none());
    }
}
