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

/// Appends a part to a result: text is joined with the text before it, if neither has annotations or `_meta`.
pub fn join_part(content: &mut Vec<ContentBlock>, part: ContentBlock) {
    match (content.last_mut(), part) {
        (Some(ContentBlock::Text(last)), ContentBlock::Text(text)) if last.is_plain() && text.is_plain() => {
            last.text.push_str(&text.text);
        }
        (_, part) => content.push(part),
    }
}
