//! Prompts: messages a server has ready, with gaps to fill (server, "Prompts").

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::serde::{cow, null};
use super::{
    CacheScope, ContentBlock, Icon, MetaObject, RequestMeta, ResultComplete, ResultMeta, Role, pagination,
};

/// A prompt in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The name programs use.
    pub name: String,
    /// The name people see; `name` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is, for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its gaps.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Its pictures.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl Prompt {
    /// The field there must be.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// A gap in a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptArgument {
    /// The name programs use.
    pub name: String,
    /// The name people see; `name` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is, for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it must be filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// One page of the prompts there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListPromptsResult {
    /// Says that this is the answer.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The prompts.
    pub prompts: Vec<Prompt>,
    /// Where the next page starts; this is the last where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// How long it stays fresh, in milliseconds; 0 is stale at once.
    #[serde(default, deserialize_with = "pagination::ttl")]
    pub ttl_ms: u64,
    /// Who may be given a kept copy.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// The protocol's fields.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Which prompt to fill in, and with what.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPromptRequestParams<'a> {
    /// The protocol's fields.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// Which prompt.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// What goes into the gaps.
    #[serde(borrow, default, deserialize_with = "cow::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Answers to what the round before asked, by key; the questions say how to decode them.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<&'a RawValue>,
    /// What the round before gave to be handed back.
    #[serde(borrow, default, deserialize_with = "cow::option", skip_serializing_if = "Option::is_none")]
    pub request_state: Option<Cow<'a, str>>,
}

/// A prompt with its gaps filled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPromptResult {
    /// Says that this is the answer.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// The protocol's fields.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: ContentBlock,
}
