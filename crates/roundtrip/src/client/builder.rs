//! `Client`: its settings, and the state that its calls share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
#[cfg(feature = "opentelemetry")]
use opentelemetry::Context;
use roundtrip_core::error::{ApiMisuse, Error};
use roundtrip_core::exchange::TaskDialect;
use roundtrip_core::wire::{
    CallTool, ClientCapabilities, Discover, DiscoverResult, Era, Implementation, Method as _,
    ProtocolVersion, Raw, RequestId, RequestMeta, STREAM_EXTENSION, encode_request, one_line,
};

use super::cache::{CacheView, Capacity};
#[cfg(feature = "legacy")]
use super::caller::Caller;
use super::closing::{Closed, Closing};
use super::handlers::Handlers;
use super::limits::ClientLimits;
use super::memory::Memory;
use super::options::Options;
use super::request::{Request, raw};
use super::tools::ToolsView;
use super::transport::{Outgoing, Transport};
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Telemetry;

/// Default time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Default number of results in the cache.
const CACHE: usize = 256;

/// Client of one server. Clones are cheap and share everything.
///
/// ```no_run
/// # async fn example() -> Result<(), roundtrip::Error> {
/// use roundtrip::Client;
/// use serde_json::json;
///
/// let client = Client::http("https://tools.example/mcp")?;
/// for tool in client.list_tools().await? {
///     println!("{}", tool.name);
/// }
/// let result = client.call_tool("greet", json!({ "name": "Ada" })).await?;
/// # Ok(())
/// # }
/// ```
///
/// Every call is a builder: chain what there is to say about it, and await it. Dropping a call under way cancels
/// it, in the way its transport has for that.
#[derive(Clone)]
#[must_use = "a client does nothing until it is asked to"]
pub struct Client(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    transport: Arc<dyn Transport>,
    /// Shared by all clients of one transport: no two requests on it may have the same id.
    ids: Arc<AtomicI64>,
    settings: Settings,
    memory: Arc<Memory>,
    /// For waits in which there is no request that the transport could fail.
    closing: Arc<Closing>,
}

#[derive(Clone)]
pub(super) struct Settings {
    info: Option<Raw>,
    handlers: Arc<Handlers>,
    timeout: Duration,
    cache: usize,
    limits: ClientLimits,
    #[cfg(feature = "opentelemetry")]
    telemetry: Option<Telemetry>,
    /// True if calls of tools may become tasks.
    tasks: bool,
    /// Dialect of tasks that the user has chosen.
    dialect: Option<TaskDialect>,
    /// The one revision to speak.
    #[cfg(feature = "legacy")]
    pinned: Option<ProtocolVersion>,
    /// First mistake in the settings: every call reports it.
    pub(super) problem: Option<String>,
}

impl Client {
    /// Builds a client on any transport.
    pub fn new(transport: impl Transport) -> Self {
        let settings = Settings {
            info: raw(&Implementation::new("roundtrip", env!("CARGO_PKG_VERSION")), "").ok(),
            handlers: Arc::default(),
            timeout: TIMEOUT,
            cache: CACHE,
            limits: ClientLimits::default(),
            #[cfg(feature = "opentelemetry")]
            telemetry: None,
            tasks: true,
            dialect: None,
            #[cfg(feature = "legacy")]
            pinned: None,
            problem: None,
        };
        let transport = Arc::new(transport);
        let (ids, memory, closing) = (Arc::default(), Arc::default(), Arc::default());
        Self(Arc::new(Inner { transport, ids, settings, memory, closing }))
    }

    /// Sets the name and version that servers are told. The default is this library.
    pub fn info(self, name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Implementation::new(name, version);
        self.set(|settings| settings.info = raw(&info, "").ok())
    }

    /// Declares capabilities beyond those of the handlers: a client with [`on_form`](Self::on_form) declares forms
    /// without being told to.
    pub fn capabilities(self, capabilities: ClientCapabilities) -> Self {
        self.set_handlers(|handlers| handlers.capabilities = capabilities)
    }

    /// Sets the time limit of a request, with everything that is done for it, for calls that have none of their own. The
    /// default is 60 seconds.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|settings| settings.timeout = timeout)
    }

    /// Sets the number of results to keep while they are fresh by the server's account; 0 keeps none. The default is 256.
    /// [`ClientLimits::cache_bytes`] bounds them in bytes.
    pub fn cache(self, results: usize) -> Self {
        self.set(|settings| settings.cache = results)
    }

    /// Sets the limits of what a server can make this client do and keep.
    pub fn limits(self, limits: ClientLimits) -> Self {
        self.set(|settings| settings.limits = limits)
    }

    /// Reports every request to OpenTelemetry, as a span and a duration, and sends the span's context along: see
    /// [`telemetry`](crate::telemetry). The default is no report.
    #[cfg(feature = "opentelemetry")]
    pub fn telemetry(self, telemetry: Telemetry) -> Self {
        self.set(|settings| settings.telemetry = Some(telemetry))
    }

    /// Sets the dialect of tasks to speak with a modern server. The default is the extension, or SEP-2322's dialect with a server
    /// that names that alone: in [`discover`](Self::discover), or when it refuses a call. Servers of 2025-11-25 are spoken to in
    /// that revision's own.
    pub fn tasks(self, dialect: TaskDialect) -> Self {
        self.set(|settings| (settings.tasks, settings.dialect) = (true, Some(dialect)))
    }

    /// Does not declare the tasks extension (`io.modelcontextprotocol/tasks`), which calls of tools declare otherwise. Tools
    /// then run inside their calls, and those that only run as tasks are refused.
    pub fn without_tasks(self) -> Self {
        self.set(|settings| settings.tasks = false)
    }

    /// Ends the connection in good order: a child process is asked to end, and made to; a session with a server that has
    /// sessions is ended. Calls under way fail at once with [`Error::Closed`], whatever they wait for, and calls that wait
    /// for answers are cancelled. Tokens that were asked for are waited for and stored, for ten seconds at most.
    ///
    /// A closed client stays closed, and so do its clones, whatever the transport: every call is [`Error::Closed`]. Make
    /// another client to go on. Dropping the last clone closes the client in the background.
    pub async fn close(&self) {
        self.0.closing.signal();
        self.0.transport.close().await;
    }

    /// Returns the revision that this client speaks with its server: the one agreed on in the handshake, or that of the
    /// requests that the server answers. `None` before the first answer.
    pub fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.transport().protocol_version().or_else(|| self.0.memory.answered_in.get().copied())
    }

    /// Notes the revision of a request that was answered.
    pub(crate) fn answered_in(&self, version: ProtocolVersion) {
        self.0.memory.answered_in.get_or_init(|| version);
    }

    /// Speaks one revision and no other, instead of detecting which one the server speaks. A server that does not speak
    /// it is [`Error::PeerIncompatible`].
    ///
    /// Revisions that have a handshake are for clients made by [`http`](Self::http) and [`stdio`](Self::stdio), with the cargo
    /// feature `legacy`.
    ///
    /// ```
    /// use roundtrip::Client;
    /// use roundtrip::wire::ProtocolVersion;
    ///
    /// # fn main() -> Result<(), roundtrip::Error> {
    /// let modern = Client::http("https://tools.example/mcp")?.protocol(ProtocolVersion::LATEST);
    /// let legacy = Client::http("https://old.example/mcp")?.protocol(ProtocolVersion::V2025_11_25);
    /// # Ok(())
    /// # }
    /// ```
    pub fn protocol(self, version: ProtocolVersion) -> Self {
        let speaks = self.transport().speaks(version);
        self.set(|settings| {
            #[cfg(feature = "legacy")]
            {
                settings.pinned = Some(version);
            }
            if !speaks {
                let problem = match version.era() {
                    Era::Modern => format!("`protocol`: this client's transport does not speak {version}"),
                    Era::Handshake => format!(
                        "`protocol`: this client's transport does not speak {version}: \
                         that takes HTTP or stdio, and the cargo feature `legacy`"
                    ),
                };
                settings.problem.get_or_insert(problem);
            }
        })
    }

    pub(super) fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        change(&mut inner.settings);
        // Results and tools seen with other credentials are not to be used.
        inner.memory = Arc::default();
        self
    }

    pub(super) fn set_handlers(self, change: impl FnOnce(&mut Handlers)) -> Self {
        self.set(|settings| change(Arc::make_mut(&mut settings.handlers)))
    }

    /// Changes the transport, where it is of the type the setting is for.
    pub(crate) fn set_transport<T: Transport + Clone>(
        mut self,
        setting: &str,
        change: impl FnOnce(&mut T) -> Result<(), String>,
    ) -> Self {
        let any: &dyn std::any::Any = self.transport();
        let changed = match any.downcast_ref::<T>() {
            Some(transport) => {
                let mut transport = transport.clone();
                change(&mut transport).map(|()| transport)
            }
            None => Err("this client's transport has no such setting".to_owned()),
        };
        match changed {
            Ok(transport) => {
                let inner = Arc::make_mut(&mut self.0);
                inner.transport = Arc::new(transport);
                inner.memory = Arc::default();
                self
            }
            Err(why) => {
                let problem = format!("`{setting}`: {why}");
                self.set(|settings| settings.problem = settings.problem.take().or(Some(problem)))
            }
        }
    }

    /// Reports the first mistake in the settings of the client or the call.
    pub(crate) fn ready(&self, options: &mut Options) -> Result<(), Error> {
        if let Some(problem) = &self.0.settings.problem {
            return Err(ApiMisuse::Settings(problem.clone()).into());
        }
        options.problem.take().map_or(Ok(()), Err)
    }

    /// Makes a message of a request, with an id of its own.
    pub(crate) fn outgoing(
        &self,
        request: &Request<'_>,
        options: &Options,
        version: ProtocolVersion,
    ) -> Result<Outgoing, Error> {
        let Inner { ids, settings, transport, .. } = &*self.0;
        let id = RequestId::Number(ids.fetch_add(1, Ordering::Relaxed) + 1);
        #[cfg(feature = "opentelemetry")]
        options.span.iter().for_each(|span| span.set_id(&id));
        let meta = RequestMeta {
            // Ids are unique, so they serve as tokens too.
            progress_token: options.on_progress.is_some().then(|| id.clone()),
            protocol_version: version.as_str().into(),
            client_info: settings.info.as_ref().map(AsRef::as_ref),
            client_capabilities: Box::new(self.declared(request.method, options)),
            log_level: options.log_level(),
            extra: options.extra().map(|(key, value)| (key.into(), value.as_ref())).collect(),
        };
        let mut message = encode_request(&id, request.method, &request.with_meta(meta))
            .map_err(|error| ApiMisuse::Unserializable(format!("the request does not serialise: {error}")))?;
        one_line(&mut message);
        let target = request.target();
        let mirrored = match &target {
            Some(tool) if request.method == CallTool::NAME && transport.has_headers() => {
                self.tools().mirrored(tool, request.get("arguments"))
            }
            _ => Vec::new(),
        };
        Ok(Outgoing {
            message: Bytes::from(message),
            id,
            method: request.method,
            target,
            version,
            mirrored,
            parts: options.on_part.is_some(),
            #[cfg(feature = "legacy")]
            caller: Caller {
                pinned: settings.pinned,
                limits: settings.limits,
                offers_tasks: self.offers_tasks(),
                task: options.task,
                handlers: Arc::downgrade(&settings.handlers),
                #[cfg(feature = "opentelemetry")]
                telemetry: settings
                    .telemetry
                    .as_ref()
                    .map(|telemetry| (telemetry.clone(), transport.network())),
            },
        })
    }

    pub(crate) fn handlers(&self) -> &Handlers {
        &self.0.settings.handlers
    }

    pub(crate) fn transport(&self) -> &dyn Transport {
        &*self.0.transport
    }

    /// Returns a receiver of the signal that the client is closed.
    pub(crate) fn closed(&self) -> Closed {
        self.0.closing.watch()
    }

    pub(crate) fn timeout_of(&self, options: &Options) -> Duration {
        options.timeout.unwrap_or(self.0.settings.timeout)
    }

    /// Returns the response cache, without results that were sent to other credentials.
    pub(crate) fn cache_store(&self) -> CacheView<'_> {
        self.cache_of(self.transport().credentials())
    }

    pub(crate) fn cache_of(&self, credentials: u64) -> CacheView<'_> {
        self.0.memory.cache.of(credentials)
    }

    pub(crate) fn cache_capacity(&self) -> Capacity {
        let Settings { cache, limits, .. } = &self.0.settings;
        Capacity { results: *cache, bytes: limits.cache_bytes }
    }

    /// Returns whether calls of tools may become tasks.
    pub(crate) fn offers_tasks(&self) -> bool {
        let Settings { tasks, handlers, .. } = &self.0.settings;
        *tasks || handlers.capabilities.extensions.contains_key(TaskDialect::Extension.extension())
    }

    /// Returns the dialect of tasks to speak with a modern server.
    pub(crate) fn dialect(&self) -> TaskDialect {
        let Inner { settings, memory, .. } = &*self.0;
        settings.dialect.or_else(|| memory.dialect.get().copied()).unwrap_or_default()
    }

    /// Learns the dialect of tasks of a server from an answer to `server/discover`.
    pub(crate) fn learn(&self, method: &str, result: &Raw) {
        if method == Discover::NAME
            && let Ok(found) = result.to::<DiscoverResult>()
        {
            self.learn_dialect(|name| found.capabilities.extensions.contains_key(name));
        }
    }

    /// Learns the dialect of tasks of a server that refuses a call. Returns whether the call is to be made in it.
    pub(crate) fn learns_from(&self, error: &Error) -> bool {
        let Error::Rejected(refusal) = error else { return false };
        let required = refusal.required_capabilities();
        required.is_some_and(|required| self.learn_dialect(|name| required.extensions.contains_key(name)))
    }

    fn learn_dialect(&self, names: impl Fn(&str) -> bool) -> bool {
        let Inner { settings, memory, .. } = &*self.0;
        let is_open = settings.tasks && settings.dialect.is_none();
        let only = !names(TaskDialect::Extension.extension()) && names(TaskDialect::Sep2322.extension());
        is_open && only && memory.dialect.set(TaskDialect::Sep2322).is_ok()
    }

    /// Declares an extension.
    #[cfg(feature = "oauth")]
    pub(crate) fn declaring(self, extension: &'static str) -> Self {
        self.set_handlers(|handlers| handlers.extension = Some(extension))
    }

    /// Returns the capabilities that a request declares. Tasks and parts are declared where they matter.
    fn declared(&self, method: &str, options: &Options) -> ClientCapabilities {
        let settings = &self.0.settings;
        let mut declared = settings.handlers.declared(options.by_hand);
        let is_about_tasks = method == CallTool::NAME || method.starts_with("tasks/");
        if settings.tasks && (is_about_tasks || options.dialect.is_some()) {
            let dialect = options.dialect.unwrap_or_else(|| self.dialect());
            declared.extensions.entry(dialect.extension().to_owned()).or_default();
        }
        if options.on_part.is_some() {
            declared.extensions.entry(STREAM_EXTENSION.to_owned()).or_default();
        }
        declared
    }

    pub(crate) fn client_limits(&self) -> &ClientLimits {
        &self.0.settings.limits
    }

    /// Returns the tools as they were listed, without those that were listed to other credentials.
    pub(crate) fn tools(&self) -> ToolsView<'_> {
        self.tools_of(self.transport().credentials())
    }

    pub(crate) fn tools_of(&self, credentials: u64) -> ToolsView<'_> {
        self.0.memory.tools.of(credentials)
    }
}

#[cfg(feature = "opentelemetry")]
impl Client {
    /// Begins the span of a request, and returns the context that it is sent in.
    pub(crate) fn begin_span(&self, request: &Request<'_>, options: &mut Options) -> Context {
        let telemetry = self.0.settings.telemetry.as_ref();
        let network = || self.transport().network();
        options.span =
            telemetry.and_then(|telemetry| telemetry.call(request.method, request.target(), &network()));
        options.span.as_ref().map_or_else(Context::current, |span| span.context())
    }

    /// Ends the span of a request with its answer, or with an acknowledgment.
    pub(crate) fn end_span(&self, options: &mut Options, answer: Result<Option<&Raw>, &Error>) {
        if let Some(mut span) = options.span.take() {
            let version = self.protocol_version().unwrap_or(ProtocolVersion::LATEST);
            span.end(answer, version, &self.transport().network());
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("timeout", &self.0.settings.timeout).finish_non_exhaustive()
    }
}
