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

/// What to ask the user, and how, told apart by `mode`; no mode means a form.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitRequestParams {
    /// By a form.
    Form(ElicitRequestFormParams),
    /// By a visit to a web page.
    Url(ElicitRequestUrlParams),
}

impl ElicitRequestParams {
    /// What the user is told.
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

/// A form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitRequestFormParams {
    /// Says so; may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FormMode>,
    /// What the user is told.
    pub message: String,
    /// The form's fields.
    pub requested_schema: RequestedSchema,
}

impl ElicitRequestFormParams {
    /// A form that says that it is one.
    pub fn new(message: impl Into<String>, requested_schema: impl Into<RequestedSchema>) -> Self {
        Self { mode: Some(FormMode), message: message.into(), requested_schema: requested_schema.into() }
    }
}

/// A visit to a web page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitRequestUrlParams {
    /// Says so.
    #[serde(default)]
    pub mode: UrlMode,
    /// What the user is told.
    pub message: String,
    /// Where to go.
    pub url: String,
}

impl ElicitRequestUrlParams {
    /// A visit to a web page.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { mode: UrlMode, message: message.into(), url: url.into() }
    }
}

/// What the user did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitResult {
    /// Agreed, refused, or neither.
    pub action: ElicitAction,
    /// The filled-in form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
}

/// Agreed, refused, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Agreed.
    Accept,
    /// Said no.
    Decline,
    /// Went away without saying.
    Cancel,
}
