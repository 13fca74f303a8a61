//! Tools: functions of a server (server, "Tools").

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::serde::{cow, null};
use super::{
    CacheScope, ContentBlock, Icon, MetaObject, Raw, RequestMeta, ResultComplete, ResultMeta, pagination,
};

/// A tool in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name programs use.
    pub name: String,
    /// The name people see; `name` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, passed on byte for byte.
    pub input_schema: Raw,
    /// The JSON Schema of its structured results, passed on byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Raw>,
    /// Hints about its behaviour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Its icons.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl Tool {
    /// Creates one with the required fields.
    pub fn new(name: impl Into<String>, input_schema: impl Into<Raw>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        }
    }
}

/// Hints about the behaviour of a tool. They are claims of the server: do not rely on them for security.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The name people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing; `false` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy data; `true` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more; `false` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond a closed world; `true` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// One page of a list of tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The tools.
    pub tools: Vec<Tool>,
    /// Cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Time it stays fresh, in milliseconds; 0 is stale at once.
    #[serde(default, deserialize_with = "pagination::ttl")]
    pub ttl_ms: u64,
    /// Caches that may keep it.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Parameters of `tools/call`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolRequestParams<'a> {
    /// The `_meta` object.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// The name of the tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its arguments, undecoded until the tool runs.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<&'a RawValue>,
    /// Answers to the questions of the round before, by key; decoding them needs the questions.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<&'a RawValue>,
    /// The state from the round before, returned unchanged.
    #[serde(borrow, default, deserialize_with = "cow::option", skip_serializing_if = "Option::is_none")]
    pub request_state: Option<Cow<'a, str>>,
    /// The wish for a task, undecoded: only SEP-2322 and 2025-11-25 have it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub task: Option<&'a RawValue>,
    /// The wish for the result in parts, undecoded: `dev.roundtrip/stream`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<&'a RawValue>,
}

/// Result of `tools/call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// Its content, for people and models.
    pub content: Vec<ContentBlock>,
    /// Its structured content, for programs: any JSON value, null included.
    #[serde(default, deserialize_with = "null::is_a_value", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Raw>,
    /// True if the tool failed; `false` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}
