//! [`View`]: the bytes of a stored task that clients are answered from.

use std::time::Duration;

use roundtrip_core::wire::WrittenTask;

use super::ended::Ended;
use super::{Millis, StoredView};

/// Bounds of the time between two `tasks/get`: the longer nothing has changed, the longer.
const POLL: (Duration, Duration) = (Duration::from_millis(SHORTEST_POLL), Duration::from_secs(5));
/// The shorter of them, in milliseconds: that of the examples in SEP-2322.
pub(crate) const SHORTEST_POLL: u64 = 100;

/// The view of a stored task.
pub(super) struct View<'a> {
    /// Time of its last change.
    pub(super) updated: Millis,
    /// Name of its tool.
    pub(super) tool: &'a [u8],
    /// The task, as JSON.
    pub(super) task: &'a [u8],
}

impl<'a> View<'a> {
    /// Splits the bytes of a view.
    pub(super) fn split(view: &'a [u8]) -> Self {
        let (updated, rest) = view.split_first_chunk().unwrap_or((&[0; 8], view));
        let (tool, task) = split(rest);
        Self { updated: Millis(u64::from_be_bytes(*updated)), tool, task }
    }

    /// Returns the time after which it is worth another look, in milliseconds.
    pub(super) fn poll_interval(&self, now: Millis) -> u64 {
        let interval = (now.since(self.updated) / 4).clamp(POLL.0, POLL.1);
        u64::try_from(interval.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the bytes of the view.
    pub(super) fn joined(&self) -> Vec<u8> {
        let mut view = Vec::with_capacity(16 + self.tool.len() + self.task.len());
        view.extend_from_slice(&self.updated.0.to_be_bytes());
        prefixed(&mut view, self.tool);
        view.extend_from_slice(self.task);
        view
    }
}

/// Returns a stored task as `tasks/get` returns it, copied as it was written. `None` if something is to be changed: such a task is
/// decoded.
pub(crate) fn written_task(stored: &StoredView, now: Millis) -> Option<WrittenTask> {
    // Its message may have to say what it waits for.
    if stored.is_waiting {
        return None;
    }
    let view = View::split(&stored.view);
    let result = match &stored.result {
        Some(result) => Some(Ended::result_of(result)?),
        None => None,
    };
    WrittenTask::new(view.task, || view.poll_interval(now), result)
}

/// Appends bytes behind their length.
pub(super) fn prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Splits bytes that begin with a length.
pub(super) fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return (&[], &[]) };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    rest.split_at_checked(length).unwrap_or((rest, &[]))
}

/// Returns the description of a task that waits for a process which can run it.
pub(crate) fn left_for(why: &str) -> String {
    format!("waiting for a worker that can run this task: {why}")
}

#[cfg(test)]
mod tests {
    use roundtrip_core::seal::{Digest, FlowId};
    use roundtrip_core::wire::{ErrorObject, GetTaskResult, Raw};
    use serde_json::{Value, json};

    use super::super::{Record, TaskId};
    use super::*;

    fn record(message: Option<&str>, ttl: Option<u64>, ended: Option<&Ended>) -> Record {
        let ttl = ttl.map(Duration::from_millis);
        let mut record = Record::new("tool".to_owned(), FlowId::new([1; 16]), Millis(1_000), ttl);
        if let Some(message) = message {
            record.set_message(message, Millis(2_000));
        }
        if let Some(ended) = ended {
            record.end(ended, Millis(3_000));
        }
        record
    }

    /// T2: a task is the same whether it is copied or decoded, in every status.
    #[test]
    fn a_task_is_the_same_copied_and_decoded() {
        let result = |text: &str, is_error: bool| {
            let content = json!({ "content": [{ "type": "text", "text": text }], "isError": is_error });
            Ended::Completed(Raw::from(content))
        };
        let ends = [
            (None, true),
            (Some(result("done", false)), true),
            (Some(result("\"}\n", false)), true),
            // A failure is in the view too, in short.
            (Some(result("not done", true)), false),
            (Some(Ended::Failed(ErrorObject::internal("no"))), false),
            (Some(Ended::Cancelled), true),
        ];
        let now = Millis(9_000);
        for (ended, is_simple) in &ends {
            for message in [None, Some("half"), Some("a \"b\"")] {
                for ttl in [None, Some(60_000)] {
                    let id = TaskId::new([7; 16]);
                    let record = record(message, ttl, ended.as_ref());
                    let (view, _) = record.write(&id).unwrap();
                    let result = ended.as_ref().and_then(Ended::encoded);
                    let kind = Digest::from_bytes([1; Digest::LEN]);
                    let stored = StoredView { view, kind, is_waiting: false, result };
                    let decoded = Record::read_view(&stored.view, stored.result.as_deref(), now).unwrap();
                    let decoded = serde_json::to_value(GetTaskResult::from(decoded)).unwrap();
                    let copied = written_task(&stored, now).map(|task| serde_json::to_value(task).unwrap());
                    let is_copied = *is_simple && !message.is_some_and(|text| text.contains('"'));
                    assert_eq!(copied, is_copied.then_some(decoded), "{message:?} {ended:?}");
                    let waits = StoredView { is_waiting: true, ..stored };
                    assert!(written_task(&waits, now).is_none());
                }
            }
        }
    }

    /// T2: bytes that are not those of a task are not copied.
    #[test]
    fn what_is_not_a_task_is_not_copied() {
        let (view, _) = record(None, None, None).write(&TaskId::new([7; 16])).unwrap();
        let kind = Digest::from_bytes([1; Digest::LEN]);
        let with = |view: &[u8], result: Option<&[u8]>| {
            let [view, result] = [Some(view), result].map(|part| part.map(bytes::Bytes::copy_from_slice));
            let stored = StoredView { view: view.unwrap_or_default(), kind, is_waiting: false, result };
            written_task(&stored, Millis(1)).map(|task| serde_json::to_value(task).unwrap())
        };
        assert!(with(&view, None).is_some_and(|task| task["pollIntervalMs"] != Value::Null));
        for result in [&b"\x01{"[..], b"\x01{}x", b"\x01", b"\x02{}", b"\x03{}", b""] {
            assert!(with(&view, Some(result)).is_none(), "{result:?}");
        }
        assert!(with(b"", None).is_none() && with(&view[..view.len() - 1], None).is_none());
    }
}
