//! One call of a legacy client: run as a modern call, with its questions sent to the client (L2, L3).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{
    ClientRequest, ErrorObject, InputRequiredResult, ProtocolVersion, Request, RequestId, ServerResult,
};
use tokio::time::{Instant, sleep};

use super::outstanding::Outstanding;
use super::session::{Session, Sink, Weight, answer};
use super::{question, translate};
use crate::server::{AskError, Delivery, Event, Listens, LiveEvent, LiveQuestions, Outcome, Peer, given_up};

/// Most times that a question is asked again because its answer does not fit, and most rounds of a handler that takes
/// its rounds by hand (L2, L3).
const AGAIN: u32 = 10;
/// First and longest pause before a handler is entered again that asked no question.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// One call of a legacy client.
pub(super) struct Calling {
    session: Arc<Session>,
    id: RequestId,
    method: String,
    params: Params,
    peer: Peer,
    sink: Arc<dyn Sink>,
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
        }
    }

    /// Runs the call to its answer.
    pub(super) async fn run(mut self) -> Vec<u8> {
        let outcome = match self.rounds().await {
            Ok(result) => translate::result(&self.method, &result, self.session.negotiated.version)
                .map_err(|error| ErrorObject::internal(format!("the result does not serialise: {error}"))),
            Err(error) => Err(translate::error(&self.method, error)),
        };
        answer(&self.id, outcome)
    }

    async fn rounds(&mut self) -> Outcome {
        let mut outstanding = Outstanding::new(&self.session, &self.sink);
        let (mut rounds, mut pause, mut waiting) = (0, PAUSES.0, None::<Instant>);
        loop {
            let asks = match self.round(&mut outstanding).await? {
                ServerResult::InputRequired(asks) => asks,
                result => return Ok(result),
            };
            // Questions that the round dropped at its end need no answer.
            outstanding.clear("the answer is no longer needed");
            let InputRequiredResult { input_requests, request_state, .. } = asks;
            let answers = if input_requests.is_empty() {
                if waiting.get_or_insert_with(Instant::now).elapsed() > self.session.settings.answer_within {
                    return given_up(&self.method, "this call has not ended in time".to_owned());
                }
                sleep(pause).await;
                pause = PAUSES.1.min(pause * 2);
                None
            } else {
                (pause, waiting) = (PAUSES.0, None);
                rounds += 1;
                if rounds > AGAIN {
                    return given_up(
                        &self.method,
                        format!("this call has asked {AGAIN} times without ending"),
                    );
                }
                match outstanding.ask_all(input_requests).await {
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

    /// Runs the handler once. It may ask live questions, and waits for their answers without being entered again.
    async fn round(&self, outstanding: &mut Outstanding) -> Outcome {
        let line = Arc::new(LiveQuestions::default());
        let mut call = {
            let text = translate::raw(&self.params)?;
            let request = ClientRequest::decode(&self.method, Some(text.as_ref()))?;
            let questions = match (self.session.can_be_asked, self.peer.listens) {
                (true, Listens::Yes) => Delivery::Live(Arc::clone(&line)),
                (true, Listens::No) => Delivery::Refuse(question::without_stream),
                (false, _) if self.session.negotiated.version < ProtocolVersion::V2025_11_25 => {
                    Delivery::Refuse(question::without_session)
                }
                (false, _) => Delivery::Refuse(question::without_session_but_pages),
            };
            let peer = Peer { questions, ..self.peer.clone() };
            self.session.endpoint.begin_sized(self.id.clone(), &request, &peer, text.get().len())
        };
        let mut asked = HashMap::new();
        let mut rounds = 0;
        loop {
            tokio::select! {
                biased;
                event = call.event() => match event {
                    Event::Notification(message) => self.sink.send(message, Weight::Hint),
                    Event::Response(outcome) => return outcome,
                },
                query = line.query() => match query {
                    LiveEvent::Ask { key, request } => {
                        rounds += u32::from(outstanding.is_empty());
                        if let Some(why) = self.too_often(&key, &mut asked, rounds) {
                            return given_up(&self.method, why);
                        }
                        outstanding.put(&key, *request);
                    }
                    LiveEvent::Withdraw { key } => outstanding.withdraw(&key),
                },
                (key, answer) = outstanding.next() => match answer {
                    Ok(answer) => line.answer(&key, Ok(answer.get())),
                    Err(reason) => line.answer(&key, Err(reason)),
                },
            }
        }
    }

    /// Returns the reason for which a question is not asked again, if there is one.
    fn too_often(&self, key: &str, asked: &mut HashMap<String, u32>, rounds: u32) -> Option<String> {
        let times = asked.entry(key.to_owned()).or_default();
        *times += 1;
        if *times > AGAIN + 1 {
            return Some(format!("`{key}` was asked {} times without an answer that fits", AGAIN + 1));
        }
        let most = self.session.endpoint.inner().flows.max_rounds;
        (rounds > most).then(|| format!("this call has asked {most} times without ending"))
    }
}
