//! Catalog of a server: tools, prompts, resources and templates, added and removed while it runs.

use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::list::{Listed, Listing};
use super::prompt::PromptEntry;
use super::resource::{ResourceEntry, TemplateEntry};
use super::setup::{Needs, SetupError};
use super::tool::ToolEntry;
use crate::lock::{read, write};
use crate::server::handler::call::StateMap;
use crate::server::run::subscription::{Change, Hub};

/// Handle on the offers of a server. Clone it freely; get it from [`Server::catalog`](crate::Server::catalog), or as a
/// handler's parameter. Clients that subscribe are told of every change.
#[derive(Clone)]
pub struct Catalog(Arc<Inner>);

struct Inner {
    tables: RwLock<Tables>,
    hub: Arc<Hub>,
    /// Set when the server starts. Until then, what handlers need is noted down and checked all at once.
    state: OnceLock<Arc<StateMap>>,
}

#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) tools: Listing<ToolEntry>,
    pub(crate) prompts: Listing<PromptEntry>,
    pub(crate) resources: Listing<ResourceEntry>,
    pub(crate) templates: Listing<TemplateEntry>,
    pub(crate) logging: bool,
    pub(crate) completions: bool,
    unchecked: Vec<Wanted>,
}

/// A handler's need for state that was noted before the state was complete.
struct Wanted {
    kind: &'static str,
    name: String,
    state: Vec<(TypeId, &'static str)>,
}

impl Wanted {
    fn check(&self, state: &StateMap) -> Result<(), SetupError> {
        match self.state.iter().find(|(id, _)| !state.has(*id)) {
            None => Ok(()),
            Some((_, wanted)) => Err(SetupError::new(
                self.kind,
                &self.name,
                format!("its handler takes `State<{wanted}>`: give the server one with `.state(..)`"),
            )),
        }
    }
}

/// Offer of a server: a [`Tool`](super::Tool), a [`Prompt`](super::Prompt), a [`Resource`](super::Resource) or a
/// [`ResourceTemplate`](super::ResourceTemplate).
#[expect(private_bounds, reason = "sealed: the protocol says what can be offered")]
pub trait Offer: Entry {}

impl<T: Entry> Offer for T {}

/// Private methods of [`Offer`].
pub(crate) trait Entry {
    const KIND: &'static str;
    const CHANGE: Change<'static>;
    type Ready: Listed;
    /// Returns the key it is looked up by.
    fn key(&self) -> &str;
    fn needs(&self) -> &Needs;
    fn finish(self) -> Result<Self::Ready, SetupError>;
    fn completes(_: &Self::Ready) -> bool {
        false
    }
    fn listing(tables: &mut Tables) -> &mut Listing<Self::Ready>;
}

impl Catalog {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { tables: RwLock::default(), hub: Arc::new(Hub::new()), state: OnceLock::new() }))
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

    /// Checks the needs noted so far; from here on, additions are checked at once.
    pub(crate) fn start(&self, state: &Arc<StateMap>) -> Result<(), SetupError> {
        // A catalog belongs to one server, which starts once.
        let _ = self.0.state.set(Arc::clone(state));
        std::mem::take(&mut self.write().unchecked).iter().try_for_each(|wanted| wanted.check(state))
    }

    /// Adds a tool, a prompt, a resource or a template.
    ///
    /// # Errors
    /// Fails if the name is taken, or the offer is not well formed.
    pub fn add<O: Offer>(&self, offer: O) -> Result<(), SetupError> {
        let Needs { state, logging, .. } = offer.needs();
        let (name, logging) = (offer.key().to_owned(), *logging);
        let wanted = Wanted { kind: O::KIND, name: name.clone(), state: state.clone() };
        let started = self.0.state.get();
        if let Some(state) = started {
            wanted.check(state)?;
        }
        let ready = offer.finish()?;
        let completes = O::completes(&ready);
        let mut tables = self.write();
        if !O::listing(&mut tables).insert(&name, ready) {
            return Err(SetupError::new(
                O::KIND,
                &name,
                "there is one of this name already: choose another name",
            ));
        }
        tables.logging |= logging;
        tables.completions |= completes;
        if started.is_none() {
            tables.unchecked.push(wanted);
        }
        drop(tables);
        self.0.hub.announce(O::CHANGE);
        Ok(())
    }

    /// Removes the offer with a name, a URI or a URI template; returns false if there was none.
    pub fn remove<O: Offer>(&self, name: &str) -> bool {
        let removed = O::listing(&mut self.write()).remove(name);
        if removed {
            self.0.hub.announce(O::CHANGE);
        }
        removed
    }

    /// Tells clients that watch a resource that it has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.0.hub.announce(Change::Resource(uri));
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Catalog")
    }
}
