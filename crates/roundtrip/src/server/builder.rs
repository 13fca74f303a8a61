//! Builder of servers: offers, limits and settings.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::seal::{Binding, DEFAULT_TTL, Sealer, TokenVersion};
use roundtrip_core::wire::{
    Icon, Implementation, JsonObject, ServerCapabilities, Signature, TASKS_EXTENSION, TASKS_SEP_2322,
    check_extension_name,
};

use super::cache::Cache;
use super::endpoint::Endpoint;
use super::handler::call::StateMap;
#[cfg(feature = "legacy")]
use super::handshake::Handshake;
use super::hook::{CallInfo, Hook, Next};
use super::keyring::Keyring;
use super::ledger::{Ledger, LedgerConfig, LedgerHandle};
use super::limits::{Admission, Limits};
use super::offer::catalog::{Catalog, Offer};
use super::offer::list::{Caches, Listings, Presentation};
use super::offer::{Group, Prompt, Resource, ResourceTemplate, SetupError, Tool};
use super::outcome::Outcome;
use super::rate::{RateGate, RateLimit};
use super::round::{FlowConfig, Trace};
use super::started::Started;
use super::task::Tasks;
use super::task::dialect::Sep2322;
use super::task::service::TaskService;
use crate::task::task_service;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Telemetry;

/// Builder of an MCP server.
///
/// ```
/// use roundtrip::{Args, Server, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet { name: String }
///
/// async fn greet(Args(Greet { name }): Args<Greet>) -> String {
///     format!("Hello, {name}!")
/// }
///
/// let server = Server::new("greeter", "1.0.0").tool(Tool::new("greet", greet).description("Say hello"));
/// # server.build().unwrap();
/// ```
///
/// Mistakes (two tools of one name, a schema that is not an object, state that is not provided, two `Args`) are reported when the
/// server starts, by [`build`](Self::build) and everything that calls it.
#[derive(Debug)]
#[must_use = "a server does nothing until it is served"]
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    declared: ServerCapabilities,
    catalog: Catalog,
    state: StateMap,
    hooks: Vec<Hook>,
    rate_limits: Vec<RateLimit>,
    caches: Caches,
    page_size: usize,
    limits: Limits,
    sealer: Option<Sealer>,
    token_version: Option<TokenVersion>,
    stream_undeclared: bool,
    audience: Option<String>,
    valid_for: Duration,
    max_rounds: u32,
    trace: Option<Arc<Trace>>,
    ledger: Option<LedgerHandle>,
    tasks: Option<Tasks>,
    #[cfg(feature = "opentelemetry")]
    telemetry: Option<Telemetry>,
    #[cfg(feature = "legacy")]
    handshake: Handshake,
    problem: Option<SetupError>,
}

/// Results whose caching hints can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listed {
    /// `server/discover`
    Discover,
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
}

impl Server {
    /// Creates a server with a name and a version, which every result carries.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, version),
            instructions: None,
            declared: ServerCapabilities::default(),
            catalog: Catalog::new(),
            state: StateMap::default(),
            hooks: Vec::new(),
            rate_limits: Vec::new(),
            caches: Caches::default(),
            page_size: usize::MAX,
            limits: Limits::default(),
            sealer: None,
            token_version: None,
            stream_undeclared: false,
            audience: None,
            valid_for: DEFAULT_TTL,
            max_rounds: 32,
            trace: None,
            ledger: None,
            tasks: None,
            #[cfg(feature = "opentelemetry")]
            telemetry: None,
            #[cfg(feature = "legacy")]
            handshake: Handshake::default(),
            problem: None,
        }
    }

    /// Offers a tool.
    pub fn tool(self, tool: Tool) -> Self {
        self.offer(tool)
    }

    /// Offers a prompt.
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.offer(prompt)
    }

    /// Offers a resource.
    pub fn resource(self, resource: Resource) -> Self {
        self.offer(resource)
    }

    /// Offers a family of resources.
    pub fn template(self, template: ResourceTemplate) -> Self {
        self.offer(template)
    }

    /// Offers everything in a group, inside its hooks and visible by its rules.
    pub fn group(self, group: Group) -> Self {
        let added = self.catalog.add_group(group);
        self.noting(added)
    }

    fn offer<O: Offer>(self, offer: O) -> Self {
        let added = self.catalog.add(offer);
        self.noting(added)
    }

    /// Keeps the first mistake, for the start.
    fn noting(mut self, added: Result<(), SetupError>) -> Self {
        self.problem = self.problem.or(added.err());
        self
    }

    /// Shares a value with handlers, which take it as [`State<S>`](super::State). One value a type.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, value: S) -> Self {
        if !self.state.insert(value) {
            let twice = std::any::type_name::<S>();
            let problem = format!("two values of type `{twice}` are its state: give one a type of its own");
            let error = SetupError::new("server", &self.info.name, problem);
            self.problem.get_or_insert(error);
        }
        self
    }

    /// Sets the name shown to people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Adds an icon for user interfaces.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.push(icon);
        self
    }

    /// Sets the instructions for the model: how to use this server well.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Declares a protocol extension, with its settings. Its name has the prefix of its author, such as `com.example/views`.
    pub fn extension(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.declared.extensions.insert(name.into(), settings);
        self
    }

    /// Runs a function around every call of every transport: audit, authorization.
    /// The first one added is the outermost. Hooks of a group and of one offer
    /// ([`Tool::around`](super::Tool::around)) run inside these.
    ///
    /// ```
    /// # use roundtrip::{Server, wire::ErrorObject};
    /// let server = Server::new("audited", "1.0.0").around(async |call, next| {
    ///     if call.principal.is_none() && call.method == "tools/call" {
    ///         return Err(ErrorObject::new(401, "sign in first"));
    ///     }
    ///     next.run().await
    /// });
    /// ```
    pub fn around<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(CallInfo, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        self.hooks.push(Hook::new(hook));
        self
    }

    /// Sets how long clients may keep a list. The default is not at all.
    pub fn cache(mut self, list: Listed, cache: Cache) -> Self {
        let slot = match list {
            Listed::Discover => &mut self.caches.discover,
            Listed::Tools => &mut self.caches.tools,
            Listed::Prompts => &mut self.caches.prompts,
            Listed::Resources => &mut self.caches.resources,
            Listed::Templates => &mut self.caches.templates,
        };
        *slot = cache;
        self
    }

    /// Sets how many entries a page of a list has. The default is all of them.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = entries.max(1);
        self
    }

    /// Sets the limits of what the server does at once.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Limits how often each principal may call: tools, prompts and resources together. The default is no limit. Several limits
    /// must all have room. See [`RateLimit`].
    ///
    /// ```
    /// # use roundtrip::{RateLimit, Server};
    /// let server = Server::new("shop", "1.0.0").rate_limit(RateLimit::per_minute(100));
    /// ```
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.rate_limits.push(limit);
        self
    }

    /// Sets the codec that seals `requestState`: a [`Keyring`](super::Keyring) that all instances share, or a codec of
    /// your own. A shared ring seals the ids of sessions too. The default is a random key of this process, so that no other instance can continue its flows.
    pub fn seal(mut self, sealer: impl Into<Sealer>) -> Self {
        self.sealer = Some(sealer.into());
        self
    }

    /// Sets the version of the tokens that this instance writes. The default is the first; every instance opens all versions.
    ///
    /// [`TokenVersion::V2`] binds `requestState` and the answers of a task to the OAuth client of the access token, beside the
    /// principal. Update all instances first, and set it then: an older release does not open it.
    pub fn token_version(mut self, version: TokenVersion) -> Self {
        self.token_version = Some(version);
        self
    }

    /// Sends results in parts to clients that ask for them with `stream: {}` and declare nothing, too. By default only a client that
    /// declares `dev.roundtrip/stream` is sent parts.
    pub fn stream_undeclared(mut self) -> Self {
        self.stream_undeclared = true;
        self
    }

    /// Sets the name that tells this service from others that share its keys. All instances of a service must agree.
    /// The default is the server's name.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Sets how long an answer may take, unless its question says otherwise: to the second, rounded up. The default is 10
    /// minutes. Where instances share a key, their clocks may differ, and a state is taken for a minute more:
    /// [`TokenLimits::clock_skew`](roundtrip_core::seal::TokenLimits::clock_skew).
    pub fn answer_within(mut self, duration: Duration) -> Self {
        self.valid_for = duration;
        self
    }

    /// Sets how many rounds of one flow may ask, 250 at most. The default is 32. In a task, a run that settles an answer and asks
    /// nothing new does not count.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// Records the keys that handlers use.
    pub(crate) fn traced(mut self, trace: &Arc<Trace>) -> Self {
        self.trace = Some(Arc::clone(trace));
        self
    }

    /// Records every round's reply, so that a repeated round gets it again and runs nothing: see
    /// [`ledger`](super::ledger). The default is none: then a round whose reply was lost runs again.
    ///
    /// ```
    /// # use roundtrip::{MemoryLedger, Server};
    /// let server = Server::new("bookings", "1.0.0").ledger(MemoryLedger::new());
    /// ```
    pub fn ledger(mut self, ledger: impl Ledger + 'static) -> Self {
        self.ledger = Some(LedgerHandle::new(ledger));
        self
    }

    /// Keeps calls that become tasks: those of tools that say when ([`Tool::task`](crate::Tool::task)). The server declares
    /// the tasks extension.
    pub fn tasks(mut self, tasks: Tasks) -> Self {
        self.declared.extensions.insert(TASKS_EXTENSION.to_owned(), JsonObject::new());
        if tasks.sep_2322 != Sep2322::Off {
            self.declared.extensions.insert(TASKS_SEP_2322.to_owned(), JsonObject::new());
        }
        self.tasks = Some(tasks);
        self
    }

    /// Reports every call to OpenTelemetry, as a span and a duration: see [`telemetry`](crate::telemetry). The default is no
    /// report.
    #[cfg(feature = "opentelemetry")]
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// Sets how clients of the handshake eras are served.
    #[cfg(feature = "legacy")]
    pub fn handshake(mut self, handshake: Handshake) -> Self {
        self.handshake = handshake;
        self
    }

    /// Returns a handle on the offers of this server, to change them while it runs.
    pub fn catalog(&self) -> Catalog {
        self.catalog.clone()
    }

    /// Builds a server whose clients can reach other instances too, and warns if those cannot carry on its flows.
    pub(crate) fn build_instance(self) -> Result<Endpoint, SetupError> {
        let alone = self.sealer.is_none() && self.catalog.read().asks;
        let endpoint = self.build()?;
        if alone {
            tracing::warn!(
                "this server seals `requestState` with a random key of its own: after a restart, or at another \
                 instance, its clients cannot carry on their flows; give all instances one `Keyring` with `Server::seal`"
            );
        }
        Ok(endpoint)
    }

    /// Checks the setup and starts the server, for a transport to hand it requests.
    ///
    /// # Errors
    /// Returns the first mistake in its setup.
    pub fn build(self) -> Result<Endpoint, SetupError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        if let Some(mistake) =
            self.declared.extensions.keys().find_map(|name| check_extension_name(name).err())
        {
            return Err(SetupError::new("server", &self.info.name, mistake));
        }
        let mut state = self.state;
        if let Some(mistake) = self.tasks.as_ref().and_then(|tasks| tasks.extensions.mistake()) {
            return Err(SetupError::new("server", &self.info.name, mistake));
        }
        self.catalog.start(&state, self.tasks.as_ref().map(|tasks| tasks.extensions.types().collect()))?;
        self.catalog.provide(&mut state);
        self.catalog.hub().limit(&self.limits);
        let info = Arc::new(self.info);
        let shown = |cache| Presentation { cache, page_size: self.page_size, server_info: Arc::clone(&info) };
        let listings = Listings {
            discover: self.caches.discover,
            tools: shown(self.caches.tools),
            prompts: shown(self.caches.prompts),
            resources: shown(self.caches.resources),
            templates: shown(self.caches.templates),
        };
        let audience = self.audience.unwrap_or_else(|| info.name.clone());
        if audience.is_empty() && self.sealer.is_some() {
            let problem = "servers that share keys are told apart by their names: give it a name, or an `.audience(..)`";
            return Err(SetupError::new("server", &info.name, problem));
        }
        let sealer = match self.sealer {
            Some(sealer) => sealer,
            None => Keyring::random()
                .map_err(|error| SetupError::new("server", &info.name, error.to_string()))?
                .into(),
        };
        let sealer = self.token_version.into_iter().fold(sealer, Sealer::version);
        let rates = RateGate::new(&audience, self.trace.is_none());
        let flows = Arc::new(FlowConfig {
            sealer,
            known_audience: Binding::audience(&audience),
            audience,
            valid_for: self.valid_for,
            stream_undeclared: self.stream_undeclared,
            max_rounds: self.max_rounds.min(250),
            admission: Admission::new(self.limits),
            trace: self.trace,
            #[cfg(feature = "opentelemetry")]
            reports: self.telemetry.is_some(),
        });
        let (service, hub) = (task_service(&flows.audience), self.catalog.hub());
        let tasks = self.tasks.map(|tasks| TaskService::new(tasks, service, &flows.admission, hub));
        Ok(Endpoint::new(Started {
            flows,
            signature: Signature::new(Arc::clone(&info)),
            info,
            instructions: self.instructions,
            declared: self.declared,
            catalog: self.catalog,
            state,
            hooks: self.hooks,
            limits: self.rate_limits,
            rates,
            listings,
            ledger: self.ledger.map(|ledger| LedgerConfig { ledger, keys_for: self.valid_for }),
            tasks,
            #[cfg(feature = "opentelemetry")]
            telemetry: self.telemetry,
            #[cfg(feature = "legacy")]
            handshake: self.handshake,
        }))
    }
}
