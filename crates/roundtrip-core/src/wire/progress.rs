//! Progress of a request, sent to requests that opt in.

use serde::{Deserialize, Serialize};

use super::serde::number;
use super::{NotificationMeta, ProgressToken};

/// Parameters of `notifications/progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressNotificationParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// The progress token of the request.
    pub progress_token: ProgressToken,
    /// The progress so far; grows with every notification.
    #[serde(serialize_with = "number::plain")]
    pub progress: f64,
    /// The progress at the end, where known.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub total: Option<f64>,
    /// A message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
