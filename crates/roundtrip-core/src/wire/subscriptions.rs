//! `subscriptions/listen`: a stream of change notifications.

use serde::{Deserialize, Serialize};

use super::serde::null;
use super::{NotificationMeta, RequestMeta, ResultComplete, ResultMeta};

/// Which changes to tell of. What is not named here is not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    /// The list of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// The list of prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// The list of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// The resources with these URIs.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
}

/// Which changes to listen for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsListenRequestParams<'a> {
    /// The protocol's fields.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// The changes.
    pub notifications: SubscriptionFilter,
}

/// The end of a stream, in good order. Its `_meta` names the stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsListenResult {
    /// Says that this is the answer.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The protocol's fields.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Which of the changes asked for will be sent; the first message of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsAcknowledgedNotificationParams {
    /// The protocol's fields.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// The changes.
    pub notifications: SubscriptionFilter,
}
