//! Completion: suggestions for an argument being typed (server, "Completion").

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use super::serde::{cow, null};
use super::{RequestMeta, ResultComplete, ResultMeta};

/// Parameters of `completion/complete`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteRequestParams<'a> {
    /// The `_meta` object.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// The prompt or resource template that has the argument.
    #[serde(borrow, rename = "ref")]
    pub reference: CompletionReference<'a>,
    /// The argument, as far as it is typed.
    #[serde(borrow)]
    pub argument: CompletionArgument<'a>,
    /// The other arguments.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext<'a>>,
}

/// Reference to a prompt or resource template that has the argument.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum CompletionReference<'a> {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference<'a>),
    /// A resource template.
    #[serde(rename = "ref/resource")]
    Resource(ResourceTemplateReference<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for CompletionReference<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Either<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow, default, deserialize_with = "cow::option")]
            name: Option<Cow<'a, str>>,
            #[serde(borrow, default, deserialize_with = "cow::option")]
            title: Option<Cow<'a, str>>,
            #[serde(borrow, default, deserialize_with = "cow::option")]
            uri: Option<Cow<'a, str>>,
        }
        let Either { kind, name, title, uri } = Either::deserialize(deserializer)?;
        match &*kind {
            "ref/prompt" => {
                let name = name.ok_or_else(|| D::Error::missing_field("name"))?;
                Ok(Self::Prompt(PromptReference { name, title }))
            }
            "ref/resource" => {
                let uri = uri.ok_or_else(|| D::Error::missing_field("uri"))?;
                Ok(Self::Resource(ResourceTemplateReference { uri }))
            }
            other => Err(D::Error::unknown_variant(other, &["ref/prompt", "ref/resource"])),
        }
    }
}

impl CompletionReference<'_> {
    /// Returns the name of the prompt, or the URI of the resource or template.
    pub fn target(&self) -> &str {
        match self {
            Self::Prompt(prompt) => &prompt.name,
            Self::Resource(template) => &template.uri,
        }
    }
}

/// A prompt, by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptReference<'a> {
    /// The name programs use.
    pub name: Cow<'a, str>,
    /// The name people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
}

/// A resource or resource template, by URI.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceTemplateReference<'a> {
    /// The URI or URI template.
    pub uri: Cow<'a, str>,
}

/// An argument, as far as it is typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompletionArgument<'a> {
    /// The name of the argument.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The text typed so far.
    #[serde(borrow)]
    pub value: Cow<'a, str>,
}

/// Other arguments of the same prompt or template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CompletionContext<'a> {
    /// Arguments that have a value already.
    #[serde(borrow, default, deserialize_with = "cow::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// Result of `completion/complete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The suggestions.
    pub completion: Completion,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Suggestions, best first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The suggestions, at most 100.
    pub values: Vec<String>,
    /// The number of all suggestions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// True if there are more than are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}
