//! Cancellation of a request that is under way.

use serde::{Deserialize, Serialize};

use super::{
    CancelledNotification, NotificationMeta, NotificationMethod as _, RequestId, encode_notification,
};

/// Parameters of `notifications/cancelled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledNotificationParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// The id of the request.
    pub request_id: RequestId,
    /// The reason, for logs and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Encodes a `notifications/cancelled` message.
///
/// # Errors
/// Never in practice: ids and text always serialise.
pub fn encode_cancelled(request_id: &RequestId, reason: Option<&str>) -> Result<Vec<u8>, serde_json::Error> {
    let params = CancelledNotificationParams {
        meta: NotificationMeta::default(),
        request_id: request_id.clone(),
        reason: reason.map(str::to_owned),
    };
    encode_notification(CancelledNotification::NAME, &params)
}
