//! The methods of the specification: each is prepared here until its handler can run.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use roundtrip_core::seal::Digest;
use roundtrip_core::wire::{
    CallToolRequestParams, ClientRequest, CompleteRequestParams, CompleteResult, DiscoverResult, ErrorObject,
    GetPromptRequestParams, JsonObject, PaginatedRequestParams, PromptsCapability, ReadResourceRequestParams,
    ReadResourceResult, RequestId, RequestMeta, ResourcesCapability, STREAM_EXTENSION, ServerCapabilities,
    ServerResult, SubscriptionFilter, SubscriptionsListenRequestParams, ToolsCapability, json,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::budget::Owner;
use super::handler::call::{Arguments, Call, Rejection};
use super::handler::function::{Handler, HandlerFuture};
use super::handler::reply::{HandlerResult, ReadAt};
use super::handler::resolving::Resolvers;
use super::hook::{Place, Scope, Viewer};
use super::ledger::Recorder;
use super::offer::catalog::Tables;
use super::offer::completer::Completers;
use super::offer::entry::{Definition, PromptEntry, ToolEntry};
use super::offer::list::{Listing, Presentation};
use super::outcome::{Outcome, panicked, tool_error};
use super::peer::Peer;
use super::round::{AskingRequest, OpenedState, RoundInput};
use super::run::in_flight::Source;
use super::run::runner::{Runner, Work};
use super::started::Started;
use super::target::{Target, Variables};
use super::task::promotion::Promotion;
use super::tool_work::tool_work;
use crate::schema::Check;

/// A request on its way to its handler: its id, its peer, and its `requestState`.
pub(super) struct Received<'a> {
    pub(super) id: &'a RequestId,
    pub(super) peer: &'a Peer,
    /// Its `requestState`, where that had to be waited for.
    pub(super) opened: Option<OpenedState>,
    /// The place for its place in its flow, for hooks.
    pub(super) place: Option<&'a OnceLock<Place>>,
    /// The way in which it may become a task, if it may. Boxed, because few calls have it.
    pub(super) promotion: Option<Box<Promotion>>,
}

impl Received<'_> {
    /// Lets hooks know the flow and the round, once there is a flow.
    fn tell(&self, input: &RoundInput<'_>) {
        if let Some(slot) = self.place
            && let Some(place) = input.place()
        {
            // A token that was opened and the handler's round say the same.
            let _ = slot.set(place);
        }
    }
}

impl Started {
    /// Gets a request ready to run that is for `target`.
    pub(super) fn prepare(
        &self,
        request: &ClientRequest<'_>,
        received: Received<'_>,
        target: Target,
    ) -> (Runner, Source) {
        let listings = &self.listings;
        let outcome = match (request, target) {
            (ClientRequest::CallTool(params), Target::Tool(tool)) => {
                return self.call_tool(params, received, &tool);
            }
            (
                ClientRequest::GetTask(_)
                | ClientRequest::UpdateTask(_)
                | ClientRequest::CancelTask(_)
                | ClientRequest::TaskPayload(_)
                | ClientRequest::TaskInputResponse(_)
                | ClientRequest::ListTasks(_),
                _,
            ) => return self.task_request(request, &received),
            (ClientRequest::GetPrompt(params), Target::Prompt(prompt)) => {
                return self.get_prompt(params, received, &prompt);
            }
            (ClientRequest::ReadResource(params), Target::Resource(resource)) => {
                let cache = resource.scope.narrowed(resource.own);
                let at = ReadAt::new(&params.uri, resource.definition.mime_type.as_ref(), cache);
                return self.read(params, received, (&*resource.handler, &resource.scope), at, Vec::new());
            }
            (ClientRequest::ReadResource(params), Target::Template(template, variables)) => {
                let cache = template.scope.narrowed(template.own.cache);
                let at = ReadAt::new(&params.uri, template.definition.mime_type.as_ref(), cache);
                return self.read(params, received, (&*template.handler, &template.scope), at, variables);
            }
            (ClientRequest::Complete(params), Target::Prompt(prompt)) => {
                return self.complete(params, &received, &prompt.own);
            }
            (ClientRequest::Complete(params), Target::Template(template, _)) => {
                return self.complete(params, &received, &template.own.completers);
            }
            // A plain resource has no arguments.
            (ClientRequest::Complete(_), _) => return nothing_to_suggest(),
            (ClientRequest::SubscriptionsListen(params), _) => return self.listen(params, &received),
            (ClientRequest::Discover(_), _) => Ok(ServerResult::Discover(Box::new(self.discover()))),
            (ClientRequest::ListTools(params), _) => {
                self.list(|tables| &tables.tools, params, &listings.tools, &received)
            }
            (ClientRequest::ListPrompts(params), _) => {
                self.list(|tables| &tables.prompts, params, &listings.prompts, &received)
            }
            (ClientRequest::ListResources(params), _) => {
                self.list(|tables| &tables.resources, params, &listings.resources, &received)
            }
            (ClientRequest::ListResourceTemplates(params), _) => {
                self.list(|tables| &tables.templates, params, &listings.templates, &received)
            }
            (other, _) => Err(ErrorObject::method_not_found(other.method())),
        };
        ready(outcome)
    }

    fn call_tool(
        &self,
        params: &CallToolRequestParams<'_>,
        mut received: Received<'_>,
        tool: &Arc<ToolEntry>,
    ) -> (Runner, Source) {
        let input = match self.input(params.into(), &mut received, Some(tool.own.target)) {
            Ok(input) => input,
            Err(error) => return refused(error),
        };
        let arguments = match checked(&tool.own.input, params.arguments) {
            Ok(arguments) => arguments,
            Err(problem) => return ready(invalid_arguments(&problem)),
        };
        received.promotion = match self.promotion(tool, params, received.peer) {
            Ok(promotion) => promotion,
            Err(error) => return refused(error),
        };
        let stream = match self.flows.wanted_in_parts(params, received.id) {
            Ok(stream) => stream,
            Err(error) => return refused(error),
        };
        let mut call = self.call(&params.meta, received.peer, arguments, input);
        call.needed = tool.scope.needed();
        call.stream = stream;
        call.status = received.promotion.as_ref().map(|promotion| Arc::clone(&promotion.status));
        let work = |running| tool_work(tool, running);
        self.start(call, received, &*tool.handler, (), work, |problem| invalid_arguments(&problem))
    }

    fn get_prompt(
        &self,
        params: &GetPromptRequestParams<'_>,
        mut received: Received<'_>,
        prompt: &PromptEntry,
    ) -> (Runner, Source) {
        let input = match self.input(params.into(), &mut received, None) {
            Ok(input) => input,
            Err(error) => return refused(error),
        };
        let pairs =
            params.arguments.iter().map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(&**value)));
        let mut call = self.call(&params.meta, received.peer, Arguments::Strings(pairs.collect()), input);
        call.needed = prompt.scope.needed();
        self.start(call, received, &*prompt.handler, (), Work::Prompt, |problem| {
            Err(ErrorObject::invalid_params(format!("params.arguments: {problem}")))
        })
    }

    fn read(
        &self,
        params: &ReadResourceRequestParams<'_>,
        mut received: Received<'_>,
        (handler, scope): (&dyn Handler<ReadResourceResult>, &Scope),
        at: ReadAt,
        variables: Variables,
    ) -> (Runner, Source) {
        let input = match self.input(params.into(), &mut received, None) {
            Ok(input) => input,
            Err(error) => return refused(error),
        };
        let mut call = self.call(&params.meta, received.peer, Arguments::Strings(variables), input);
        call.needed = scope.needed();
        // A variable that does not parse means that there is no such resource.
        self.start(call, received, handler, at, Work::Resource, |_| {
            Err(ErrorObject::resource_not_found(&params.uri))
        })
    }

    #[expect(
        clippy::inline_always,
        reason = "the inputs are large, and would be moved once more in every call"
    )]
    #[inline(always)]
    fn input<'a, 'r: 'a>(
        &'a self,
        asking: AskingRequest<'a>,
        received: &mut Received<'r>,
        known: Option<Digest>,
    ) -> Result<RoundInput<'a>, ErrorObject> {
        let opened = received.opened.take();
        let input = self.flows.round_input(asking, received.peer, opened, known)?;
        received.tell(&input);
        Ok(input)
    }

    #[inline]
    pub(super) fn call<'a>(
        &'a self,
        meta: &'a RequestMeta<'a>,
        peer: &'a Peer,
        arguments: Arguments<'a>,
        input: RoundInput<'a>,
    ) -> Call<'a> {
        let (target, resolvers) = (input.target, Resolvers::default());
        let (state, outbox, status, stream, needed) = (&self.state, None, None, None, None);
        Call { meta, peer, needed, target, arguments, state, outbox, status, stream, input, resolvers }
    }

    /// Takes a handler's parameters from a call, and returns its runner and the source of its notifications: the one path of
    /// the three methods whose handlers may ask. `unfit` is the outcome of arguments that do not fit.
    fn start<R: HandlerResult>(
        &self,
        mut call: Call<'_>,
        received: Received<'_>,
        handler: &dyn Handler<R>,
        context: R::Context,
        work: impl FnOnce(HandlerFuture<R>) -> Work,
        unfit: impl FnOnce(String) -> Outcome,
    ) -> (Runner, Source) {
        let work = take(&mut call, handler, context, work, unfit);
        received.tell(&call.input);
        call.input.remember_sent(call.outbox.as_ref());
        let recorder = match &self.ledger {
            None => None,
            Some(ledger) => match Recorder::of(ledger, &call, &work) {
                Ok(recorder) => recorder,
                Err(error) => return refused(error),
            },
        };
        let runs = !matches!(work, Work::Ready(_));
        let runner = Runner::new(work, call.input.flow);
        let promotion = received.promotion.filter(|_| runs);
        let commitment = promotion.as_ref().map(|promotion| promotion.commitment.clone());
        let runner = match promotion {
            Some(promotion) => promotion.around(runner),
            None => runner,
        };
        let runner = match recorder {
            Some(recorder) => recorder.around(runner, commitment.unwrap_or_default()),
            None => runner,
        };
        (runner, call.outbox.into())
    }

    fn listen(
        &self,
        params: &SubscriptionsListenRequestParams<'_>,
        &Received { id, peer, .. }: &Received<'_>,
    ) -> (Runner, Source) {
        if !params.notifications.task_ids.is_empty() {
            return self.listen_to_tasks(id, params, peer);
        }
        let honoured = self.honoured(&params.notifications);
        let viewer = Viewer::new(&params.meta, peer);
        let viewer = (!honoured.resource_subscriptions.is_empty()).then(|| viewer.hold());
        match self.catalog.hub().open(&Owner::of(peer), Some(id.clone()), honoured, viewer) {
            Ok(subscription) => {
                let subscription = Arc::new(subscription);
                (Work::Listen(Arc::clone(&subscription)).into(), Source::Subscription(subscription))
            }
            Err(error) => refused(error),
        }
    }

    /// The part of a filter that this server can honour.
    pub(super) fn honoured(&self, wanted: &SubscriptionFilter) -> SubscriptionFilter {
        let can = self.capabilities();
        let both = |wanted: Option<bool>, can: bool| wanted.filter(|wanted| *wanted && can);
        SubscriptionFilter {
            tools_list_changed: both(wanted.tools_list_changed, can.tools.is_some()),
            prompts_list_changed: both(wanted.prompts_list_changed, can.prompts.is_some()),
            resources_list_changed: both(wanted.resources_list_changed, can.resources.is_some()),
            resource_subscriptions: match can.resources {
                Some(_) => wanted.resource_subscriptions.clone(),
                None => Vec::new(),
            },
            task_ids: Vec::new(),
        }
    }

    /// Runs the completer of an argument, if it has one. A completion has no rounds.
    fn complete(
        &self,
        params: &CompleteRequestParams<'_>,
        received: &Received<'_>,
        completers: &Completers,
    ) -> (Runner, Source) {
        let Some(completer) = completers.of(&params.argument.name) else { return nothing_to_suggest() };
        let input = self.flows.completion_input(params, received.peer);
        let mut call = self.call(&params.meta, received.peer, Arguments::Typed(params), input);
        let work = take(&mut call, completer, (), Work::Completer, |problem| {
            Err(ErrorObject::invalid_params(format!("params.context.arguments: {problem}")))
        });
        (work.into(), call.outbox.into())
    }

    /// Returns a page of a list, as far as the caller sees it.
    fn list<D: Definition>(
        &self,
        listing: fn(&Tables) -> &Listing<D>,
        params: &PaginatedRequestParams<'_>,
        shown: &Presentation,
        received: &Received<'_>,
    ) -> Outcome {
        let tables = self.catalog.read();
        let listing = listing(&tables);
        let cursor = params.cursor.as_deref();
        if !listing.depends_on(&received.peer.access) {
            return listing.page(cursor, shown).map(ServerResult::Cached);
        }
        let tail = listing.tail(cursor)?;
        // Rules are the author's code, and may use the catalog.
        drop(tables);
        let viewer = Viewer::new(&params.meta, received.peer);
        tail.page(shown, |entry| entry.scope.lists(&viewer)).map(ServerResult::Cached)
    }

    fn discover(&self) -> DiscoverResult {
        let cache = self.listings.discover;
        DiscoverResult {
            supported_versions: self.spoken().iter().map(|version| version.as_str().to_owned()).collect(),
            capabilities: self.capabilities(),
            instructions: self.instructions.clone(),
            ttl_ms: cache.ttl_ms(),
            cache_scope: cache.scope(),
            ..DiscoverResult::default()
        }
    }

    /// Returns the server's capabilities: those it has handlers for, and those its author declared.
    pub(super) fn capabilities(&self) -> ServerCapabilities {
        let tables = self.catalog.read();
        let mut capabilities = self.declared.clone();
        if !tables.tools.is_empty() {
            capabilities.tools = Some(ToolsCapability { list_changed: Some(true) });
        }
        if !tables.prompts.is_empty() {
            capabilities.prompts = Some(PromptsCapability { list_changed: Some(true) });
        }
        if !(tables.resources.is_empty() && tables.templates.is_empty()) {
            capabilities.resources =
                Some(ResourcesCapability { subscribe: Some(true), list_changed: Some(true) });
        }
        if tables.logging {
            capabilities.logging = Some(JsonObject::new());
        }
        if tables.streams {
            capabilities.extensions.entry(STREAM_EXTENSION.to_owned()).or_default();
        }
        if tables.completions {
            capabilities.completions = Some(JsonObject::new());
        }
        capabilities
    }
}

/// Takes a handler's parameters from a call. `unfit` is the outcome of arguments that do not fit.
pub(super) fn take<R: HandlerResult>(
    call: &mut Call<'_>,
    handler: &dyn Handler<R>,
    context: R::Context,
    work: impl FnOnce(HandlerFuture<R>) -> Work,
    unfit: impl FnOnce(String) -> Outcome,
) -> Work {
    // A panic of the author's extractor is this call's problem alone (Z1).
    let taken = catch_unwind(AssertUnwindSafe(|| handler.start(call, context)));
    match taken.unwrap_or_else(|_| Err(panicked().into())) {
        Ok(running) => work(running),
        Err(Rejection::Arguments(problem)) => unfit(problem).into(),
        Err(Rejection::Error(error)) => error.into(),
    }
}

pub(super) fn refused(error: ErrorObject) -> (Runner, Source) {
    ready(Err(error))
}

fn nothing_to_suggest() -> (Runner, Source) {
    ready(Ok(ServerResult::Complete(CompleteResult::default())))
}

fn ready(outcome: Outcome) -> (Runner, Source) {
    (Work::from(outcome).into(), Source::None)
}

/// Checks a tool's arguments against its schema, parsing them only where that is needed.
pub(super) fn checked<'a>(check: &Check, arguments: Option<&'a RawValue>) -> Result<Arguments<'a>, String> {
    match (check, arguments) {
        // serde would take an array for a struct.
        (Check::ByType, Some(raw)) if !raw.get().starts_with('{') => Err("arguments are an object".into()),
        (Check::ByType, arguments) => Ok(Arguments::Text(arguments)),
        (Check::Nothing, None) => Ok(Arguments::Text(None)),
        (_, arguments) => {
            let value = arguments
                .map_or_else(|| Ok(Value::Object(Default::default())), |raw| json::from_str(raw.get()));
            let value: Value = value.map_err(|error| error.to_string())?;
            match (check, &value) {
                (Check::Nothing, Value::Object(members)) if members.is_empty() => Ok(Arguments::Value(value)),
                (Check::Nothing, _) => Err("this tool takes no arguments".into()),
                _ => check.problems(&value).map_or(Ok(Arguments::Value(value)), Err),
            }
        }
    }
}

/// Returns the tool error for arguments that do not fit, which the model can correct (N4).
fn invalid_arguments(problem: &str) -> Outcome {
    tool_error(format!("invalid arguments: {problem}"))
}
