//! Tasks among the methods: calls that may become one, requests about them, and handlers that are taken up again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use roundtrip_core::round::{Journal, PinKey};
use roundtrip_core::seal::Digest;
use roundtrip_core::wire::{
    CallTool, CallToolRequestParams, ClientRequest, Era, ErrorObject, ListTasks, Method as _,
    ProtocolVersion, Raw, RequestId, ServerResult, SubscriptionsListenRequestParams, TaskInputResponse,
    TaskPayload, clip, decode_params,
};
use serde_json::value::RawValue;

use super::access::Access;
use super::budget::Owner;
use super::clock::random;
use super::handler::call::Rejection;
use super::hook::Viewer;
use super::limits::too_many_calls;
use super::methods::{Received, checked, refused};
use super::notify::outbox::Outbox;
use super::notify::status::StatusSlot;
use super::offer::entry::ToolEntry;
use super::outcome::{OutcomeFuture, panicked};
use super::peer::{Listens, Peer, Principal};
use super::run::commitment::Commitment;
use super::run::in_flight::Source;
use super::run::runner::{Runner, Work};
use super::started::Started;
use super::task::caller::TaskCaller;
use super::task::dialect::{Dialect, Sep2322, not_so};
use super::task::errors::{declared, undeclared};
use super::task::part_sender::PartSender;
use super::task::promotion::Promotion;
use super::task::request_state::TaskState;
use super::task::resume::{NotResumed, Resume, Resumed};
use super::task::service::TaskService;
use super::tool_work::tool_work;
use super::when::When;
use crate::task::{TaskCall, TaskOwner, TaskRights};

impl Started {
    /// Returns how a call may become a task, if its tool and its client allow it.
    pub(super) fn promotion(
        &self,
        tool: &ToolEntry,
        params: &CallToolRequestParams<'_>,
        peer: &Peer,
    ) -> Result<Option<Box<Promotion>>, ErrorObject> {
        let Some(service) = &self.tasks else { return Ok(None) };
        let Some(when) = tool.own.when else { return no_task(service, params) };
        let dialect = service.sep_2322.dialect(&params.meta);
        let wanted = dialect.map_or(Ok(None), |dialect| dialect.ttl(params.task, service.ttl))?;
        let (Some(dialect), Some(ttl)) = (dialect, wanted) else {
            return match when {
                When::Required => Err(service.sep_2322.needs_task(&params.meta)),
                When::Offered | When::After(_) => Ok(None),
            };
        };
        let (input_responses, request_state, task, stream) = (None, None, None, None);
        let kept = CallToolRequestParams { input_responses, request_state, task, stream, ..params.clone() };
        let params = Raw::of(&kept)
            .map_err(|error| ErrorObject::internal(format!("the request cannot be kept: {error}")))?;
        let size = params.as_ref().get().len();
        let bytes = self.flows.admission.weigh(peer, size).ok_or_else(too_many_calls)?;
        let principal = peer.principal.as_ref().map(|principal| principal.as_str().to_owned());
        let extensions = service.extensions.stored(&peer.extensions)?;
        Ok(Some(Box::new(Promotion {
            service: Arc::clone(service),
            when: dialect.when(when),
            dialect,
            ttl,
            client: self.flows.bound_client(&peer.access),
            tool: kept.name.to_string(),
            kind: tool.own.kinds[0],
            owner: TaskOwner::new(principal.as_deref()),
            account: Owner::of(peer).digest(),
            call: TaskCall { params, principal, rights: peer.access.kept(), extensions },
            bytes,
            status: Arc::default(),
            commitment: Commitment::default(),
        })))
    }

    /// Prepares a request about a task, in the dialect that the request speaks.
    pub(super) fn task_request(
        &self,
        request: &ClientRequest<'_>,
        &Received { id, peer, .. }: &Received<'_>,
    ) -> (Runner, Source) {
        let meta = request.meta();
        let unknown = || refused(ErrorObject::method_not_found(request.method()));
        let Some(service) = &self.tasks else { return unknown() };
        let Some(dialect) = service.sep_2322.dialect(meta) else {
            let era = meta.protocol_version.parse().map(ProtocolVersion::era);
            let is_known = service.sep_2322 != Sep2322::Off || !is_of_sep_2322(request.method());
            return match era {
                Ok(Era::Modern) if is_known => refused(undeclared("this request", &meta.client_capabilities)),
                _ => unknown(),
            };
        };
        service.ensure_works();
        let (parts, source) = match self.wanted_parts(request, id, peer) {
            Ok(Some((outbox, sender))) => (Some(sender), Source::Outbox(outbox)),
            Ok(None) => (None, Source::None),
            Err(error) => return refused(error),
        };
        let work = match dialect {
            Dialect::Extension => {
                extension_request(service, request, TaskCaller::new(peer, &self.catalog), parts)
            }
            Dialect::Sep2322 | Dialect::Experimental => {
                self.bare_request(service, request, peer, (dialect, parts))
            }
        };
        work.map_or_else(unknown, |work| (Work::Other(work).into(), source))
    }

    /// Returns the sender of a task's parts and its queue, if a request wants them.
    fn wanted_parts(
        &self,
        request: &ClientRequest<'_>,
        id: &RequestId,
        peer: &Peer,
    ) -> Result<Option<(Arc<Outbox>, PartSender)>, ErrorObject> {
        let wish = match request {
            ClientRequest::GetTask(params) => params.stream,
            ClientRequest::TaskPayload(params) => params.stream,
            _ => None,
        };
        let from = self.flows.parts_from(wish, request.meta())?;
        let sender = from.map(|from| PartSender::new(id, from, peer.listens));
        Ok(sender.map(|sender| (sender.outbox(), sender)))
    }

    /// Prepares a request of SEP-2322 or of 2025-11-25; `None` if the dialect does not have it.
    fn bare_request(
        &self,
        service: &Arc<TaskService>,
        request: &ClientRequest<'_>,
        peer: &Peer,
        (dialect, parts): (Dialect, Option<PartSender>),
    ) -> Option<OutcomeFuture> {
        let (service, caller) = (Arc::clone(service), TaskCaller::new(peer, &self.catalog));
        let state = || TaskState {
            flows: Arc::clone(&self.flows),
            principal: peer.principal.as_ref().map(|principal| principal.as_str().to_owned()),
            client: peer.access.client(),
        };
        Some(match request {
            ClientRequest::GetTask(params) => {
                Box::pin(service.get_bare(caller, params.task_id.to_string(), dialect, parts))
            }
            ClientRequest::CancelTask(params) => {
                Box::pin(service.cancel_bare(caller, params.task_id.to_string(), dialect))
            }
            ClientRequest::TaskPayload(params) => {
                let answers = params.input_responses.map(ToOwned::to_owned);
                let id = params.task_id.to_string();
                Box::pin(service.payload(caller, id, (dialect, state()), answers, parts))
            }
            ClientRequest::TaskInputResponse(params) if dialect == Dialect::Sep2322 => {
                let (id, responses) = (params.task_id.to_string(), params.input_responses.to_owned());
                let echoed = params.request_state.as_deref().map(str::to_owned);
                Box::pin(service.respond(caller, id, responses, (state(), echoed)))
            }
            // Callers without a principal share their tasks, and may not see each other's ids.
            ClientRequest::ListTasks(params) if peer.principal.is_some() || peer.is_only => {
                let cursor = params.cursor.as_deref().map(str::to_owned);
                Box::pin(service.list(caller, cursor, dialect))
            }
            _ => return None,
        })
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
        let caller = TaskCaller::new(peer, &self.catalog);
        let (hub, account, tag) = (Arc::clone(self.catalog.hub()), Owner::of(peer), id.clone());
        let viewer = Viewer::new(&params.meta, peer);
        let viewer = (!honoured.resource_subscriptions.is_empty()).then(|| viewer.hold());
        let source = Arc::new(OnceLock::new());
        let opened = Arc::clone(&source);
        let listening: OutcomeFuture = Box::pin(async move {
            let mut seen = Vec::new();
            if let Some(tasks) = &tasks {
                tasks.ensure_works();
                seen = tasks.known(&caller, &wanted).await?;
                honoured.task_ids = seen.iter().map(|(id, _)| id.as_str().to_owned()).collect();
            }
            let subscription = Arc::new(hub.open(&account, Some(tag), honoured, viewer)?);
            // Set once: there is one subscription.
            let _ = opened.set(Source::Subscription(Arc::clone(&subscription)));
            // Only now: a change that is announced to nobody ends the watch of its task.
            if let Some(tasks) = &tasks {
                tasks.watch(caller.owner, seen).await;
            }
            Ok(ServerResult::SubscriptionsListen(poll_fn(|cx| subscription.poll_closed(cx)).await))
        });
        (Work::Other(listening).into(), Source::Deferred(source))
    }

    fn resume_tool(
        &self,
        params: &CallToolRequestParams<'_>,
        peer: &Peer,
        task: &Resumed<'_>,
    ) -> Result<(Runner, Arc<StatusSlot>), NotResumed> {
        let tool = self.catalog.read().runs(&params.name, &task.kind).ok_or_else(|| {
            NotResumed::Misfit(format!(
                "it needs the tool `{}` in the version that began it",
                clip(&params.name)
            ))
        })?;
        // The rights that its call had: what the tool needs may have changed since.
        tool.scope.permits(&peer.access).map_err(NotResumed::Failed)?;
        let journal = Journal::from_pieces(task.journal.iter().map(|piece| &**piece))
            .map_err(|error| NotResumed::Misfit(format!("its journal cannot be read: {error}")))?;
        let journal = match journal {
            Some(journal) => journal,
            // Its handler could not ask or take steps when it was stored, and perhaps can now.
            None => Journal::in_pieces(PinKey::new(random().map_err(NotResumed::Failed)?)),
        };
        let flow = (task.record.flow(), task.record.rounds());
        let input = self.flows.kept_input(params.into(), peer, tool.own.target, flow, journal);
        let input = input.map_err(NotResumed::Failed)?;
        let misfit = |problem| NotResumed::Misfit(format!("invalid arguments: {problem}"));
        let arguments = checked(&tool.own.input, params.arguments).map_err(misfit)?;
        let mut call = self.call(&params.meta, peer, arguments, input);
        call.needed = tool.scope.needed();
        let status: Arc<StatusSlot> = Arc::default();
        let (parts, bytes) = task.record.parts();
        status.has_parts(parts, bytes);
        call.status = Some(Arc::clone(&status));
        // A panic of the author's extractor is this task's problem alone (Z1).
        let started = catch_unwind(AssertUnwindSafe(|| tool.handler.start(&mut call, ())));
        let running =
            started.unwrap_or_else(|_| Err(panicked().into())).map_err(|rejection| match rejection {
                Rejection::Arguments(problem) => misfit(problem),
                Rejection::Error(error) => self.not_resumed(error, task),
            })?;
        Ok((Runner::new(tool_work(&tool, running), call.input.flow), status))
    }
}

impl Started {
    /// Returns the reason why a handler does not run whose parameters were refused: its request may have had nothing that the
    /// handler takes now.
    fn not_resumed(&self, error: ErrorObject, task: &Resumed<'_>) -> NotResumed {
        let kept = self.tasks.as_ref().map(|tasks| &tasks.extensions);
        match kept.and_then(|kept| kept.missing(&task.call.extensions)) {
            Some(name) => NotResumed::Misfit(format!("the extension `{name}` is not stored with it")),
            None => NotResumed::Failed(error),
        }
    }
}

impl Resume for Started {
    fn resume(&self, task: &Resumed<'_>) -> Result<(Runner, Arc<StatusSlot>), NotResumed> {
        let call = task.call;
        let params = with_responses(&call.params, &task.record.responses()).map_err(NotResumed::Failed)?;
        let misfit = |error: ErrorObject| NotResumed::Misfit(error.message.into_owned());
        let params: CallToolRequestParams<'_> = decode_params(Some(&params)).map_err(misfit)?;
        let extensions = self.tasks.as_ref().map(|tasks| tasks.extensions.restored(&call.extensions));
        let peer = Peer {
            principal: call.principal.as_deref().map(Principal::new),
            access: restored(call.rights.as_ref())?,
            extensions: extensions.transpose()?.unwrap_or_default(),
            listens: Listens::No,
            ..Peer::default()
        };
        let span = tracing::info_span!("task", method = CallTool::NAME, target = &*params.name);
        span.in_scope(|| self.resume_tool(&params, &peer, task))
    }

    fn kinds(&self) -> Arc<[Digest]> {
        self.catalog.read().task_kinds()
    }

    fn has_tool(&self, name: &str) -> bool {
        self.catalog.read().tools.get(name).is_some()
    }
}

/// Returns the rights of a task's handler: those of the token that its call came with, however long that has expired.
fn restored(rights: Option<&TaskRights>) -> Result<Access, NotResumed> {
    let access = rights.map_or_else(|| Ok(Access::default()), Access::restore);
    access.map_err(|error| {
        tracing::error!(%error, "the rights of a task cannot be read");
        NotResumed::Misfit("the rights of its caller cannot be read".to_owned())
    })
}

/// Returns whether a method is one that the extension does not have.
pub(super) fn is_of_sep_2322(method: &str) -> bool {
    [TaskPayload::NAME, TaskInputResponse::NAME, ListTasks::NAME].contains(&method)
}

/// Refuses a call that asks for a task of a tool that is none, where its dialect has an error for that.
fn no_task(
    service: &TaskService,
    params: &CallToolRequestParams<'_>,
) -> Result<Option<Box<Promotion>>, ErrorObject> {
    match params.task.and_then(|_| service.sep_2322.dialect(&params.meta)) {
        Some(Dialect::Experimental) => Err(not_so("this tool is not called as a task: leave `task` out")),
        _ => Ok(None),
    }
}

/// Prepares a request of the extension; `None` if the extension does not have it.
fn extension_request(
    service: &Arc<TaskService>,
    request: &ClientRequest<'_>,
    caller: TaskCaller,
    parts: Option<PartSender>,
) -> Option<OutcomeFuture> {
    let service = Arc::clone(service);
    Some(match request {
        ClientRequest::GetTask(params) => Box::pin(service.get(caller, params.task_id.to_string(), parts)),
        ClientRequest::UpdateTask(params) => {
            let responses = params.input_responses.to_owned();
            Box::pin(service.update(caller, params.task_id.to_string(), responses))
        }
        ClientRequest::CancelTask(params) => Box::pin(service.cancel(caller, params.task_id.to_string())),
        _ => return None,
    })
}

/// Adds a task's answers to the parameters of its call, as a client that retries does.
fn with_responses<'a>(params: &'a Raw, responses: &[(&str, &Raw)]) -> Result<Cow<'a, RawValue>, ErrorObject> {
    if responses.is_empty() {
        return Ok(Cow::Borrowed(params.as_ref()));
    }
    let responses: BTreeMap<_, _> = responses.iter().copied().collect();
    let text = params.get();
    let Some(open) = text.strip_suffix('}') else { return Err(ErrorObject::internal("internal error")) };
    let responses = serde_json::to_string(&responses).map_err(|error| wrong(&error))?;
    let text = format!("{open},\"inputResponses\":{responses}}}");
    RawValue::from_string(text).map(Cow::Owned).map_err(|error| wrong(&error))
}

fn wrong(error: &serde_json::Error) -> ErrorObject {
    tracing::error!(%error, "the call of a task cannot be read");
    ErrorObject::internal("internal error")
}
