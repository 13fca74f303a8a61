//! Entries: offers that have been checked, as the server keeps and calls them.

use roundtrip_core::seal::Digest;
use roundtrip_core::wire::{self, CallToolResult, GetPromptResult, HeaderParams, ReadResourceResult};
use serde::Serialize;

use super::completer::Completers;
use super::uri_template::UriTemplate;
use crate::schema::Check;
use crate::server::cache::Cache;
use crate::server::handler::function::BoxHandler;
use crate::server::handler::reply::HandlerResult;
use crate::server::hook::Scope;
use crate::server::notify::subscription::Change;
use crate::server::when::When;

/// An offer that has been checked and is ready to be called.
pub(crate) struct Entry<D: Definition> {
    pub(crate) definition: D,
    pub(crate) handler: BoxHandler<D::Result>,
    pub(crate) scope: Scope,
    pub(crate) own: D::Own,
}

/// Definition of an offer: the part of it that lists show to clients.
pub(crate) trait Definition: Serialize {
    /// Word for the offer in error texts.
    const KIND: &'static str;
    /// Member of the list result that holds these definitions.
    const MEMBER: &'static str;
    /// Change of the list, as subscribers are told of it.
    const CHANGE: Change<'static>;
    /// True if its handler is called for a URI.
    const HAS_URI: bool = false;
    /// True if it is a tool.
    const IS_TOOL: bool = false;
    /// Result of the offer's handler.
    type Result: HandlerResult;
    /// Parts of an entry that only this kind of offer has.
    type Own;

    /// Returns the key that the entry is looked up by.
    fn key(&self) -> &str;

    /// Returns whether arguments of a call are mirrored in headers.
    fn has_header_params(_: &Self::Own) -> bool {
        false
    }

    /// Returns the completers of an entry, if its kind has any.
    fn completers(_: &Self::Own) -> Option<&Completers> {
        None
    }
}

pub(crate) type ToolEntry = Entry<wire::Tool>;
pub(crate) type PromptEntry = Entry<wire::Prompt>;

impl Definition for wire::Tool {
    const KIND: &'static str = "tool";
    const IS_TOOL: bool = true;
    const MEMBER: &'static str = "tools";
    const CHANGE: Change<'static> = Change::Tools;
    type Result = CallToolResult;
    type Own = ToolParts;

    fn key(&self) -> &str {
        &self.name
    }

    fn has_header_params(own: &ToolParts) -> bool {
        !own.headers.is_empty()
    }
}

/// Parts that only a tool has.
pub(crate) struct ToolParts {
    pub(crate) input: Check,
    pub(crate) output: Option<Check>,
    pub(crate) headers: HeaderParams,
    /// Digest that its flows are bound to.
    pub(crate) target: Digest,
    /// Moment at which a call becomes a task, if it may.
    pub(crate) when: Option<When>,
    /// Kinds of tasks that it runs: its own first, then those of older versions.
    pub(crate) kinds: Vec<Digest>,
}

impl Definition for wire::Prompt {
    const KIND: &'static str = "prompt";
    const MEMBER: &'static str = "prompts";
    const CHANGE: Change<'static> = Change::Prompts;
    type Result = GetPromptResult;
    type Own = Completers;

    fn key(&self) -> &str {
        &self.name
    }

    fn completers(own: &Completers) -> Option<&Completers> {
        Some(own)
    }
}

impl Definition for wire::Resource {
    const KIND: &'static str = "resource";
    const MEMBER: &'static str = "resources";
    const CHANGE: Change<'static> = Change::Resources;
    const HAS_URI: bool = true;
    type Result = ReadResourceResult;
    type Own = Cache;

    fn key(&self) -> &str {
        &self.uri
    }
}

impl Definition for wire::ResourceTemplate {
    const KIND: &'static str = "resource template";
    const MEMBER: &'static str = "resourceTemplates";
    const CHANGE: Change<'static> = Change::Resources;
    const HAS_URI: bool = true;
    type Result = ReadResourceResult;
    type Own = TemplateParts;

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn completers(own: &TemplateParts) -> Option<&Completers> {
        Some(&own.completers)
    }
}

/// Parts that only a resource template has.
pub(crate) struct TemplateParts {
    pub(crate) template: UriTemplate,
    pub(crate) completers: Completers,
    pub(crate) cache: Cache,
}
