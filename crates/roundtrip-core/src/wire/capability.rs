//! Who the two sides are and what they can do (server/discover; lifecycle, "Capability Negotiation").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::serde::null;

/// Any JSON object.
pub type JsonObject = Map<String, Value>;

/// A piece of software: a client or a server. Self-reported, so for display only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// The name programs use.
    pub name: String,
    /// The name people see; `name` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version, in its own scheme.
    pub version: String,
    /// What it does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its home page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Its pictures.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
}

impl Implementation {
    /// The two fields there must be.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

/// A picture for a user interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// Where it is: an HTTP or `data:` URI.
    pub src: String,
    /// Overrides the media type the source reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes it is good for, as `48x48` or `any`.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// The background it is drawn for; any where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

/// The background an icon is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IconTheme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

/// What a client can do for a server, declared on every request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientCapabilities {
    /// Abilities outside the specification.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, JsonObject>,
    /// It can list its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// It can ask a language model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// It can ask the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Extensions it supports, with their settings.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, JsonObject>,
}

impl ClientCapabilities {
    /// Whether everything in `required` is declared here.
    pub fn covers(&self, required: &Self) -> bool {
        let sampling = |wanted: &SamplingCapability| {
            self.sampling.as_ref().is_some_and(|declared| {
                (wanted.context.is_none() || declared.context.is_some())
                    && (wanted.tools.is_none() || declared.tools.is_some())
            })
        };
        let elicitation = |wanted: &ElicitationCapability| {
            self.elicitation.as_ref().is_some_and(|declared| {
                (wanted.form.is_none() || declared.allows_form())
                    && (wanted.url.is_none() || declared.allows_url())
            })
        };
        (required.roots.is_none() || self.roots.is_some())
            && required.sampling.as_ref().is_none_or(sampling)
            && required.elicitation.as_ref().is_none_or(elicitation)
            && required.extensions.keys().all(|name| self.extensions.contains_key(name))
            && required.experimental.keys().all(|name| self.experimental.contains_key(name))
    }
}

/// The client can list its roots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootsCapability {}

/// The client can ask a language model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingCapability {
    /// It can include context of servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// It can let the model use tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
}

/// The client can ask the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitationCapability {
    /// By a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// By sending the user to a web page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
}

impl ElicitationCapability {
    /// Whether forms may be asked. Naming no mode at all means forms.
    pub fn allows_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Whether the user may be sent to a web page.
    pub fn allows_url(&self) -> bool {
        self.url.is_some()
    }
}

/// What a server offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCapabilities {
    /// Abilities outside the specification.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, JsonObject>,
    /// It sends log messages to requests that opt in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// It suggests values for arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// It has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// It has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// It has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// Extensions it supports, with their settings.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, JsonObject>,
}

/// The server has prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptsCapability {
    /// It tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// The server has resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// It tells when a single resource changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// It tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// The server has tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsCapability {
    /// It tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}
