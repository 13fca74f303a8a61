//! Parts of a streamed result: the extension `dev.roundtrip/stream`.

use serde::{Deserialize, Serialize};

use super::{ContentBlock, NotificationMeta, RequestId};

/// Name of the extension, by which a request declares that it takes parts.
pub const STREAM_EXTENSION: &str = "dev.roundtrip/stream";

/// Parameters of `notifications/dev.roundtrip/part`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartNotificationParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// The id of the request.
    pub request_id: RequestId,
    /// The number of the part, from 0 on, over all rounds of a call.
    pub part: u32,
    /// The part.
    pub content: ContentBlock,
}

/// Wish for the parts of a task's result, from a number on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartsFrom {
    /// The number of the first part.
    #[serde(default)]
    pub from: u32,
}

/// Appends a `notifications/dev.roundtrip/part` to `out`.
///
/// # Errors
/// Fails if the content does not serialise; `out` may then end with a part of the message.
pub fn append_part(
    out: &mut Vec<u8>,
    request_id: &RequestId,
    part: u32,
    content: &impl Serialize,
) -> Result<(), serde_json::Error> {
    // By hand, because serde would look for escapes in every fixed byte of every part.
    out.extend_from_slice(
        br#"{"jsonrpc":"2.0","method":"notifications/dev.roundtrip/part","params":{"requestId":"#,
    );
    serde_json::to_writer(&mut *out, request_id)?;
    out.extend_from_slice(br#","part":"#);
    serde_json::to_writer(&mut *out, &part)?;
    out.extend_from_slice(br#","content":"#);
    serde_json::to_writer(&mut *out, content)?;
    out.extend_from_slice(b"}}");
    Ok(())
}

/// Appends a part to a result: text is joined with the text before it, if neither has annotations or `_meta`.
pub fn join_part(content: &mut Vec<ContentBlock>, part: ContentBlock) {
    match (content.last_mut(), part) {
        (Some(ContentBlock::Text(last)), ContentBlock::Text(text)) if last.is_plain() && text.is_plain() => {
            last.text.push_str(&text.text);
        }
        (_, part) => content.push(part),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NotificationMethod as _, PartNotification, TextContent, encode_notification};
    use super::*;

    #[test]
    fn a_part_by_hand_is_what_serde_writes() {
        for id in [RequestId::from(7), RequestId::from("a \"quoted\" id")] {
            let content = ContentBlock::Text(TextContent::new("two\nlines"));
            let mut by_hand = Vec::new();
            append_part(&mut by_hand, &id, 12, &content).unwrap();
            let meta = NotificationMeta::default();
            let params = PartNotificationParams { meta, request_id: id, part: 12, content };
            assert_eq!(by_hand, encode_notification(PartNotification::NAME, &params).unwrap());
        }
    }
}
