//! Completion: suggestions for an argument being typed (server, "Completion").

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::serde::{cow, null};
use super::{RequestMeta, ResultComplete, ResultMeta};

/// What to suggest values for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteRequestParams<'a> {
    /// The protocol's fields.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// Whose argument it is.
    #[serde(borrow, rename = "ref")]
    pub reference: CompletionReference<'a>,
    /// The argument, as far as it is typed.
    #[serde(borrow)]
    pub argument: CompletionArgument<'a>,
    /// What else is known.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext<'a>>,
}

/// Whose argument it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum CompletionReference<'a> {
    /// A prompt's.
    #[serde(borrow, rename = "ref/prompt")]
    Prompt(PromptReference<'a>),
    /// A resource template's.
    #[serde(borrow, rename = "ref/resource")]
    Resource(ResourceTemplateReference<'a>),
}

/// A prompt, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptReference<'a> {
    /// The name programs use.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The name people see.
    #[serde(borrow, default, deserialize_with = "cow::option", skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
}

/// A resource or resource template, by URI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceTemplateReference<'a> {
    /// The URI, or the URI with gaps.
    #[serde(borrow)]
    pub uri: Cow<'a, str>,
}

/// An argument, as far as it is typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompletionArgument<'a> {
    /// Which argument.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// What is typed so far.
    #[serde(borrow)]
    pub value: Cow<'a, str>,
}

/// What else is known when an argument is typed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CompletionContext<'a> {
    /// Arguments that have their values already.
    #[serde(borrow, default, deserialize_with = "cow::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// Suggestions for an argument.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// Says that this is the answer.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The suggestions.
    pub completion: Completion,
    /// The protocol's fields.
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
    /// At most 100 of them.
    pub values: Vec<String>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}
