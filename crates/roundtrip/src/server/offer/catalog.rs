//! Catalog of a server: tools, prompts, resources and templates, added and removed while it runs.

use std::any::TypeId;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use roundtrip_core::seal::Digest;
use roundtrip_core::wire::{self, ErrorObject};

use super::entry::{Definition, Entry, ToolEntry};
use super::list::Listing;
use super::setup::SetupError;
use crate::lock::{read, write};
use crate::server::handler::call::{Call, Rejection, StateMap};
use crate::server::handler::extract::FromCall;
use crate::server::handler::needs::Needs;
use crate::server::hook::Scope;
use crate::server::notify::subscription::{Change, Hub};

/// Handle on the offers of a server. Clone it freely; get it from [`Server::catalog`](crate::Server::catalog), or as a
/// handler's parameter. Clients that subscribe are told of every change.
#[derive(Clone)]
pub struct Catalog(Arc<Inner>);

struct Inner {
    tables: RwLock<Tables>,
    hub: Arc<Hub>,
    /// True once a tool with header annotations has been added.
    header_params: AtomicBool,
    /// Provisions of the server, set when it starts. Until then, the needs of handlers are noted down and checked all at once.
    provided: OnceLock<Provided>,
}

#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) tools: Listing<wire::Tool>,
    pub(crate) prompts: Listing<wire::Prompt>,
    pub(crate) resources: Listing<wire::Resource>,
    pub(crate) templates: Listing<wire::ResourceTemplate>,
    pub(crate) logging: bool,
    pub(crate) completions: bool,
    /// True once a tool that sends its result in parts has been added.
    pub(crate) streams: bool,
    /// True once a handler that can ask has been added.
    pub(crate) asks: bool,
    unchecked: Vec<Wanted>,
    /// Kinds of tasks that its tools run, sorted, until a tool is added or removed.
    task_kinds: OnceLock<Arc<[Digest]>>,
}

impl Tables {
    /// Returns the kinds of tasks that its tools run, sorted.
    pub(crate) fn task_kinds(&self) -> Arc<[Digest]> {
        let collect = || {
            let mut kinds: Vec<Digest> = self.tools.iter().flat_map(|tool| tool.own.kinds.clone()).collect();
            kinds.sort_unstable();
            kinds.into()
        };
        Arc::clone(self.task_kinds.get_or_init(collect))
    }

    /// Returns the tool that runs a kind of tasks.
    pub(crate) fn runs(&self, tool: &str, kind: &Digest) -> Option<Arc<ToolEntry>> {
        self.tools.get(tool).filter(|tool| tool.own.kinds.contains(kind)).cloned()
    }

    /// Returns the scopes of the resource and the templates at a URI, none if no resource has rules or needs scopes.
    fn scopes_at(&self, uri: &str) -> Vec<Scope> {
        if !self.resources.is_restricted() && !self.templates.is_restricted() {
            return Vec::new();
        }
        let resource = self.resources.get(uri).map(|entry| &entry.scope);
        let templates = self.templates.iter().filter(|entry| entry.own.template.matches(uri).is_some());
        resource.into_iter().chain(templates.map(|entry| &entry.scope)).cloned().collect()
    }
}

/// Provisions of a started server for its handlers.
struct Provided {
    /// Types of its state.
    state: HashSet<TypeId>,
    /// Types of the extensions that its store of tasks keeps, if it has one.
    tasks: Option<HashSet<TypeId>>,
}

/// A handler's needs that were noted before the server was complete.
struct Wanted {
    kind: &'static str,
    name: String,
    state: Vec<(TypeId, &'static str)>,
    /// Extensions that it takes, if its calls may become tasks.
    tasks: Option<Vec<(TypeId, &'static str)>>,
}

impl Wanted {
    fn check(&self, provided: &Provided) -> Result<(), SetupError> {
        self.missing(provided).map_or(Ok(()), |problem| Err(SetupError::new(self.kind, &self.name, problem)))
    }

    fn missing(&self, provided: &Provided) -> Option<String> {
        if let Some(extensions) = &self.tasks {
            let Some(kept) = &provided.tasks else {
                let problem =
                    "its calls may become tasks: give the server a store for them with `.tasks(..)`";
                return Some(problem.to_owned());
            };
            if let Some((_, wanted)) = extensions.iter().find(|(id, _)| !kept.contains(id)) {
                return Some(format!(
                    "its handler takes `Extension<{wanted}>`, and its calls may become tasks, which outlive the request: \
                     store it with `Tasks::keep_extension`, or take it from `Caller` or `State`"
                ));
            }
        }
        let (_, wanted) = self.state.iter().find(|(id, _)| !provided.state.contains(id))?;
        Some(format!("its handler takes `State<{wanted}>`: give the server one with `.state(..)`"))
    }
}

/// Offer of a server: a [`Tool`](super::Tool), a [`Prompt`](super::Prompt), a [`Resource`](super::Resource) or a
/// [`ResourceTemplate`](super::ResourceTemplate).
#[expect(private_bounds, reason = "sealed: the protocol says what can be offered")]
pub trait Offer: Described {}

impl<T: Described> Offer for T {}

/// Private methods of [`Offer`].
pub(crate) trait Described {
    type Definition: Definition;
    fn definition(&self) -> &Self::Definition;
    fn needs(&self) -> &Needs;
    /// Returns whether its calls may become tasks.
    fn may_be_task(&self) -> bool {
        false
    }
    fn scope_mut(&mut self) -> &mut Scope;
    /// Checks the offer and makes it ready to be called.
    fn finish(self) -> Result<Entry<Self::Definition>, SetupError>;
    fn listing(tables: &mut Tables) -> &mut Listing<Self::Definition>;
}

type DefinitionOf<O> = <O as Described>::Definition;

impl Catalog {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            tables: RwLock::default(),
            hub: Arc::new(Hub::new()),
            header_params: AtomicBool::new(false),
            provided: OnceLock::new(),
        }))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Tables> {
        read(&self.0.tables)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        write(&self.0.tables)
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.0.hub
    }

    /// Returns whether any tool may have header annotations, without a look at the tables.
    pub(crate) fn has_header_params(&self) -> bool {
        self.0.header_params.load(Ordering::Acquire)
    }

    /// Checks the needs noted so far; from here on, additions are checked at once.
    pub(crate) fn start(&self, state: &StateMap, tasks: Option<HashSet<TypeId>>) -> Result<(), SetupError> {
        // A catalog belongs to one server, which starts once.
        let provided = self.0.provided.get_or_init(|| Provided { state: state.types().collect(), tasks });
        std::mem::take(&mut self.write().unchecked).iter().try_for_each(|wanted| wanted.check(provided))
    }

    /// Adds a tool, a prompt, a resource or a template.
    ///
    /// # Errors
    /// Fails if the name is taken, or the offer is not well formed.
    pub fn add<O: Offer>(&self, offer: O) -> Result<(), SetupError> {
        let needs = offer.needs();
        let name = offer.definition().key().to_owned();
        if let Some(mistake) = needs.mistake(DefinitionOf::<O>::HAS_URI, DefinitionOf::<O>::IS_TOOL) {
            return Err(SetupError::new(DefinitionOf::<O>::KIND, &name, mistake));
        }
        let (logging, streams, asks) = (needs.logging, needs.parts, needs.asks.is_some());
        let wanted = Wanted {
            kind: DefinitionOf::<O>::KIND,
            name: name.clone(),
            state: needs.state.clone(),
            tasks: offer.may_be_task().then(|| needs.extensions.clone()),
        };
        let started = self.0.provided.get();
        if let Some(provided) = started {
            wanted.check(provided)?;
        }
        let ready = offer.finish()?;
        if let Some(mistake) = ready.scope.mistake() {
            return Err(SetupError::new(DefinitionOf::<O>::KIND, &name, format!("its scopes: {mistake}")));
        }
        let completes = DefinitionOf::<O>::completers(&ready.own).is_some_and(|all| !all.is_empty());
        if DefinitionOf::<O>::has_header_params(&ready.own) {
            self.0.header_params.store(true, Ordering::Release);
        }
        let mut tables = self.write();
        if !O::listing(&mut tables).insert(&name, ready) {
            return Err(SetupError::new(
                DefinitionOf::<O>::KIND,
                &name,
                "there is one of this name already: choose another name",
            ));
        }
        tables.task_kinds = OnceLock::new();
        tables.logging |= logging;
        tables.streams |= streams;
        tables.asks |= asks;
        tables.completions |= completes;
        if started.is_none() {
            tables.unchecked.push(wanted);
        }
        drop(tables);
        self.0.hub.announce(DefinitionOf::<O>::CHANGE);
        Ok(())
    }

    /// Removes the offer with a name, a URI or a URI template; returns false if there was none.
    pub fn remove<O: Offer>(&self, name: &str) -> bool {
        let mut tables = self.write();
        let removed = O::listing(&mut tables).remove(name);
        tables.task_kinds = OnceLock::new();
        drop(tables);
        if removed {
            self.0.hub.announce(DefinitionOf::<O>::CHANGE);
        }
        removed
    }

    /// Announces a change of the list of tools, to clients that subscribe: one that the catalog does not see, such as a
    /// caller's rights that decide what [`visible_to`](super::Tool::visible_to) shows.
    pub fn tools_changed(&self) {
        self.0.hub.announce(Change::Tools);
    }

    /// Announces a change of the list of prompts, as [`tools_changed`](Self::tools_changed) does.
    pub fn prompts_changed(&self) {
        self.0.hub.announce(Change::Prompts);
    }

    /// Announces a change of the lists of resources and templates, as [`tools_changed`](Self::tools_changed) does.
    pub fn resources_changed(&self) {
        self.0.hub.announce(Change::Resources);
    }

    /// Tells clients that watch a resource that it has changed, as far as they see it.
    pub fn resource_updated(&self, uri: &str) {
        let scopes = self.read().scopes_at(uri);
        if scopes.iter().all(Scope::is_free) {
            return self.0.hub.announce(Change::Resource(uri));
        }
        self.0.hub.announce_to_viewers(uri, |viewer| scopes.iter().any(|scope| scope.tells(viewer)));
    }
}

/// The catalog as a call's server keeps it for the extractor: handlers do not name it, because its entries hold handlers.
struct Own(Catalog);

impl Catalog {
    /// Lets handlers take the catalog as a parameter.
    pub(crate) fn provide(&self, state: &mut StateMap) {
        state.insert(Own(self.clone()));
    }
}

impl FromCall for Catalog {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let own = call.state.get::<Own>().map(|Own(catalog)| catalog.clone());
        own.ok_or_else(|| ErrorObject::internal("the server has no catalog").into())
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Catalog")
    }
}
