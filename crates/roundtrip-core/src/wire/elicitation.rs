//! Elicitation: a server asks the user (client, "Elicitation").

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::serde::literal::literals;
use super::serde::tagged::{self, Tagged};
use super::{JsonObject, RequestedSchema};

literals! {
    /// The `mode` of a form.
    FormMode = "form";
    /// The `mode` of a visit to a web page.
    UrlMode = "url";
}

/// Parameters of `elicitation/create`, told apart by `mode`; no mode means a form.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitRequestParams {
    /// A form.
    Form(ElicitRequestFormParams),
    /// A visit to a web page.
    Url(ElicitRequestUrlParams),
}

impl ElicitRequestParams {
    /// Returns the message to the user.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(params) => &params.message,
            Self::Url(params) => &params.message,
        }
    }
}

impl Serialize for ElicitRequestParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Form(params) => params.serialize(serializer),
            Self::Url(params) => params.serialize(serializer),
        }
    }
}

impl Tagged for ElicitRequestParams {
    const TAG: &'static str = "mode";
    const EXPECTING: &'static str = "the parameters of `elicitation/create`";

    fn read<'de, D: Deserializer<'de>>(tag: Option<&str>, rest: D) -> Result<Self, D::Error> {
        match tag {
            None => ElicitRequestFormParams::deserialize(rest).map(Self::Form),
            Some("form") => {
                let params = ElicitRequestFormParams::deserialize(rest)?;
                Ok(Self::Form(ElicitRequestFormParams { mode: Some(FormMode), ..params }))
            }
            Some("url") => ElicitRequestUrlParams::deserialize(rest).map(Self::Url),
            Some(other) => Err(de::Error::unknown_variant(other, &["form", "url"])),
        }
    }
}

impl<'de> Deserialize<'de> for ElicitRequestParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// Parameters of an elicitation in `form` mode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitRequestFormParams {
    /// The mode; may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FormMode>,
    /// The message to the user.
    pub message: String,
    /// The schema of the form.
    pub requested_schema: RequestedSchema,
}

impl ElicitRequestFormParams {
    /// Creates a form with its `mode`.
    pub fn new(message: impl Into<String>, requested_schema: impl Into<RequestedSchema>) -> Self {
        Self { mode: Some(FormMode), message: message.into(), requested_schema: requested_schema.into() }
    }
}

/// Parameters of an elicitation in `url` mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitRequestUrlParams {
    /// The mode.
    #[serde(default)]
    pub mode: UrlMode,
    /// The message to the user.
    pub message: String,
    /// The address of the web page.
    pub url: String,
}

impl ElicitRequestUrlParams {
    /// Creates a visit to a web page.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { mode: UrlMode, message: message.into(), url: url.into() }
    }
}

/// Result of `elicitation/create`: the user's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitResult {
    /// The user's action.
    pub action: ElicitAction,
    /// The content of an accepted form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
}

/// The user's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// The user accepted.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the question without an answer.
    Cancel,
}
