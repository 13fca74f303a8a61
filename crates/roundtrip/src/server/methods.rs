//! The methods of the specification: each is prepared here until its handler can run.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use roundtrip_core::wire::{
    CallToolRequestParams, CallToolResult, ClientRequest, Complete, CompleteRequestParams, CompleteResult,
    CompletionReference, DiscoverResult, ErrorObject, GetPromptRequestParams, JsonObject, Method as _,
    PromptsCapability, ReadResourceRequestParams, ReadResourceResult, RequestId, RequestMeta,
    ResourcesCapability, ServerCapabilities, ServerResult, SubscriptionFilter,
    SubscriptionsListenRequestParams, ToolsCapability, clip,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::budget::Owner;
use super::handler::call::{Arguments, Call, Rejection};
use super::handler::function::{Handler, HandlerFuture};
use super::handler::reply::{HandlerOutcome, HandlerResult, ReadAt, Reply};
use super::ledger::Recorder;
use super::offer::catalog::Tables;
use super::offer::entry::{Definition, ToolEntry};
use super::offer::list::{Listing, Presentation};
use super::outcome::{Outcome, panicked, tool_error};
use super::peer::Peer;
use super::round::{OpenedState, RoundInput};
use super::run::in_flight::Source;
use super::run::runner::{Runner, Work};
use super::started::{SUPPORTED, Started};
use crate::schema::Check;

impl Started {
    /// Finds what a request wants and gets it ready to run. `opened` is its `requestState`, where that had to be waited for.
    pub(super) fn prepare(
        &self,
        id: &RequestId,
        request: &ClientRequest<'_>,
        peer: &Peer,
        opened: Option<OpenedState>,
    ) -> (Runner, Source) {
        let listings = &self.listings;
        let outcome = match request {
            ClientRequest::CallTool(params) => return self.call_tool(params, peer, opened),
            ClientRequest::GetPrompt(params) => return self.get_prompt(params, peer, opened),
            ClientRequest::ReadResource(params) => return self.read_resource(params, peer, opened),
            ClientRequest::SubscriptionsListen(params) => return self.listen(id, params, peer),
            ClientRequest::Complete(params) => return self.complete(params, peer),
            ClientRequest::Discover(_) => Ok(ServerResult::Discover(self.discover())),
            ClientRequest::ListTools(params) => {
                page(&self.catalog.read().tools, params.cursor.as_deref(), &listings.tools)
            }
            ClientRequest::ListPrompts(params) => {
                page(&self.catalog.read().prompts, params.cursor.as_deref(), &listings.prompts)
            }
            ClientRequest::ListResources(params) => {
                page(&self.catalog.read().resources, params.cursor.as_deref(), &listings.resources)
            }
            ClientRequest::ListResourceTemplates(params) => {
                page(&self.catalog.read().templates, params.cursor.as_deref(), &listings.templates)
            }
            other => Err(ErrorObject::method_not_found(other.method())),
        };
        ready(outcome)
    }

    fn call_tool(
        &self,
        params: &CallToolRequestParams<'_>,
        peer: &Peer,
        opened: Option<OpenedState>,
    ) -> (Runner, Source) {
        let Some(tool) = self.catalog.read().tools.get(&params.name).map(Arc::clone) else {
            return refused(ErrorObject::invalid_params(format!("unknown tool: {}", clip(&params.name))));
        };
        let input = match self.flows.round_input(params.into(), peer, opened, Some(tool.own.target)) {
            Ok(input) => input,
            Err(error) => return refused(error),
        };
        let arguments = match checked(&tool.own.input, params.arguments) {
            Ok(arguments) => arguments,
            Err(problem) => return ready(invalid_arguments(&problem)),
        };
        let call = self.call(&params.meta, peer, arguments, input);
        let work = |running| match &tool.own.output {
            Some(Check::Compiled(_)) => Work::Tool(check_output(Arc::clone(&tool), running)),
            _ => Work::Tool(running),
        };
        self.start(call, &*tool.handler, (), work, |problem| invalid_arguments(&problem))
    }

    fn get_prompt(
        &self,
        params: &GetPromptRequestParams<'_>,
        peer: &Peer,
        opened: Option<OpenedState>,
    ) -> (Runner, Source) {
        let Some(prompt) = self.catalog.read().prompts.get(&params.name).map(Arc::clone) else {
            return refused(ErrorObject::invalid_params(format!("unknown prompt: {}", clip(&params.name))));
        };
        let input = match self.flows.round_input(params.into(), peer, opened, None) {
            Ok(input) => input,
            Err(error) => return refused(error),
        };
        let pairs =
            params.arguments.iter().map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(&**value)));
        let call = self.call(&params.meta, peer, Arguments::Strings(pairs.collect()), input);
        self.start(call, &*prompt.handler, (), Work::Prompt, |problem| {
            Err(ErrorObject::invalid_params(format!("params.arguments: {problem}")))
        })
    }

    fn read_resource(
        &self,
        params: &ReadResourceRequestParams<'_>,
        peer: &Peer,
        opened: Option<OpenedState>,
    ) -> (Runner, Source) {
        let uri = &*params.uri;
        let tables = self.catalog.read();
        if let Some(resource) = tables.resources.get(uri).map(Arc::clone) {
            drop(tables);
            let at = ReadAt::new(uri, resource.definition.mime_type.as_ref(), resource.own);
            return self.read(params, peer, opened, &*resource.handler, at, Vec::new());
        }
        let fitting = tables.templates.iter().find_map(|entry| {
            let variables = entry.own.template.matches(uri)?.into_iter();
            let owned = variables.map(|(name, value)| (name.to_owned().into(), value.into()));
            Some((Arc::clone(entry), owned.collect()))
        });
        drop(tables);
        let Some((template, variables)) = fitting else {
            return refused(ErrorObject::resource_not_found(uri));
        };
        let at = ReadAt::new(uri, template.definition.mime_type.as_ref(), template.own.cache);
        self.read(params, peer, opened, &*template.handler, at, variables)
    }

    fn read<'a>(
        &'a self,
        params: &'a ReadResourceRequestParams<'a>,
        peer: &'a Peer,
        opened: Option<OpenedState>,
        handler: &dyn Handler<ReadResourceResult>,
        at: ReadAt,
        variables: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    ) -> (Runner, Source) {
        let input = match self.flows.round_input(params.into(), peer, opened, None) {
            Ok(input) => input,
            Err(error) => return refused(error),
        };
        let call = self.call(&params.meta, peer, Arguments::Strings(variables), input);
        // A variable that does not parse means that there is no such resource.
        self.start(call, handler, at, Work::Resource, |_| Err(ErrorObject::resource_not_found(&params.uri)))
    }

    #[inline]
    fn call<'a>(
        &'a self,
        meta: &'a RequestMeta<'a>,
        peer: &'a Peer,
        arguments: Arguments<'a>,
        input: RoundInput<'a>,
    ) -> Call<'a> {
        Call { meta, peer, target: input.target, arguments, state: &self.state, outbox: None, input }
    }

    /// Takes a handler's parameters from a call, and returns its runner and the source of its notifications: the one path of
    /// the three methods whose handlers may ask. `unfit` is the outcome of arguments that do not fit.
    fn start<R: HandlerResult>(
        &self,
        mut call: Call<'_>,
        handler: &dyn Handler<R>,
        context: R::Context,
        work: impl FnOnce(HandlerFuture<R>) -> Work,
        unfit: impl FnOnce(String) -> Outcome,
    ) -> (Runner, Source) {
        let work = take(&mut call, handler, context, work, unfit);
        call.input.remember_sent(call.outbox.as_ref());
        let recorder = match &self.ledger {
            None => None,
            Some(ledger) => match Recorder::of(ledger, &call, &work) {
                Ok(recorder) => recorder,
                Err(error) => return refused(error),
            },
        };
        let runner = Runner::new(work, call.input.flow);
        let runner = match recorder {
            Some(recorder) => recorder.around(runner),
            None => runner,
        };
        (runner, call.outbox.into())
    }

    fn listen(
        &self,
        id: &RequestId,
        params: &SubscriptionsListenRequestParams<'_>,
        peer: &Peer,
    ) -> (Runner, Source) {
        let honoured = self.honoured(&params.notifications);
        match self.catalog.hub().open(&Owner::of(peer), Some(id.clone()), honoured) {
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
        }
    }

    fn complete(&self, params: &CompleteRequestParams<'_>, peer: &Peer) -> (Runner, Source) {
        let completer = match completer(&self.catalog.read(), params) {
            Ok(Some(completer)) => completer,
            Ok(None) => return ready(Ok(ServerResult::Complete(CompleteResult::default()))),
            Err(error) => return refused(error),
        };
        let input = self.flows.completion_input(params, peer);
        let mut call = self.call(&params.meta, peer, Arguments::Typed(params), input);
        let work = take(&mut call, &*completer, (), Work::Completer, |problem| {
            Err(ErrorObject::invalid_params(format!("params.context.arguments: {problem}")))
        });
        (work.into(), call.outbox.into())
    }

    fn discover(&self) -> DiscoverResult {
        let cache = self.listings.discover;
        DiscoverResult {
            supported_versions: SUPPORTED.iter().map(|version| version.as_str().to_owned()).collect(),
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
        if tables.completions {
            capabilities.completions = Some(JsonObject::new());
        }
        capabilities
    }
}

fn page<D: Definition>(listing: &Listing<D>, cursor: Option<&str>, shown: &Presentation) -> Outcome {
    listing.page(cursor, shown).map(ServerResult::Cached)
}

/// Returns the completer of an argument, if it has one; an error where nothing of that name has arguments.
fn completer(
    tables: &Tables,
    params: &CompleteRequestParams<'_>,
) -> Result<Option<Arc<dyn Handler<CompleteResult>>>, ErrorObject> {
    if !tables.completions {
        return Err(ErrorObject::method_not_found(Complete::NAME));
    }
    let completers = match &params.reference {
        CompletionReference::Prompt(prompt) => tables.prompts.get(&prompt.name).map(|entry| &entry.own),
        CompletionReference::Resource(template) => match tables.templates.get(&template.uri) {
            Some(entry) => Some(&entry.own.completers),
            // A plain resource has nothing to complete.
            None if tables.resources.get(&template.uri).is_some() => return Ok(None),
            None => None,
        },
    };
    let unknown = || ErrorObject::invalid_params("params.ref: no such prompt or resource template");
    Ok(completers.ok_or_else(unknown)?.of(&params.argument.name))
}

/// Takes a handler's parameters from a call. `unfit` is the outcome of arguments that do not fit.
fn take<R: HandlerResult>(
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

fn ready(outcome: Outcome) -> (Runner, Source) {
    (Work::from(outcome).into(), Source::None)
}

/// Checks a tool's arguments against its schema, parsing them only where that is needed.
fn checked<'a>(check: &Check, arguments: Option<&'a RawValue>) -> Result<Arguments<'a>, String> {
    match (check, arguments) {
        // serde would take an array for a struct.
        (Check::ByType, Some(raw)) if !raw.get().starts_with('{') => Err("arguments are an object".into()),
        (Check::ByType, arguments) => Ok(Arguments::Text(arguments)),
        (Check::Nothing, None) => Ok(Arguments::Text(None)),
        (_, arguments) => {
            let value = arguments
                .map_or_else(|| Ok(Value::Object(Default::default())), |raw| serde_json::from_str(raw.get()));
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

/// A result that breaks the tool's own output schema is the server's failure, and must not reach the client.
fn check_output(
    tool: Arc<ToolEntry>,
    running: HandlerFuture<CallToolResult>,
) -> HandlerFuture<CallToolResult> {
    Box::pin(async move {
        let result = match running.await?.0 {
            HandlerOutcome::Complete(result) => result,
            other => return Ok(Reply(other)),
        };
        if result.is_error == Some(true) {
            return Ok(Reply::complete(result));
        }
        let problem = match (&result.structured_content, &tool.own.output) {
            (None, _) => Some("there is none".to_owned()),
            (Some(structured), Some(check)) => check.problems(&structured.to_value()),
            (Some(_), None) => None,
        };
        match problem {
            None => Ok(Reply::complete(result)),
            Some(problem) => {
                let tool = &tool.definition.name;
                tracing::error!(tool, problem, "structured content breaks the tool's output schema");
                Err(ErrorObject::internal(format!(
                    "the structured content of `{tool}` does not fit its output schema: {problem}"
                )))
            }
        }
    })
}
