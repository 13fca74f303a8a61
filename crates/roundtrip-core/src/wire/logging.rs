//! Log messages of a server, sent to requests that opt in.

use serde::{Deserialize, Serialize};

use super::{NotificationMeta, Raw};

/// Severity of a log message, least first (RFC 5424).
///
/// Log messages are deprecated since revision 2026-07-28 (SEP-2577): prefer `tracing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggingLevel {
    /// Details for debugging.
    Debug,
    /// Normal events.
    Info,
    /// Normal but notable events.
    Notice,
    /// Signs of a possible failure.
    Warning,
    /// A failure.
    Error,
    /// A part of the system is down.
    Critical,
    /// Action is needed now.
    Alert,
    /// The system is unusable.
    Emergency,
}

/// Parameters of `notifications/message`.
///
/// Log messages are deprecated since revision 2026-07-28 (SEP-2577): prefer `tracing`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggingMessageNotificationParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// Its severity.
    pub level: LoggingLevel,
    /// The part of the server that logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The message: any JSON value.
    pub data: Raw,
}
