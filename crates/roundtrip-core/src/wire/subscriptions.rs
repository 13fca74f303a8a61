//! `subscriptions/listen`: a stream of change notifications.

use serde::{Deserialize, Serialize};

use super::serde::null;
use super::{NotificationMeta, RequestMeta, ResultComplete, ResultMeta};

/// Changes that a client subscribes to. Changes not named here are not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    /// Changes to the list of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Changes to the list of prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Changes to the list of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// Changes to the resources with these URIs.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// Changes to the tasks with these ids: `notifications/tasks` of the tasks extension.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
}

/// Parameters of `subscriptions/listen`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsListenRequestParams<'a> {
    /// The `_meta` object.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// The changes.
    pub notifications: SubscriptionFilter,
}

/// Result of `subscriptions/listen`: the regular end of a stream. Its `_meta` names the stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsListenResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Parameters of the first message of a stream: the changes that will be sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsAcknowledgedNotificationParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// The changes.
    pub notifications: SubscriptionFilter,
}
