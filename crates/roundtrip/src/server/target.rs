//! Targets: the offers that requests are for, as far as their callers see them.

use std::borrow::Cow;
use std::sync::Arc;

use roundtrip_core::wire::{
    self, ClientRequest, CompleteRequestParams, CompletionReference, ErrorObject, clip,
};

use super::hook::{Hook, Scope, Viewer};
use super::offer::catalog::Tables;
use super::offer::entry::{Definition, Entry};
use super::peer::Peer;
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
    /// Finds the offer that a request is for. One that the caller does not see is an unknown one.
    pub(super) fn target(&self, request: &ClientRequest<'_>, peer: &Peer) -> Result<Target, ErrorObject> {
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

    /// Finds the resource at a URI, or else the first template that matches it.
    fn resource(&self, uri: &str, viewer: &Viewer<'_>) -> Result<Option<Target>, ErrorObject> {
        let found = self.catalog.read().resources.get(uri).map(Arc::clone);
        if let Some(resource) = seen(found, viewer)? {
            return Ok(Some(Target::Resource(resource)));
        }
        let mut from = 0;
        loop {
            let fitting = fitting(&self.catalog.read(), uri, from);
            let Some((at, template, variables)) = fitting else { return Ok(None) };
            if template.scope.shows(viewer)? {
                return Ok(Some(Target::Template(template, variables)));
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
            return Err(ErrorObject::method_not_found("completion/complete"));
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

type Fitting = (usize, Arc<Entry<wire::ResourceTemplate>>, Variables);

/// Finds the first template from a place on that matches a URI.
fn fitting(tables: &Tables, uri: &str, from: usize) -> Option<Fitting> {
    tables.templates.iter().enumerate().skip(from).find_map(|(at, entry)| {
        let variables = entry.own.template.matches(uri)?.into_iter();
        let owned = variables.map(|(name, value)| (name.to_owned().into(), value.into()));
        Some((at, Arc::clone(entry), owned.collect()))
    })
}
