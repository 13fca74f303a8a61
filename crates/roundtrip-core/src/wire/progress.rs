//! Progress of a request, sent to requests that opt in.

use serde::{Deserialize, Serialize};

use super::serde::number;
use super::{NotificationMeta, ProgressToken};

/// How far a request is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressNotificationParams {
    /// The protocol's fields.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// The request's token.
    pub progress_token: ProgressToken,
    /// How far it is; grows with every notification.
    #[serde(serialize_with = "number::plain")]
    pub progress: f64,
    /// How far there is to go, where known.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub total: Option<f64>,
    /// What is going on, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
