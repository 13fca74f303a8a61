//! [`WrittenTask`]: the result of `tasks/get` for a task that was stored as text.

use std::fmt::Write as _;

use serde::Serialize;
use serde::ser::{Error as _, Serializer};
use serde_json::value::RawValue;

use super::{RequestId, ResultMeta, Task, TaskStatus, encode_result, json};

/// Result of `tasks/get`, made of the text that a task was stored as. Most polls return a task as it was written: decoding it and
/// writing it anew would be most of their work.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenTask {
    /// The result as a JSON object with members, without its `_meta`.
    text: String,
    /// The `_meta` object.
    pub meta: ResultMeta,
}

impl WrittenTask {
    /// Adds to the stored text of a task its result, and the time to wait for the next poll if it has not ended.
    ///
    /// Returns `None` if the text is not exactly what [`Task`] writes for a task without questions, a result and an
    /// error, and without escapes in its texts. Such a text has to be decoded.
    pub fn new(
        task: &[u8],
        poll_interval_ms: impl FnOnce() -> u64,
        result: Option<&RawValue>,
    ) -> Option<Self> {
        let status = simple_task(task)?;
        let members = std::str::from_utf8(task).ok()?.strip_prefix('{')?.strip_suffix('}')?;
        let result = result.map(RawValue::get);
        let mut text = String::with_capacity(members.len() + result.map_or(0, str::len) + 80);
        text.push_str(r#"{"resultType":"complete","#);
        text.push_str(members);
        if !status.is_terminal() {
            write!(text, r#","pollIntervalMs":{}"#, poll_interval_ms()).ok()?;
        }
        if let Some(result) = result {
            text.push_str(r#","result":"#);
            text.push_str(result);
        }
        text.push('}');
        Some(Self { text, meta: ResultMeta::default() })
    }

    /// Decodes the task.
    ///
    /// # Errors
    /// Fails if the task's result is nested too deeply to be read.
    pub fn to_task(&self) -> Result<Task, serde_json::Error> {
        json::from_str(&self.text)
    }

    /// Appends the response to a request to `out`, without the `_meta`.
    pub(super) fn encode(&self, out: &mut Vec<u8>, id: &RequestId) -> Result<(), serde_json::Error> {
        encode_result(out, id, &())?;
        // The end of a response that has no result.
        out.truncate(out.len() - "null}".len());
        out.extend_from_slice(self.text.as_bytes());
        out.push(b'}');
        Ok(())
    }
}

impl Serialize for WrittenTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = self.text.clone();
        if !self.meta.is_empty() {
            text.pop();
            let meta = serde_json::to_string(&self.meta).map_err(S::Error::custom)?;
            text = format!(r#"{text},"_meta":{meta}}}"#);
        }
        let object: &RawValue = json::from_str(&text).map_err(S::Error::custom)?;
        object.serialize(serializer)
    }
}

/// Returns the status of a task whose text is as [`WrittenTask::new`] needs it.
fn simple_task(text: &[u8]) -> Option<TaskStatus> {
    let (_, rest) = plain_text(text.strip_prefix(br#"{"taskId":""#)?)?;
    let (status, mut rest) = plain_text(rest.strip_prefix(br#","status":""#)?)?;
    let status = match status {
        b"working" => TaskStatus::Working,
        b"completed" => TaskStatus::Completed,
        b"failed" => TaskStatus::Failed,
        b"cancelled" => TaskStatus::Cancelled,
        // With its questions, or with none to show.
        _ => return None,
    };
    if let Some(message) = rest.strip_prefix(br#","statusMessage":""#) {
        (_, rest) = plain_text(message)?;
    }
    (_, rest) = plain_text(rest.strip_prefix(br#","createdAt":""#)?)?;
    (_, rest) = plain_text(rest.strip_prefix(br#","lastUpdatedAt":""#)?)?;
    let ttl = rest.strip_prefix(br#","ttlMs":"#)?.strip_suffix(b"}")?;
    let is_number = match ttl {
        b"0" | b"null" => true,
        [b'1'..=b'9', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_number.then_some(status)
}

/// Splits the rest of a JSON string without escapes from what follows its closing quote.
fn plain_text(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..=0x1f))?;
    let (string, rest) = text.split_at(end);
    Some((string, rest.strip_prefix(b"\"")?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json as value;

    use super::*;
    use crate::wire::{ErrorObject, GetTaskResult, Implementation, Raw, ServerResult, Signature};

    const STATUSES: [TaskStatus; 5] = [
        TaskStatus::Working,
        TaskStatus::InputRequired,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ];

    fn task(status: TaskStatus, message: Option<&str>, ttl_ms: Option<u64>) -> Task {
        Task {
            task_id: "0123456789abcdef0123456789abcdef".to_owned(),
            status,
            status_message: message.map(str::to_owned),
            created_at: "2026-07-28T10:30:00.123Z".to_owned(),
            last_updated_at: "2026-07-28T10:40:00.456Z".to_owned(),
            ttl_ms,
            poll_interval_ms: None,
            input_requests: Default::default(),
            result: None,
            error: None,
        }
    }

    fn encoded(result: ServerResult) -> String {
        let signature = Signature::new(Arc::new(Implementation::new("server", "1.0.0")));
        let mut out = b"before".to_vec();
        result.encode(&mut out, &7.into(), &signature).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// T2: a task that is copied is the same, byte for byte, as one that is decoded and written anew.
    #[test]
    fn a_copied_task_is_what_a_decoded_one_is() {
        let mut copied = 0;
        let messages = [None, Some(""), Some("half done"), Some("fünf Wörter"), Some("a \"b\"\n")];
        for (status, message) in STATUSES.into_iter().flat_map(|status| messages.map(|own| (status, own))) {
            for ttl in [None, Some(0), Some(60_000), Some(u64::MAX)] {
                for result in [None, Some(value!({ "content": [{ "type": "text", "text": "}\"" }] }))] {
                    let result = result.map(Raw::from);
                    let stored = task(status, message, ttl);
                    let text = serde_json::to_vec(&stored).unwrap();
                    let own = result.as_ref().map(AsRef::as_ref);
                    let Some(written) = WrittenTask::new(&text, || 250, own) else {
                        let is_simple = status != TaskStatus::InputRequired
                            && !message.is_some_and(|text| text.contains('"'));
                        assert!(!is_simple, "{stored:?}");
                        continue;
                    };
                    copied += 1;
                    let poll_interval_ms = (!status.is_terminal()).then_some(250);
                    let decoded = Task { poll_interval_ms, result, ..stored };
                    assert_eq!(written.to_task().unwrap(), decoded);
                    let decoded = Box::new(GetTaskResult::from(decoded));
                    let mut pair = [ServerResult::from(Box::new(written)), ServerResult::from(decoded)];
                    let [one, other] = pair.clone().map(encoded);
                    assert_eq!(one, other);
                    for meta in pair.iter_mut().filter_map(ServerResult::meta_mut) {
                        meta.extra.insert("a".to_owned(), 1.into());
                    }
                    let [one, other] = pair.map(encoded);
                    assert_eq!(one, other);
                }
            }
        }
        assert_eq!(copied, 4 * 4 * 4 * 2);
    }

    /// T2: a text that is not just what is written for a simple task is decoded.
    #[test]
    fn another_text_is_not_copied() {
        let simple = task(TaskStatus::Completed, None, Some(1));
        let error = Some(ErrorObject::internal("no"));
        let more = [
            Task { result: Some(Raw::from(value!({}))), ..simple.clone() },
            Task { error, ..simple.clone() },
            Task { poll_interval_ms: Some(1), ..simple.clone() },
        ];
        for task in more {
            assert!(WrittenTask::new(&serde_json::to_vec(&task).unwrap(), || 1, None).is_none(), "{task:?}");
        }
        let text = serde_json::to_string(&simple).unwrap();
        assert!(WrittenTask::new(text.as_bytes(), || 1, None).is_some());
        for (from, to) in [
            ("\"ttlMs\":1", "\"ttlMs\":01"),
            ("\"ttlMs\":1", "\"ttlMs\":-1"),
            ("\"ttlMs\":1", "\"ttlMs\":"),
            ("\"ttlMs\":1", "\"ttlMs\":1,\"a\":1"),
            ("\"ttlMs\":1", "\"ttlMs\":1}\n{"),
            ("completed", "complete"),
            ("0123", "01\\u0032"),
            ("0123", "01\n"),
            ("{\"taskId", "{ \"taskId"),
            ("\"status\":", "\"Status\":"),
        ] {
            let other = text.replace(from, to);
            assert_ne!(other, text);
            assert!(WrittenTask::new(other.as_bytes(), || 1, None).is_none(), "{other}");
        }
        for end in 0..text.len() {
            assert!(WrittenTask::new(&text.as_bytes()[..end], || 1, None).is_none(), "{end}");
        }
        let mut invalid = text.into_bytes();
        invalid[12] = 0xff;
        assert!(WrittenTask::new(&invalid, || 1, None).is_none());
    }
}
