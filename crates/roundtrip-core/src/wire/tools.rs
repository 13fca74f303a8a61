//! Tools: what a server can do (server, "Tools").

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
    /// What it is, for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, passed on byte for byte.
    pub input_schema: Raw,
    /// The JSON Schema of its structured results, passed on byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Raw>,
    /// Hints about how it behaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Its pictures.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl Tool {
    /// The two fields there must be.
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

/// Hints about how a tool behaves. They are claims of the server: nothing may be trusted to them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The name people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing; assumed not to be so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// What it changes may be lost; assumed to be so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more; assumed not to be so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond a closed world; assumed to be so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// One page of the tools there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// Says that this is the answer.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The tools.
    pub tools: Vec<Tool>,
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

/// Which tool to run, and with what.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolRequestParams<'a> {
    /// The protocol's fields.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// Which tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its arguments, parsed once, by whoever runs it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<&'a RawValue>,
    /// Answers to what the round before asked, by key; the questions say how to decode them.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<&'a RawValue>,
    /// What the round before gave to be handed back.
    #[serde(borrow, default, deserialize_with = "cow::option", skip_serializing_if = "Option::is_none")]
    pub request_state: Option<Cow<'a, str>>,
}

/// What came of running a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// Says that this is the answer.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// What it says, for people and models.
    pub content: Vec<ContentBlock>,
    /// What it says, for programs: any JSON value, null included.
    #[serde(default, deserialize_with = "null::is_a_value", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Raw>,
    /// Whether it failed; assumed not to be so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The protocol's fields.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}
