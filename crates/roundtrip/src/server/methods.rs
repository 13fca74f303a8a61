//! The methods of the specification: each is prepared here until its handler can run.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use roundtrip_core::wire::{
    CallToolRequestParams, CallToolResult, ClientRequest, CompleteRequestParams, CompletionReference,
    ContentBlock, DiscoverResult, ErrorObject, GetPromptRequestParams, JsonObject, PromptsCapability,
    ReadResourceRequestParams, RequestId, RequestMeta, ResourcesCapability, ServerCapabilities, ServerResult,
    SubscriptionFilter, SubscriptionsListenRequestParams, ToolsCapability, clip,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::budget::Owner;
use super::endpoint::{Endpoint, SUPPORTED};
use super::handler::call::{Arguments, Call, Rejection};
use super::handler::function::{Handler, HandlerFuture};
use super::handler::reply::{HandlerOutcome, HandlerResult, Reply};
use super::ledger::Recorder;
use super::offer::list::{Listed, Listing, Presentation};
use super::offer::resource::TemplateEntry;
use super::offer::tool::ToolEntry;
use super::outcome::OutcomeFuture;
use super::outcome::panicked;
use super::peer::Peer;
use super::round::{OpenedState, RoundInput};
use super::run::in_flight::Source;
use super::run::runner::{Runner, Work};
use crate::schema::Check;

impl Endpoint {
    /// Finds what a request wants and gets it ready to run. `opened` is its `requestState`, where that had to be waited for.
    pub(crate) fn prepare(
        &self,
        id: &RequestId,
        request: &ClientRequest<'_>,
        peer: &Peer,
        opened: Option<OpenedState>,
    ) -> (Runner, Source) {
        let listings = &self.inner().listings;
        let outcome = match request {
            ClientRequest::CallTool(params) => {
                return or_refused(self.call_tool(params, request, peer, opened));
            }
            ClientRequest::GetPrompt(params) => {
                return or_refused(self.get_prompt(params, request, peer, opened));
            }
            ClientRequest::ReadResource(params) => {
                return or_refused(self.read_resource(params, request, peer, opened));
            }
            ClientRequest::SubscriptionsListen(params) => return self.listen(id, params, peer),
            ClientRequest::Complete(params) => return (self.complete(params).into(), Source::None),
            ClientRequest::Discover(_) => Ok(ServerResult::Discover(self.discover())),
            ClientRequest::ListTools(params) => {
                page(&self.catalog().read().tools, params.cursor.as_deref(), &listings.tools)
            }
            ClientRequest::ListPrompts(params) => {
                page(&self.catalog().read().prompts, params.cursor.as_deref(), &listings.prompts)
            }
            ClientRequest::ListResources(params) => {
                page(&self.catalog().read().resources, params.cursor.as_deref(), &listings.resources)
            }
            ClientRequest::ListResourceTemplates(params) => {
                page(&self.catalog().read().templates, params.cursor.as_deref(), &listings.templates)
            }
            other => Err(ErrorObject::method_not_found(other.method())),
        };
        (Work::from(outcome).into(), Source::None)
    }

    fn call_tool(
        &self,
        params: &CallToolRequestParams<'_>,
        request: &ClientRequest<'_>,
        peer: &Peer,
        opened: Option<OpenedState>,
    ) -> Result<(Runner, Source), ErrorObject> {
        let tool = self.catalog().read().tools.get(&params.name).map(Arc::clone);
        let tool =
            tool.ok_or_else(|| ErrorObject::invalid_params(format!("unknown tool: {}", clip(&params.name))))?;
        let input = self.round_input(request, peer, opened, Some(tool.target))?;
        let arguments = match checked(&tool.check, params.arguments) {
            Ok(arguments) => arguments,
            Err(problem) => {
                let told = Work::from(Ok(ServerResult::CallTool(mendable(&problem))));
                return Ok((told.into(), Source::None));
            }
        };
        let mut call = self.call(&params.meta, peer, arguments, input);
        let work = match begin(&*tool.handler, &mut call, ()) {
            Ok(running) => Work::Tool(match &tool.output {
                Some(Check::Compiled(_)) => check_output(Arc::clone(&tool), running),
                _ => running,
            }),
            Err(Rejection::Arguments(problem)) => Ok(ServerResult::CallTool(mendable(&problem))).into(),
            Err(Rejection::Error(error)) => error.into(),
        };
        call.run(work)
    }

    fn get_prompt(
        &self,
        params: &GetPromptRequestParams<'_>,
        request: &ClientRequest<'_>,
        peer: &Peer,
        opened: Option<OpenedState>,
    ) -> Result<(Runner, Source), ErrorObject> {
        let prompt = self.catalog().read().prompts.get(&params.name).map(Arc::clone);
        let prompt = prompt
            .ok_or_else(|| ErrorObject::invalid_params(format!("unknown prompt: {}", clip(&params.name))))?;
        let input = self.round_input(request, peer, opened, None)?;
        let pairs =
            params.arguments.iter().map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(&**value)));
        let mut call = self.call(&params.meta, peer, Arguments::Strings(pairs.collect()), input);
        let work = match begin(&*prompt.handler, &mut call, ()) {
            Ok(running) => Work::Prompt(running),
            Err(rejection) => invalid_arguments(rejection).into(),
        };
        call.run(work)
    }

    fn read_resource(
        &self,
        params: &ReadResourceRequestParams<'_>,
        request: &ClientRequest<'_>,
        peer: &Peer,
        opened: Option<OpenedState>,
    ) -> Result<(Runner, Source), ErrorObject> {
        let uri = &*params.uri;
        let tables = self.catalog().read();
        let resource = tables.resources.get(uri).map(Arc::clone);
        let fitting = |entry: &&Arc<TemplateEntry>| entry.template.matches(uri).is_some();
        let template = match &resource {
            Some(_) => None,
            None => tables.templates.iter().find(fitting).map(Arc::clone),
        };
        drop(tables);
        let (handler, at, variables) = match (&resource, &template) {
            (Some(resource), _) => (&*resource.handler, resource.at(uri), Vec::new()),
            (None, Some(template)) => {
                (&*template.handler, template.at(uri), template.template.matches(uri).unwrap_or_default())
            }
            (None, None) => return Err(ErrorObject::resource_not_found(uri)),
        };
        let input = self.round_input(request, peer, opened, None)?;
        let pairs = variables.into_iter().map(|(name, value)| (Cow::Borrowed(name), Cow::Owned(value)));
        let mut call = self.call(&params.meta, peer, Arguments::Strings(pairs.collect()), input);
        let work = match begin(handler, &mut call, at) {
            Ok(running) => Work::Resource(running),
            // A variable that does not parse means that there is no such resource.
            Err(Rejection::Arguments(_)) => ErrorObject::resource_not_found(uri).into(),
            Err(Rejection::Error(error)) => error.into(),
        };
        call.run(work)
    }

    fn call<'a>(
        &'a self,
        meta: &'a RequestMeta<'a>,
        peer: &'a Peer,
        arguments: Arguments<'a>,
        start: RoundInput<'a>,
    ) -> Call<'a> {
        let (state, catalog) = (&self.inner().state, self.catalog());
        Call { meta, peer, target: start.target, arguments, state, catalog, outbox: None, start }
    }

    fn listen(
        &self,
        id: &RequestId,
        params: &SubscriptionsListenRequestParams<'_>,
        peer: &Peer,
    ) -> (Runner, Source) {
        let honoured = self.honoured(&params.notifications);
        match self.catalog().hub().open(&Owner::of(peer), Some(id.clone()), honoured) {
            Ok(subscription) => {
                let subscription = Arc::new(subscription);
                (Work::Listen(Arc::clone(&subscription)).into(), Source::Subscription(subscription))
            }
            Err(error) => refused(error),
        }
    }

    /// The part of a filter that this server can honour.
    pub(crate) fn honoured(&self, wanted: &SubscriptionFilter) -> SubscriptionFilter {
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

    fn complete(&self, params: &CompleteRequestParams<'_>) -> Work {
        let tables = self.catalog().read();
        if !tables.completions {
            return ErrorObject::method_not_found("completion/complete").into();
        }
        let completing = match &params.reference {
            CompletionReference::Prompt(prompt) => tables
                .prompts
                .get(&prompt.name)
                .map(|entry| Work::Other(completed(entry.completers.complete(params)))),
            CompletionReference::Resource(template) => match tables.templates.get(&template.uri) {
                Some(entry) => Some(Work::Other(completed(entry.completers.complete(params)))),
                // A plain resource has nothing to complete.
                None => tables
                    .resources
                    .get(&template.uri)
                    .map(|_| Ok(ServerResult::Complete(Default::default())).into()),
            },
        };
        completing.unwrap_or_else(|| {
            ErrorObject::invalid_params("params.ref: no such prompt or resource template").into()
        })
    }

    fn discover(&self) -> DiscoverResult {
        let cache = self.inner().listings.discover;
        DiscoverResult {
            supported_versions: SUPPORTED.iter().map(|version| version.as_str().to_owned()).collect(),
            capabilities: self.capabilities(),
            instructions: self.inner().instructions.clone(),
            ttl_ms: cache.ttl_ms(),
            cache_scope: cache.scope(),
            ..DiscoverResult::default()
        }
    }

    /// Returns the server's capabilities: those it has handlers for, and those its author declared.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        let tables = self.catalog().read();
        let mut capabilities = self.inner().declared.clone();
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

fn page<E: Listed>(
    listing: &Listing<E>,
    cursor: Option<&str>,
    shown: &Presentation,
) -> Result<ServerResult, ErrorObject> {
    listing.page(cursor, shown).map(ServerResult::Cached)
}

fn completed(
    running: impl Future<Output = roundtrip_core::wire::CompleteResult> + Send + 'static,
) -> OutcomeFuture {
    Box::pin(async move { Ok(ServerResult::Complete(running.await)) })
}

pub(super) fn refused(error: ErrorObject) -> (Runner, Source) {
    (Work::from(error).into(), Source::None)
}

fn or_refused(prepared: Result<(Runner, Source), ErrorObject>) -> (Runner, Source) {
    prepared.unwrap_or_else(refused)
}

impl Call<'_> {
    /// Returns the runner of a call whose handler has its parameters, and the source of its notifications.
    fn run(self, work: Work) -> Result<(Runner, Source), ErrorObject> {
        let recorder = Recorder::of(&self, &work)?;
        let runner = Runner::new(work, self.start.flow);
        let runner = match recorder {
            Some(recorder) => recorder.around(runner),
            None => runner,
        };
        Ok((runner, self.outbox.into()))
    }
}

/// Takes a handler's parameters; a panic while doing so is this call's problem alone (Z1).
fn begin<R: HandlerResult>(
    handler: &dyn Handler<R>,
    call: &mut Call<'_>,
    context: R::Context,
) -> Result<HandlerFuture<R>, Rejection> {
    catch_unwind(AssertUnwindSafe(|| handler.start(call, context))).unwrap_or_else(|_| Err(panicked().into()))
}

/// Holds a tool's arguments against its schema, parsing them only where that is needed.
fn checked<'a>(check: &Check, arguments: Option<&'a RawValue>) -> Result<Arguments<'a>, String> {
    match (check, arguments) {
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

/// Arguments that do not fit are the model's to mend, so it is told as a tool error (N4).
fn mendable(problem: &str) -> CallToolResult {
    let text = format!("invalid arguments: {problem}");
    CallToolResult {
        content: vec![ContentBlock::text(text)],
        is_error: Some(true),
        ..CallToolResult::default()
    }
}

fn invalid_arguments(rejection: Rejection) -> ErrorObject {
    match rejection {
        Rejection::Arguments(problem) => ErrorObject::invalid_params(format!("params.arguments: {problem}")),
        Rejection::Error(error) => error,
    }
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
        let problem = match (&result.structured_content, &tool.output) {
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
