//! Cancellation of a request that is under way.

use serde::{Deserialize, Serialize};

use super::{
    CancelledNotification, NotificationMeta, NotificationMethod as _, RequestId, encode_notification,
};

/// Which request is no longer wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledNotificationParams {
    /// The protocol's fields.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// Its id.
    pub request_id: RequestId,
    /// Why, for logs and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Writes the notification by which a request is taken back.
///
/// # Errors
/// When it does not serialise, which ids and text always do.
pub fn encode_cancelled(request_id: &RequestId, reason: Option<&str>) -> Result<Vec<u8>, serde_json::Error> {
    let params = CancelledNotificationParams {
        meta: NotificationMeta::default(),
        request_id: request_id.clone(),
        reason: reason.map(str::to_owned),
    };
    encode_notification(CancelledNotification::NAME, &params)
}
