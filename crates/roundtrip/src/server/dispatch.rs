//! What each method does.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use roundtrip_core::wire::{
    CallToolRequestParams, CallToolResult, ClientRequest, CompleteRequestParams, CompletionReference,
    ContentBlock, DiscoverResult, ErrorObject, GetPromptRequestParams, JsonObject, PromptsCapability,
    ReadResourceRequestParams, RequestId, RequestMeta, ResourcesCapability, ServerCapabilities, ServerResult,
    SubscriptionFilter, SubscriptionsListenRequestParams, ToolsCapability,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::{Arguments, Call, Peer, Rejection};
use super::endpoint::{Endpoint, SUPPORTED};
use super::handler::{Handler, HandlerFuture};
use super::in_flight::{Source, Work, panicked};
use super::list::{Listed, Listing, Presentation};
use super::reply::Answer;
use super::tool::ToolEntry;
use crate::schema::Check;

impl Endpoint {
    /// Finds what a request wants and gets it ready to run.
    pub(crate) fn prepare(&self, id: &RequestId, request: &ClientRequest<'_>, peer: &Peer) -> (Work, Source) {
        let listings = &self.inner().listings;
        let outcome = match request {
            ClientRequest::CallTool(params) => return self.call_tool(params, peer),
            ClientRequest::GetPrompt(params) => return self.get_prompt(params, peer),
            ClientRequest::ReadResource(params) => return self.read_resource(params, peer),
            ClientRequest::SubscriptionsListen(params) => return self.listen(id, params),
            ClientRequest::Complete(params) => return (self.complete(params), Source::None),
            ClientRequest::Discover(_) => Ok(ServerResult::Discover(self.discover())),
            ClientRequest::ListTools(params) => {
                page(&self.catalog().read().tools, &params.cursor, &listings.tools)
            }
            ClientRequest::ListPrompts(params) => {
                page(&self.catalog().read().prompts, &params.cursor, &listings.prompts)
            }
            ClientRequest::ListResources(params) => {
                page(&self.catalog().read().resources, &params.cursor, &listings.resources)
            }
            ClientRequest::ListResourceTemplates(params) => {
                page(&self.catalog().read().templates, &params.cursor, &listings.templates)
            }
            other => Err(ErrorObject::method_not_found(other.method())),
        };
        (outcome.into(), Source::None)
    }

    fn call_tool(&self, params: &CallToolRequestParams<'_>, peer: &Peer) -> (Work, Source) {
        let Some(tool) = self.catalog().read().tools.get(&params.name).map(Arc::clone) else {
            return (
                ErrorObject::invalid_params(format!("unknown tool: {}", params.name)).into(),
                Source::None,
            );
        };
        let arguments = match checked(&tool.check, params.arguments) {
            Ok(arguments) => arguments,
            Err(problem) => return (Ok(ServerResult::CallTool(mendable(&problem))).into(), Source::None),
        };
        let mut call = self.call(&params.meta, peer, &params.name, arguments);
        let work = match start(&*tool.handler, &mut call, ()) {
            Ok(running) => Work::Tool(match &tool.output {
                Some(Check::Compiled(_)) => check_output(Arc::clone(&tool), running),
                _ => running,
            }),
            Err(Rejection::Arguments(problem)) => Ok(ServerResult::CallTool(mendable(&problem))).into(),
            Err(Rejection::Error(error)) => error.into(),
        };
        (work, call.outbox.into())
    }

    fn get_prompt(&self, params: &GetPromptRequestParams<'_>, peer: &Peer) -> (Work, Source) {
        let Some(prompt) = self.catalog().read().prompts.get(&params.name).map(Arc::clone) else {
            return (
                ErrorObject::invalid_params(format!("unknown prompt: {}", params.name)).into(),
                Source::None,
            );
        };
        let pairs =
            params.arguments.iter().map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(&**value)));
        let mut call = self.call(&params.meta, peer, &params.name, Arguments::Strings(pairs.collect()));
        let work = match start(&*prompt.handler, &mut call, ()) {
            Ok(running) => Work::Prompt(running),
            Err(rejection) => invalid_arguments(rejection).into(),
        };
        (work, call.outbox.into())
    }

    fn read_resource(&self, params: &ReadResourceRequestParams<'_>, peer: &Peer) -> (Work, Source) {
        let uri = &*params.uri;
        let tables = self.catalog().read();
        if let Some(resource) = tables.resources.get(uri).map(Arc::clone) {
            drop(tables);
            let mut call = self.call(&params.meta, peer, uri, Arguments::Strings(Vec::new()));
            let started = start(&*resource.handler, &mut call, resource.at(uri));
            return (
                started.map_or_else(|why| invalid_arguments(why).into(), Work::Resource),
                call.outbox.into(),
            );
        }
        let fitting =
            tables.templates.iter().find(|entry| entry.template.matches(uri).is_some()).map(Arc::clone);
        drop(tables);
        let Some(template) = fitting else {
            return (ErrorObject::resource_not_found(uri).into(), Source::None);
        };
        let variables = template.template.matches(uri).unwrap_or_default();
        let pairs = variables.into_iter().map(|(name, value)| (Cow::Borrowed(name), Cow::Owned(value)));
        let mut call = self.call(&params.meta, peer, uri, Arguments::Strings(pairs.collect()));
        let work = match start(&*template.handler, &mut call, template.at(uri)) {
            Ok(running) => Work::Resource(running),
            // A variable that does not parse means that there is no such resource.
            Err(Rejection::Arguments(_)) => ErrorObject::resource_not_found(uri).into(),
            Err(Rejection::Error(error)) => error.into(),
        };
        (work, call.outbox.into())
    }

    fn call<'a>(
        &'a self,
        meta: &'a RequestMeta<'a>,
        peer: &'a Peer,
        target: &'a str,
        arguments: Arguments<'a>,
    ) -> Call<'a> {
        Call {
            meta,
            peer,
            target,
            arguments,
            state: &self.inner().state,
            catalog: self.catalog(),
            outbox: None,
        }
    }

    fn listen(&self, id: &RequestId, params: &SubscriptionsListenRequestParams<'_>) -> (Work, Source) {
        let honoured = self.honoured(&params.notifications);
        match self.catalog().hub().open(id.clone(), honoured) {
            Ok(subscription) => {
                let subscription = Arc::new(subscription);
                (Work::Listen(Arc::clone(&subscription)), Source::Subscription(subscription))
            }
            Err(error) => (error.into(), Source::None),
        }
    }

    /// The part of a filter that this server can honour.
    fn honoured(&self, wanted: &SubscriptionFilter) -> SubscriptionFilter {
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

    /// What this server can do: what it has handlers for, and what its author declared.
    fn capabilities(&self) -> ServerCapabilities {
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
    cursor: &Option<Cow<'_, str>>,
    shown: &Presentation,
) -> Result<ServerResult, ErrorObject> {
    listing.page(cursor.as_deref(), shown).map(ServerResult::Cached)
}

fn completed(
    running: impl Future<Output = roundtrip_core::wire::CompleteResult> + Send + 'static,
) -> super::hook::OutcomeFuture {
    Box::pin(async move { Ok(ServerResult::Complete(running.await)) })
}

/// Takes a handler's parameters; a panic while doing so is this call's problem alone (Z1).
fn start<R: Answer>(
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
        let result = running.await?;
        if result.is_error == Some(true) {
            return Ok(result);
        }
        let problem = match (&result.structured_content, &tool.output) {
            (None, _) => Some("there is none".to_owned()),
            (Some(structured), Some(check)) => check.problems(&structured.to_value()),
            (Some(_), None) => None,
        };
        match problem {
            None => Ok(result),
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
