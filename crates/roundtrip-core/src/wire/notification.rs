//! Notifications: what ties a name and its parameters together.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    CancelledNotificationParams, LoggingMessageNotificationParams, NotificationParams,
    ProgressNotificationParams, ResourceUpdatedNotificationParams,
    SubscriptionsAcknowledgedNotificationParams,
};

/// An event of the protocol. Its parameters are decoded with [`decode_params`](super::decode_params).
pub trait NotificationMethod: Send + Sync + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it tells.
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
    /// A request is no longer wanted.
    CancelledNotification = "notifications/cancelled": CancelledNotificationParams;
    /// How far a request is.
    ProgressNotification = "notifications/progress": ProgressNotificationParams;
    /// A log message.
    LoggingMessageNotification = "notifications/message": LoggingMessageNotificationParams;
    /// A resource changed.
    ResourceUpdatedNotification = "notifications/resources/updated": ResourceUpdatedNotificationParams;
    /// The list of resources changed.
    ResourceListChangedNotification = "notifications/resources/list_changed": NotificationParams;
    /// The list of tools changed.
    ToolListChangedNotification = "notifications/tools/list_changed": NotificationParams;
    /// The list of prompts changed.
    PromptListChangedNotification = "notifications/prompts/list_changed": NotificationParams;
    /// A stream of change notifications is open.
    SubscriptionsAcknowledgedNotification = "notifications/subscriptions/acknowledged":
        SubscriptionsAcknowledgedNotificationParams;
}
