//! Groups of offers that share hooks, visibility rules and rate limits.

use super::catalog::{Catalog, Described as _, Offer};
use super::entry::Definition as _;
use super::scoped::scoped;
use super::setup::SetupError;
use super::{Prompt, Resource, ResourceTemplate, Tool};
use crate::server::hook::Scope;

/// Offers that share hooks, visibility rules and rate limits. A group may hold groups.
///
/// ```
/// # use roundtrip::{Prompt, Resource, ResourceTemplate, Server, Tool, Uri, server::Group};
/// let admin = Group::new()
///     .visible_to(|caller| caller.principal().is_some())
///     .around(async |call, next| {
///         tracing::info!(who = ?call.principal, tool = call.target.as_deref(), "an administrator's call");
///         next.run().await
///     })
///     .tool(Tool::new("restart", async || "restarting"))
///     .tool(Tool::new("stop", async || "stopping"))
///     .prompt(Prompt::new("diagnose", async || "What is wrong with this machine?"))
///     .resource(Resource::new("log://today", "today", async || "started at 6:00"))
///     .template(ResourceTemplate::new("log://{day}", "log", async |uri: Uri| format!("nothing in {uri}")));
/// let server = Server::new("machine", "1.0.0").group(admin).tool(Tool::new("status", async || "running"));
/// # server.build().unwrap();
/// ```
///
/// Hooks, rules and limits are for everything in the group, whether it is added before or after them.
#[derive(Debug, Default)]
#[must_use = "a group does nothing until it is given to a server or a catalog"]
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

scoped!(Group, "each of its offers", "every call of each of its offers");

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
}

impl Catalog {
    /// Adds everything in a group, inside its hooks and visible by its rules. Its offers are removed by their names.
    ///
    /// # Errors
    /// Fails as [`add`](Self::add) does; what had been added of the group is removed again.
    pub fn add_group(&self, group: Group) -> Result<(), SetupError> {
        let mut added = Vec::new();
        for offer in group.into_offers() {
            match offer.add_to(self) {
                Ok(removal) => added.push(removal),
                Err(error) => {
                    added.into_iter().for_each(|remove| remove(self));
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

type Removal = Box<dyn FnOnce(&Catalog)>;

fn add<O: Offer>(catalog: &Catalog, offer: O) -> Result<Removal, SetupError> {
    let name = offer.definition().key().to_owned();
    catalog.add(offer)?;
    Ok(Box::new(move |catalog| {
        catalog.remove::<O>(&name);
    }))
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

    fn add_to(self, catalog: &Catalog) -> Result<Removal, SetupError> {
        match self {
            Self::Tool(tool) => add(catalog, tool),
            Self::Prompt(prompt) => add(catalog, prompt),
            Self::Resource(resource) => add(catalog, resource),
            Self::Template(template) => add(catalog, template),
        }
    }
}
