//! Notifications: a name with its parameters.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    BareTask, CancelledNotificationParams, LoggingMessageNotificationParams, NotificationParams,
    PartNotificationParams, ProgressNotificationParams, ResourceUpdatedNotificationParams,
    SubscriptionsAcknowledgedNotificationParams, TaskNotificationParams,
};

/// A notification of the protocol. Its parameters are decoded with [`decode_params`](super::decode_params).
pub trait NotificationMethod: Send + Sync + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// Its parameters.
    type Params: DeserializeOwned + Serialize + Debug + Send + 'static;
}

macro_rules! notifications {
    ($($(#[$doc:meta])* $marker:ident = $name:literal: $params:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub enum $marker {}

            impl NotificationMethod for $marker {
                const NAME: &'static str = $name;
                type Params = $params;
            }
        )*
    };
}

notifications! {
    /// Cancels a request.
    CancelledNotification = "notifications/cancelled": CancelledNotificationParams;
    /// Reports progress of a request.
    ProgressNotification = "notifications/progress": ProgressNotificationParams;
    /// Carries a part of a result.
    PartNotification = "notifications/dev.roundtrip/part": PartNotificationParams;
    /// Carries a log message. Deprecated (SEP-2577).
    LoggingMessageNotification = "notifications/message": LoggingMessageNotificationParams;
    /// Notifies that a resource changed.
    ResourceUpdatedNotification = "notifications/resources/updated": ResourceUpdatedNotificationParams;
    /// Notifies that the list of resources changed.
    ResourceListChangedNotification = "notifications/resources/list_changed": NotificationParams;
    /// Notifies that the list of tools changed.
    ToolListChangedNotification = "notifications/tools/list_changed": NotificationParams;
    /// Notifies that the list of prompts changed.
    PromptListChangedNotification = "notifications/prompts/list_changed": NotificationParams;
    /// Notifies that a task changed.
    TaskNotification = "notifications/tasks": TaskNotificationParams;
    /// Notifies that a task changed (2025-11-25).
    TaskStatusNotification = "notifications/tasks/status": BareTask;
    /// Opens a stream of change notifications.
    SubscriptionsAcknowledgedNotification = "notifications/subscriptions/acknowledged":
        SubscriptionsAcknowledgedNotificationParams;
}
