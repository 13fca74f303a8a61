//! Cancellation of a request that is under way.

use serde::{Deserialize, Serialize};

use super::{NotificationMeta, RequestId};

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
