//! One call of a legacy client: run as a modern call, with its questions sent to the client (L2, L3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{
    CallTool, ClientRequest, ErrorObject, InputRequests, InputRequiredResult, ListTools, Method as _,
    ProtocolVersion, Raw, Request, RequestId, ServerResult, TaskPayload,
};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::outstanding::{AGAIN, Outstanding};
use super::session::{Session, Sink, Weight, answer};
use super::{question, translate};
use crate::server::{
    AskError, CannotAsk, Delivery, Event, Listens, Outcome, Peer, Reentry, When, given_up, pause_after,
};

/// One call of a legacy client.
pub(super) struct Calling {
    session: Arc<Session>,
    id: RequestId,
    method: String,
    params: Params,
    peer: Peer,
    sink: Arc<dyn Sink>,
    reentry: Arc<Reentry>,
}

impl Calling {
    pub(super) fn new(
        session: &Arc<Session>,
        request: &Request<'_>,
        params: Params,
        peer: &Peer,
        sink: &Arc<dyn Sink>,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            id: request.id.clone(),
            method: request.method.clone().into_owned(),
            params,
            peer: peer.clone(),
            sink: Arc::clone(sink),
            reentry: Arc::default(),
        }
    }

    /// Runs the call to its answer.
    pub(super) async fn run(mut self) -> Vec<u8> {
        let outcome = match self.rounds().await {
            Ok(result) => {
                self.follow(&result).await;
                self.translated(&result)
                    .map_err(|error| ErrorObject::internal(format!("the result does not serialise: {error}")))
            }
            Err(error) => Err(translate::error(&self.method, error)),
        };
        answer(&self.id, outcome)
    }

    fn translated(&self, result: &ServerResult) -> Result<Params, serde_json::Error> {
        let mut members = translate::result(&self.method, result, self.session.negotiated.version)?;
        if self.method == ListTools::NAME && self.session.has_tasks() {
            let catalog = self.session.endpoint.catalog();
            translate::task_support(&mut members, |name| match catalog.read().tools.get(name)?.own.when? {
                When::Required => Some("required"),
                When::Offered | When::After(_) => Some("optional"),
            })?;
        }
        Ok(members)
    }

    /// Tells the client of the changes of a task that the call has become, if there is a stream to do so.
    async fn follow(&self, result: &ServerResult) {
        let (ServerResult::CreateBareTask(created), true) = (result, self.session.has_stream()) else {
            return;
        };
        let id = &created.task.task_id;
        let watches = self.session.subscription().is_ok_and(|subscription| subscription.watch_task(id));
        if let Some(tasks) = self.session.endpoint.inner().tasks.as_ref().filter(|_| watches) {
            tasks.follow(self.peer.principal.as_ref(), id).await;
        }
    }

    /// Returns the task whose result is waited for.
    fn task(&self) -> Option<String> {
        let id = self.params.get("taskId").filter(|_| self.method == TaskPayload::NAME);
        id.and_then(|id| id.to().ok())
    }

    /// Returns whether the call asks for a task, whose questions are not the call's.
    fn asks_for_task(&self) -> bool {
        self.method == CallTool::NAME && self.params.get("task").is_some() && self.session.has_tasks()
    }

    async fn rounds(&mut self) -> Outcome {
        let task = self.task();
        let outstanding = Outstanding::new(&self.session, &self.sink, task.clone());
        let (mut rounds, mut waits, mut waiting) = (0, 0, None::<Instant>);
        loop {
            let asks = match self.round(&outstanding).await? {
                ServerResult::InputRequired(asks) => asks,
                result => return Ok(result),
            };
            self.reentry.set_entered();
            // Questions that the round dropped at its end need no answer. A task has them open for longer.
            if task.is_none() {
                outstanding.clear("the answer is no longer needed");
            }
            let InputRequiredResult { input_requests, request_state, .. } = *asks;
            let answers = if input_requests.is_empty() {
                if waiting.get_or_insert_with(Instant::now).elapsed() > self.session.settings.answer_within {
                    return given_up(&self.method, "this call has not ended in time".to_owned());
                }
                waits = self.pace(waits).await;
                None
            } else {
                (waits, waiting) = (0, None);
                // A task has bounds of its own.
                rounds += u32::from(task.is_none());
                if let (Some(_), Delivery::Refuse { why, .. }) = (&task, self.delivery(&outstanding)) {
                    return Err(ErrorObject::invalid_request(format!("the task asks: {why}")));
                }
                if rounds > AGAIN {
                    return given_up(
                        &self.method,
                        format!("this call has asked {AGAIN} times without ending"),
                    );
                }
                let answered = match &task {
                    Some(id) => self.ask_for_task(&outstanding, id, input_requests).await,
                    None => outstanding.ask_all(input_requests).await,
                };
                match answered {
                    Ok(answers) if answers.is_empty() => None,
                    Ok(answers) => Some(translate::raw(&answers)?),
                    Err((key, reason)) => {
                        return given_up(&self.method, AskError::Unanswered { key, reason }.to_string());
                    }
                }
            };
            self.params.set("inputResponses", answers);
            self.params.set("requestState", request_state.map(|state| translate::raw(&state)).transpose()?);
        }
    }

    /// Asks the open questions of a task, and waits for an answer, or until the task asks for something else: it works meanwhile.
    /// Requests whose questions it has dropped are cancelled.
    async fn ask_for_task(
        &self,
        outstanding: &Outstanding,
        id: &str,
        questions: InputRequests,
    ) -> Result<BTreeMap<String, Raw>, (String, String)> {
        let keys: BTreeSet<String> = questions.iter().map(|(key, _)| key.clone()).collect();
        outstanding.ask_open(questions);
        let Some(tasks) = &self.session.endpoint.inner().tasks else { return Ok(BTreeMap::new()) };
        tokio::select! {
            biased;
            answered = outstanding.answers() => answered,
            open = tasks.asks_other(self.peer.principal.as_ref(), id, &keys) => {
                // At once: the next question may be a long time away.
                outstanding.keep_only(|key| open.contains(key));
                Ok(BTreeMap::new())
            }
        }
    }

    /// Waits until a handler that asked nothing is to be entered again: not at all if its last round was progress. Returns the
    /// number of rounds in a row that were none.
    async fn pace(&self, waits: u32) -> u32 {
        if self.reentry.is_due() {
            // A handler may hand off often without waiting for anything: other calls have their turn.
            yield_now().await;
            return 0;
        }
        let waits = waits.saturating_add(1);
        sleep(pause_after(waits)).await;
        waits
    }

    /// Runs the handler once. It may ask live questions, and waits for their answers without being entered again.
    async fn round(&self, outstanding: &Outstanding) -> Outcome {
        let mut call = {
            let text = translate::raw(&self.params)?;
            let request = ClientRequest::decode(&self.method, Some(text.as_ref()))?;
            let (questions, reentry) = (self.delivery(outstanding), Some(Arc::clone(&self.reentry)));
            let peer = Peer { questions, reentry, ..self.peer.clone() };
            self.session.endpoint.begin_sized(self.id.clone(), &request, &peer, text.get().len())
        };
        loop {
            tokio::select! {
                // The call first: questions that are asked together are sent together, behind earlier notifications.
                biased;
                event = call.event() => match event {
                    Event::Notification(message) => self.sink.send(message, Weight::Hint),
                    Event::Response(outcome) => return outcome,
                },
                why = outstanding.attend() => return given_up(&self.method, why),
            }
        }
    }

    /// Returns the delivery of the handler's questions.
    fn delivery(&self, outstanding: &Outstanding) -> Delivery {
        if self.asks_for_task() {
            return Delivery::EndRound;
        }
        let refuse = |why| Delivery::Refuse { why, error: |_| None };
        match (self.session.can_be_asked, self.peer.listens) {
            (true, Listens::Yes) => Delivery::Live(outstanding.live()),
            (true, Listens::No) => refuse(CannotAsk::NoStream),
            (false, _) if self.session.negotiated.version < ProtocolVersion::V2025_11_25 => {
                refuse(CannotAsk::NoSession)
            }
            (false, _) => Delivery::Refuse { why: CannotAsk::NoSession, error: question::visit_first },
        }
    }
}
