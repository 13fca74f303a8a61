//! Resources and resource templates as an author describes them.

use std::fmt;

use roundtrip_core::wire::{self, Annotations, CompleteResult, Icon, ReadResourceResult};

use super::catalog::{Described, Tables};
use super::completer::Completers;
use super::entry::{Entry, TemplateParts};
use super::list::Listing;
use super::scoped::scoped;
use super::setup::SetupError;
use super::uri::check_uri;
use super::uri_template::UriTemplate;
use crate::server::cache::Cache;
use crate::server::handler::function::{BoxHandler, Function, Parameters, erase, needs_of};
use crate::server::handler::needs::Needs;
use crate::server::handler::reply::IntoReply;
use crate::server::hook::Scope;

/// A resource: a URI, and the function that reads it.
///
/// ```
/// # use roundtrip::Resource;
/// let motto = Resource::new("app://motto", "motto", async || "one handler, every way of running it")
///     .mime_type("text/plain");
/// ```
#[must_use = "a resource does nothing until it is given to a server"]
pub struct Resource {
    definition: wire::Resource,
    handler: BoxHandler<ReadResourceResult>,
    cache: Cache,
    needs: Needs,
    scope: Scope,
}

/// A family of resources: a URI template (`{name}`, or `{+name}` to span slashes), and the function that reads
/// any of them. The handler takes the variables as [`Args`](crate::Args).
///
/// Variables are percent-decoded, and a URI whose variables could leave their place (`..`, an encoded slash, a
/// NUL) does not match.
#[must_use = "a template does nothing until it is given to a server"]
pub struct ResourceTemplate {
    definition: wire::ResourceTemplate,
    handler: BoxHandler<ReadResourceResult>,
    cache: Cache,
    completers: Completers,
    needs: Needs,
    scope: Scope,
}

macro_rules! described {
    ($kind:ident) => {
        impl $kind {
            /// Sets the description: what it holds.
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.definition.description = Some(description.into());
                self
            }

            /// Sets the name shown to people.
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// Sets the media type of its contents.
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.definition.mime_type = Some(mime_type.into());
                self
            }

            /// Sets the annotations: who it is for, and how important it is.
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// Adds an icon for user interfaces.
            pub fn icon(mut self, icon: Icon) -> Self {
                self.definition.icons.push(icon);
                self
            }

            /// Sets how long clients may keep its contents.
            pub fn cache(mut self, cache: Cache) -> Self {
                self.cache = cache;
                self
            }
        }
    };
}

described!(Resource);
described!(ResourceTemplate);
scoped!(Resource, "this resource", "every read of this resource");
scoped!(
    ResourceTemplate,
    "resources of this family",
    "every read of resources of this family, and around completions of its variables"
);

impl Resource {
    /// Creates a resource that `handler` reads.
    pub fn new<P: Parameters, F: Function<P> + Send + Sync>(
        uri: impl Into<String>,
        name: impl Into<String>,
        handler: F,
    ) -> Self
    where
        F::Output: IntoReply<ReadResourceResult>,
        F::Future: Send,
    {
        Self {
            definition: wire::Resource::new(uri, name),
            handler: erase(handler),
            cache: Cache::default(),
            needs: needs_of::<P>(),
            scope: Scope::default(),
        }
    }

    /// Sets its size in bytes.
    pub fn size(mut self, bytes: u64) -> Self {
        self.definition.size = Some(bytes);
        self
    }
}

impl Described for Resource {
    type Definition = wire::Resource;

    fn definition(&self) -> &wire::Resource {
        &self.definition
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn listing(tables: &mut Tables) -> &mut Listing<wire::Resource> {
        &mut tables.resources
    }

    fn finish(self) -> Result<Entry<wire::Resource>, SetupError> {
        let wrong = |problem: String| SetupError::new("resource", &self.definition.uri, problem);
        check_uri(&self.definition.uri).map_err(wrong)?;
        self.needs.check_asked(|_| false).map_err(wrong)?;
        Ok(Entry { definition: self.definition, handler: self.handler, scope: self.scope, own: self.cache })
    }
}

impl ResourceTemplate {
    /// Creates a template whose resources `handler` reads.
    pub fn new<P: Parameters, F: Function<P> + Send + Sync>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: F,
    ) -> Self
    where
        F::Output: IntoReply<ReadResourceResult>,
        F::Future: Send,
    {
        Self {
            definition: wire::ResourceTemplate::new(uri_template, name),
            handler: erase(handler),
            cache: Cache::default(),
            completers: Completers::default(),
            needs: needs_of::<P>(),
            scope: Scope::default(),
        }
    }

    /// Suggests values for a variable while it is typed.
    ///
    /// The completer takes [`Partial`](super::Partial), the text so far, and parameters as handlers do, except those that ask.
    /// It returns a `Vec<String>`, or a `Result` of one.
    pub fn complete<P: Parameters, F: Function<P> + Send + Sync>(
        mut self,
        variable: impl Into<String>,
        suggest: F,
    ) -> Self
    where
        F::Output: IntoReply<CompleteResult>,
        F::Future: Send,
    {
        self.completers.add(variable.into(), suggest, &mut self.needs);
        self
    }
}

impl Described for ResourceTemplate {
    type Definition = wire::ResourceTemplate;

    fn definition(&self) -> &wire::ResourceTemplate {
        &self.definition
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn listing(tables: &mut Tables) -> &mut Listing<wire::ResourceTemplate> {
        &mut tables.templates
    }

    fn finish(self) -> Result<Entry<wire::ResourceTemplate>, SetupError> {
        let wrong =
            |problem: String| SetupError::new("resource template", &self.definition.uri_template, problem);
        let template = UriTemplate::parse(&self.definition.uri_template).map_err(wrong)?;
        let known: Vec<&str> = template.variables().collect();
        if let Some(mistake) = self.completers.mistake(&known, "variables") {
            return Err(wrong(mistake));
        }
        let wanted = self.needs.arguments.as_ref().and_then(|schema| schema["required"].as_array());
        let missing =
            wanted.into_iter().flatten().filter_map(|name| name.as_str()).find(|name| !known.contains(name));
        if let Some(missing) = missing {
            return Err(wrong(format!(
                "the handler's `Args` want `{missing}`, which is not one of its variables"
            )));
        }
        self.needs.check_asked(|name| known.contains(&name)).map_err(wrong)?;
        let own = TemplateParts { template, completers: self.completers, cache: self.cache };
        Ok(Entry { definition: self.definition, handler: self.handler, scope: self.scope, own })
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.definition.uri).finish_non_exhaustive()
    }
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate")
            .field("uri_template", &self.definition.uri_template)
            .finish_non_exhaustive()
    }
}
