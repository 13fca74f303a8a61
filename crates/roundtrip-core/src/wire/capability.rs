//! Identity and capabilities of client and server (server/discover; lifecycle, "Capability Negotiation").

use std::borrow::Cow;
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
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its home page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Its icons.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
}

impl Implementation {
    /// Creates one with the required fields.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

/// An icon for a user interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// Its address: an HTTP or `data:` URI.
    pub src: String,
    /// Media type that overrides the one the source reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes it fits, as `48x48` or `any`.
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
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

/// Capabilities of a client, declared in every request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientCapabilities {
    /// Capabilities outside the specification.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, JsonObject>,
    /// Support for listing roots. Deprecated (SEP-2577).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// Support for sampling. Deprecated (SEP-2577).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// Support for elicitation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Extensions it supports, with their settings.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, JsonObject>,
}

impl ClientCapabilities {
    /// Returns whether everything in `required` is declared here.
    pub fn covers(&self, required: &Self) -> bool {
        self.missing(required).is_empty()
    }

    /// Returns what is in `required` and not declared here, by name: `elicitation.form`, `sampling.tools`, `roots`.
    pub fn missing(&self, required: &Self) -> Vec<Cow<'static, str>> {
        let mut missing = Vec::new();
        let mut need = |wanted: bool, declared: bool, name: &'static str| {
            if wanted && !declared {
                missing.push(Cow::Borrowed(name));
            }
        };
        need(required.roots.is_some(), self.roots.is_some(), "roots");
        if let Some(SamplingCapability { context, tools }) = &required.sampling {
            let own = self.sampling.as_ref();
            need(context.is_none() && tools.is_none(), own.is_some(), "sampling");
            need(context.is_some(), own.is_some_and(|own| own.context.is_some()), "sampling.context");
            need(tools.is_some(), own.is_some_and(|own| own.tools.is_some()), "sampling.tools");
        }
        if let Some(ElicitationCapability { form, url }) = &required.elicitation {
            let own = self.elicitation.as_ref();
            need(form.is_none() && url.is_none(), own.is_some(), "elicitation");
            need(form.is_some(), own.is_some_and(ElicitationCapability::allows_form), "elicitation.form");
            need(url.is_some(), own.is_some_and(ElicitationCapability::allows_url), "elicitation.url");
        }
        let extensions = required.extensions.keys().filter(|name| !self.extensions.contains_key(*name));
        missing.extend(extensions.map(|name| Cow::Owned(format!("extensions.{name}"))));
        let experimental = required.experimental.keys().filter(|name| !self.experimental.contains_key(*name));
        missing.extend(experimental.map(|name| Cow::Owned(format!("experimental.{name}"))));
        missing
    }
}

/// Capability of listing roots.
///
/// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootsCapability {}

/// Capability of sampling from a language model.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingCapability {
    /// Support for including context of servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// Support for tools of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
}

/// Capability of asking the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitationCapability {
    /// Support for `form` mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// Support for `url` mode, a visit to a web page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
}

impl ElicitationCapability {
    /// Returns whether forms may be asked. Declaring no mode at all means forms.
    pub fn allows_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Returns whether the user may be sent to a web page.
    pub fn allows_url(&self) -> bool {
        self.url.is_some()
    }
}

/// Capabilities of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCapabilities {
    /// Capabilities outside the specification.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, JsonObject>,
    /// Support for log messages, sent to requests that opt in. Deprecated (SEP-2577).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// Support for completion of arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// Support for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// Support for resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// Support for tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// Extensions it supports, with their settings.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, JsonObject>,
}

/// Capability of offering prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptsCapability {
    /// Support for notifications of changes to the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Capability of offering resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// Support for notifications of changes to a single resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// Support for notifications of changes to the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Capability of offering tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsCapability {
    /// Support for notifications of changes to the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}
