//! Tasks among the methods: calls that may become one, requests about them, and handlers that are taken up again.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use roundtrip_core::round::Journal;
use roundtrip_core::wire::{
    CallTool, CallToolRequestParams, ClientRequest, Era, ErrorObject, Method as _, ProtocolVersion, Raw,
    RequestId, ServerResult, SubscriptionsListenRequestParams, clip, decode_params,
};
use serde_json::value::RawValue;

use super::budget::Owner;
use super::handler::call::Rejection;
use super::hook::Viewer;
use super::methods::{checked, refused, tool_work};
use super::notify::status::StatusSlot;
use super::offer::entry::ToolEntry;
use super::outcome::{OutcomeFuture, panicked};
use super::peer::{Listens, Peer, Principal};
use super::run::in_flight::Source;
use super::run::runner::{Runner, Work};
use super::started::Started;
use super::task::errors::{declared, undeclared};
use super::task::promotion::Promotion;
use super::task::service::Resume;
use super::when::When;
use crate::task::{Record, TaskCall, TaskOwner};

impl Started {
    /// Returns how a call may become a task, if its tool and its client allow it.
    pub(super) fn promotion(
        &self,
        tool: &ToolEntry,
        params: &CallToolRequestParams<'_>,
        peer: &Peer,
    ) -> Result<Option<Box<Promotion>>, ErrorObject> {
        let (Some(when), Some(service)) = (tool.own.when, &self.tasks) else { return Ok(None) };
        let capabilities = &params.meta.client_capabilities;
        if !declared(capabilities) {
            return match when {
                When::Required => Err(undeclared("this tool", capabilities)),
                When::Offered | When::After(_) => Ok(None),
            };
        }
        let kept = CallToolRequestParams { input_responses: None, request_state: None, ..params.clone() };
        let params = Raw::of(&kept)
            .map_err(|error| ErrorObject::internal(format!("the request cannot be kept: {error}")))?;
        let principal = peer.principal.as_ref().map(|principal| principal.as_str().to_owned());
        Ok(Some(Box::new(Promotion {
            service: Arc::clone(service),
            when,
            owner: TaskOwner::new(principal.as_deref()),
            account: Owner::of(peer).digest(),
            call: TaskCall { params, principal },
            status: Arc::default(),
        })))
    }

    /// Prepares a request about a task.
    pub(super) fn task_request(&self, request: &ClientRequest<'_>, peer: &Peer) -> (Runner, Source) {
        let meta = request.meta();
        let era = meta.protocol_version.parse().map(ProtocolVersion::era);
        let Some(service) = self.tasks.as_ref().filter(|_| era == Ok(Era::Modern)) else {
            return refused(ErrorObject::method_not_found(request.method()));
        };
        if !declared(&meta.client_capabilities) {
            return refused(undeclared("this request", &meta.client_capabilities));
        }
        service.ensure_works();
        let owner = TaskOwner::new(peer.principal.as_ref().map(Principal::as_str));
        let service = Arc::clone(service);
        let work: OutcomeFuture = match request {
            ClientRequest::GetTask(params) => Box::pin(service.get(owner, params.task_id.to_string())),
            ClientRequest::UpdateTask(params) => {
                let responses = params.input_responses.to_owned();
                Box::pin(service.update(owner, params.task_id.to_string(), responses))
            }
            ClientRequest::CancelTask(params) => Box::pin(service.cancel(owner, params.task_id.to_string())),
            other => return refused(ErrorObject::method_not_found(other.method())),
        };
        (Work::Other(work).into(), Source::None)
    }

    /// Opens a subscription that watches tasks, once it is known which of them are the caller's.
    pub(super) fn listen_to_tasks(
        &self,
        id: &RequestId,
        params: &SubscriptionsListenRequestParams<'_>,
        peer: &Peer,
    ) -> (Runner, Source) {
        let capabilities = &params.meta.client_capabilities;
        if !declared(capabilities) {
            return refused(undeclared("this request", capabilities));
        }
        let mut honoured = self.honoured(&params.notifications);
        let (wanted, tasks) = (params.notifications.task_ids.clone(), self.tasks.clone());
        let owner = TaskOwner::new(peer.principal.as_ref().map(Principal::as_str));
        let (hub, caller, tag) = (Arc::clone(self.catalog.hub()), Owner::of(peer), id.clone());
        let viewer = Viewer::new(&params.meta, peer);
        let viewer = (!honoured.resource_subscriptions.is_empty()).then(|| viewer.hold());
        let source = Arc::new(OnceLock::new());
        let opened = Arc::clone(&source);
        let listening: OutcomeFuture = Box::pin(async move {
            let mut seen = Vec::new();
            if let Some(tasks) = &tasks {
                tasks.ensure_works();
                seen = tasks.known(owner, &wanted).await?;
                honoured.task_ids = seen.iter().map(|(id, _)| id.as_str().to_owned()).collect();
            }
            let subscription = Arc::new(hub.open(&caller, Some(tag), honoured, viewer)?);
            // Set once: there is one subscription.
            let _ = opened.set(Source::Subscription(Arc::clone(&subscription)));
            // Only now: a change that is announced to nobody ends the watch of its task.
            if let Some(tasks) = &tasks {
                tasks.watch(owner, seen).await;
            }
            Ok(ServerResult::SubscriptionsListen(poll_fn(|cx| subscription.poll_closed(cx)).await))
        });
        (Work::Other(listening).into(), Source::Deferred(source))
    }

    fn resume_tool(
        &self,
        params: &CallToolRequestParams<'_>,
        peer: &Peer,
        record: &Record,
    ) -> Result<(Runner, Arc<StatusSlot>), ErrorObject> {
        let tool = self.catalog.read().tools.get(&params.name).map(Arc::clone);
        let tool =
            tool.ok_or_else(|| ErrorObject::invalid_params(format!("unknown tool: {}", clip(&params.name))))?;
        let journal = match record.journal() {
            [] => None,
            bytes => Some(Journal::decode(bytes).map_err(|error| {
                ErrorObject::internal(format!("the task's journal cannot be read: {error}"))
            })?),
        };
        let flow = (record.flow(), record.rounds());
        let input = self.flows.kept_input(params.into(), peer, tool.own.target, flow, journal)?;
        let misfit = |problem| ErrorObject::invalid_params(format!("invalid arguments: {problem}"));
        let arguments = checked(&tool.own.input, params.arguments).map_err(misfit)?;
        let mut call = self.call(&params.meta, peer, arguments, input);
        let status: Arc<StatusSlot> = Arc::default();
        call.status = Some(Arc::clone(&status));
        // A panic of the author's extractor is this task's problem alone (Z1).
        let started = catch_unwind(AssertUnwindSafe(|| tool.handler.start(&mut call, ())));
        let running =
            started.unwrap_or_else(|_| Err(panicked().into())).map_err(|rejection| match rejection {
                Rejection::Arguments(problem) => misfit(problem),
                Rejection::Error(error) => error,
            })?;
        Ok((Runner::new(tool_work(&tool, running), call.input.flow), status))
    }
}

impl Resume for Started {
    fn resume(&self, record: &Record) -> Result<(Runner, Arc<StatusSlot>), ErrorObject> {
        let Some(call) = record.call() else {
            return Err(ErrorObject::internal("the task has ended"));
        };
        let params = with_responses(&call.params, &record.responses())?;
        let params: CallToolRequestParams<'_> = decode_params(Some(&params))?;
        let peer = Peer {
            principal: call.principal.as_deref().map(Principal::new),
            listens: Listens::No,
            ..Peer::default()
        };
        let span = tracing::info_span!("task", method = CallTool::NAME, target = &*params.name);
        span.in_scope(|| self.resume_tool(&params, &peer, record))
    }
}

/// Adds a task's answers to the parameters of its call, as a client that retries does.
fn with_responses(params: &Raw, responses: &[(&str, &Raw)]) -> Result<Box<RawValue>, ErrorObject> {
    let responses: BTreeMap<_, _> = responses.iter().copied().collect();
    let text = params.get();
    let Some(open) = text.strip_suffix('}') else { return Err(ErrorObject::internal("internal error")) };
    let responses = serde_json::to_string(&responses).map_err(|error| wrong(&error))?;
    RawValue::from_string(format!("{open},\"inputResponses\":{responses}}}")).map_err(|error| wrong(&error))
}

fn wrong(error: &serde_json::Error) -> ErrorObject {
    tracing::error!(%error, "the call of a task cannot be read");
    ErrorObject::internal("internal error")
}
