//! Targets: the offers that requests are for, as far as their callers see them.

use std::borrow::Cow;
use std::sync::Arc;

use roundtrip_core::wire::{
    self, ClientRequest, Complete, CompleteRequestParams, CompletionReference, ErrorObject, Method as _, clip,
};

use super::hook::{Hook, Scope, Viewer};
use super::offer::catalog::Tables;
use super::offer::entry::{Definition, Entry};
use super::peer::Peer;
use super::rate::{Place, RateLimit};
use super::started::Started;

/// Variables of a template, decoded from the URI that is read.
pub(super) type Variables = Vec<(Cow<'static, str>, Cow<'static, str>)>;

/// The offer that a request is for.
pub(super) enum Target {
    /// The request is for none: a list, discovery, a subscription.
    None,
    Tool(Arc<Entry<wire::Tool>>),
    Prompt(Arc<Entry<wire::Prompt>>),
    Resource(Arc<Entry<wire::Resource>>),
    Template(Arc<Entry<wire::ResourceTemplate>>, Variables),
}

impl Target {
    /// Returns the hooks of its groups and its own, the outermost first.
    pub(super) fn hooks(&self) -> &[Hook] {
        self.scope().map_or(&[], |scope| &scope.hooks)
    }

    /// Returns the rate limits of its groups and its own.
    pub(super) fn limits(&self) -> &[RateLimit] {
        self.scope().map_or(&[], |scope| &scope.limits)
    }

    /// Returns the place that its rate limits are given to.
    pub(super) fn place(&self) -> Place<'_> {
        match self {
            Self::None => Place::SERVER,
            Self::Tool(entry) => place(entry),
            Self::Prompt(entry) => place(entry),
            Self::Resource(entry) => place(entry),
            Self::Template(entry, _) => place(entry),
        }
    }

    fn shows(&self, viewer: &Viewer<'_>) -> Result<bool, ErrorObject> {
        self.scope().map_or(Ok(true), |scope| scope.shows(viewer))
    }

    fn scope(&self) -> Option<&Scope> {
        match self {
            Self::None => None,
            Self::Tool(entry) => Some(&entry.scope),
            Self::Prompt(entry) => Some(&entry.scope),
            Self::Resource(entry) => Some(&entry.scope),
            Self::Template(entry, _) => Some(&entry.scope),
        }
    }
}

// Rules are the author's code and may use the catalog: none runs while its tables are locked.
impl Started {
    /// Finds the offer that a request is for. One that the caller does not see is an unknown one; one that it lacks scopes
    /// for is refused.
    pub(super) fn target(&self, request: &ClientRequest<'_>, peer: &Peer) -> Result<Target, ErrorObject> {
        let target = self.seen_target(request, peer)?;
        target.scope().map_or(Ok(()), |scope| scope.permits(&peer.access))?;
        Ok(target)
    }

    fn seen_target(&self, request: &ClientRequest<'_>, peer: &Peer) -> Result<Target, ErrorObject> {
        let viewer = Viewer::new(request.meta(), peer);
        match request {
            ClientRequest::CallTool(params) => {
                let found = self.catalog.read().tools.get(&params.name).map(Arc::clone);
                let unknown = || format!("unknown tool: {}", clip(&params.name));
                seen(found, &viewer)?.map(Target::Tool).ok_or_else(|| ErrorObject::invalid_params(unknown()))
            }
            ClientRequest::GetPrompt(params) => {
                let unknown = || format!("unknown prompt: {}", clip(&params.name));
                self.prompt(&params.name, &viewer)?.ok_or_else(|| ErrorObject::invalid_params(unknown()))
            }
            ClientRequest::ReadResource(params) => {
                let unknown = || ErrorObject::resource_not_found(&params.uri);
                self.resource(&params.uri, &viewer)?.ok_or_else(unknown)
            }
            ClientRequest::Complete(params) => self.completed(params, &viewer),
            _ => Ok(Target::None),
        }
    }

    fn prompt(&self, name: &str, viewer: &Viewer<'_>) -> Result<Option<Target>, ErrorObject> {
        let found = self.catalog.read().prompts.get(name).map(Arc::clone);
        Ok(seen(found, viewer)?.map(Target::Prompt))
    }

    /// Finds the first at a URI that the caller sees: the resource, or else a template that matches it.
    fn resource(&self, uri: &str, viewer: &Viewer<'_>) -> Result<Option<Target>, ErrorObject> {
        let mut from = 0;
        loop {
            let next = candidate(&self.catalog.read(), uri, from);
            let Some((at, target)) = next else { return Ok(None) };
            if target.shows(viewer)? {
                return Ok(Some(target));
            }
            from = at + 1;
        }
    }

    /// Finds the prompt, template or resource that a completion refers to.
    fn completed(
        &self,
        params: &CompleteRequestParams<'_>,
        viewer: &Viewer<'_>,
    ) -> Result<Target, ErrorObject> {
        if !self.catalog.read().completions {
            return Err(ErrorObject::method_not_found(Complete::NAME));
        }
        let target = match &params.reference {
            CompletionReference::Prompt(prompt) => self.prompt(&prompt.name, viewer)?,
            CompletionReference::Resource(template) => {
                let found = self.catalog.read().templates.get(&template.uri).map(Arc::clone);
                match seen(found, viewer)? {
                    Some(template) => Some(Target::Template(template, Variables::new())),
                    None => {
                        let found = self.catalog.read().resources.get(&template.uri).map(Arc::clone);
                        seen(found, viewer)?.map(Target::Resource)
                    }
                }
            }
        };
        target.ok_or_else(|| ErrorObject::invalid_params("params.ref: no such prompt or resource template"))
    }
}

fn place<D: Definition>(entry: &Entry<D>) -> Place<'_> {
    Place { kind: D::KIND, name: entry.definition.key() }
}

/// Returns an entry if the caller sees it.
#[inline]
fn seen<D: Definition>(
    found: Option<Arc<Entry<D>>>,
    viewer: &Viewer<'_>,
) -> Result<Option<Arc<Entry<D>>>, ErrorObject> {
    match found {
        Some(entry) if !entry.scope.shows(viewer)? => Ok(None),
        found => Ok(found),
    }
}

/// Finds the next at a URI, counted from the resource (0) over the templates in their order (from 1 on).
fn candidate(tables: &Tables, uri: &str, from: usize) -> Option<(usize, Target)> {
    if from == 0
        && let Some(resource) = tables.resources.get(uri)
    {
        return Some((0, Target::Resource(Arc::clone(resource))));
    }
    let mut templates = tables.templates.iter().enumerate().skip(from.saturating_sub(1));
    templates.find_map(|(at, entry)| {
        let variables = entry.own.template.matches(uri)?.into_iter();
        let owned = variables.map(|(name, value)| (name.to_owned().into(), value.into()));
        Some((at + 1, Target::Template(Arc::clone(entry), owned.collect())))
    })
}
