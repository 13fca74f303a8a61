//! Groups of offers that share hooks and visibility rules.

use super::catalog::{Catalog, Described as _};
use super::scoped::scoped;
use super::setup::SetupError;
use super::{Prompt, Resource, ResourceTemplate, Tool};
use crate::server::hook::Scope;

/// Offers that share hooks and visibility rules. A group may hold groups.
///
/// ```
/// # use roundtrip::{Server, Tool, server::Group};
/// let admin = Group::new()
///     .visible_to(|caller| caller.principal().is_some())
///     .around(async |call, next| {
///         tracing::info!(who = ?call.principal, tool = call.target, "an administrator's call");
///         next.run().await
///     })
///     .tool(Tool::new("restart", async || "restarting"))
///     .tool(Tool::new("stop", async || "stopping"));
/// let server = Server::new("machine", "1.0.0").group(admin).tool(Tool::new("status", async || "running"));
/// # server.build().unwrap();
/// ```
///
/// Hooks and rules are for everything in the group, whether it is added before or after them.
#[derive(Debug, Default)]
#[must_use = "a group does nothing until it is given to a server"]
pub struct Group {
    scope: Scope,
    offers: Vec<Offered>,
}

#[derive(Debug)]
enum Offered {
    Tool(Tool),
    Prompt(Prompt),
    Resource(Resource),
    Template(ResourceTemplate),
}

scoped!(Group, "each of its offers");

impl Group {
    /// Creates an empty group.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    pub fn tool(self, tool: Tool) -> Self {
        self.with(Offered::Tool(tool))
    }

    /// Adds a prompt.
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.with(Offered::Prompt(prompt))
    }

    /// Adds a resource.
    pub fn resource(self, resource: Resource) -> Self {
        self.with(Offered::Resource(resource))
    }

    /// Adds a family of resources.
    pub fn template(self, template: ResourceTemplate) -> Self {
        self.with(Offered::Template(template))
    }

    /// Adds the offers of another group, whose hooks run inside those of this one.
    pub fn group(mut self, group: Self) -> Self {
        self.offers.extend(group.into_offers());
        self
    }

    fn with(mut self, offer: Offered) -> Self {
        self.offers.push(offer);
        self
    }

    fn into_offers(self) -> impl Iterator<Item = Offered> {
        let Self { scope, offers } = self;
        offers.into_iter().map(move |mut offer| {
            offer.scope_mut().surround(&scope);
            offer
        })
    }

    pub(crate) fn add_to(self, catalog: &Catalog) -> Result<(), SetupError> {
        self.into_offers().try_for_each(|offer| offer.add_to(catalog))
    }
}

impl Offered {
    fn scope_mut(&mut self) -> &mut Scope {
        match self {
            Self::Tool(tool) => tool.scope_mut(),
            Self::Prompt(prompt) => prompt.scope_mut(),
            Self::Resource(resource) => resource.scope_mut(),
            Self::Template(template) => template.scope_mut(),
        }
    }

    fn add_to(self, catalog: &Catalog) -> Result<(), SetupError> {
        match self {
            Self::Tool(tool) => catalog.add(tool),
            Self::Prompt(prompt) => catalog.add(prompt),
            Self::Resource(resource) => catalog.add(resource),
            Self::Template(template) => catalog.add(template),
        }
    }
}
