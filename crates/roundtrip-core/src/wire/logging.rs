//! Log messages of a server, sent to requests that opt in.

use serde::{Deserialize, Serialize};

use super::{NotificationMeta, Raw};

/// How serious a message is, least first (RFC 5424).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggingLevel {
    /// Details for whoever looks for a fault.
    Debug,
    /// The course of things.
    Info,
    /// Normal, but worth a look.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part of the system is down.
    Critical,
    /// Someone must act now.
    Alert,
    /// The system is unusable.
    Emergency,
}

/// A log message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggingMessageNotificationParams {
    /// The protocol's fields.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// How serious it is.
    pub level: LoggingLevel,
    /// Which part of the server says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What it says: any JSON value.
    pub data: Raw,
}
