//! Requests that a server of the handshake eras sends to the client: which are questions, which are allowed, and how
//! they are answered outside of a call.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use roundtrip_core::exchange::{Action, Exchange, Params};
use roundtrip_core::wire::{
    CallTool, ClientCapabilities, ElicitRequestParams, ElicitationCapability, ErrorObject, Implementation,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, METHOD_NOT_FOUND, Raw, Request,
    RequestId, ResultMeta, clip, clip_error, json,
};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::link::{SessionFailure, SessionLink};
use super::questions::calls_under_way;
use super::request::encoded;
use super::session::Session;
use crate::client::{ApiMisuse, ClientLimits, Error, Handlers, PeerMisbehaved, ask, check_url};
use crate::legacy::handshake::PING;

/// Key of a question that has none of its own.
const KEY: &str = "question";
/// Largest request of a server.
const LARGEST: usize = 1024 * 1024;

/// A request of the server, classified.
pub(super) enum ServerRequest {
    /// `ping`.
    Ping,
    /// A question that may be asked.
    Question(InputRequest),
    /// Any other request, and the error to answer it with.
    Refused(ErrorObject),
}

/// Classifies a request of the server, given the client's declared capabilities and limits.
pub(super) fn admit(
    request: &Request<'_>,
    declared: &ClientCapabilities,
    limits: &ClientLimits,
) -> ServerRequest {
    if request.method == PING {
        return ServerRequest::Ping;
    }
    match read(request).and_then(|question| allowed(&question, declared, limits).map(|()| question)) {
        Ok(question) => ServerRequest::Question(question),
        Err(error) => {
            log_refusal(&request.method, &error);
            ServerRequest::Refused(error)
        }
    }
}

/// Logs a request of the server that is refused. No call fails for it, so nobody else tells the user.
fn log_refusal(method: &str, refusal: &ErrorObject) {
    let handler = match method {
        "elicitation/create" => "`on_form` or `on_url`",
        "sampling/createMessage" => "`on_sample`",
        "roots/list" => "`on_roots`",
        other => {
            tracing::debug!(
                method = &*clip(other),
                "refused a request of the server that this client does not know"
            );
            return;
        }
    };
    let reason = if refusal.code == METHOD_NOT_FOUND {
        format!("this client did not declare it: give it {handler}")
    } else {
        clip_error(&refusal.message)
    };
    tracing::warn!(method, reason, "refused a question of the server");
}

/// Refuses a request of the server that is too large to be kept.
pub(super) fn small_enough(request: &Request<'_>, message: &[u8]) -> Result<(), ErrorObject> {
    if message.len() <= LARGEST {
        return Ok(());
    }
    let large = ErrorObject::invalid_params(format!("a request of a server is at most {LARGEST} bytes"));
    log_refusal(&request.method, &large);
    Err(large)
}

/// Returns whether a method of a server is a question to the client.
pub(super) fn is_question(method: &str) -> bool {
    ["elicitation/create", "sampling/createMessage", "roots/list"].contains(&method)
}

fn read(request: &Request<'_>) -> Result<InputRequest, ErrorObject> {
    #[derive(Serialize)]
    struct Shape<'a> {
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a RawValue>,
    }
    if !is_question(&request.method) {
        return Err(ErrorObject::method_not_found(&request.method));
    }
    let shape = Shape { method: &request.method, params: request.params };
    serde_json::to_string(&shape)
        .and_then(|text| json::from_str(&text))
        .map_err(|error| ErrorObject::invalid_params(format!("{}: {}", request.method, clip_error(&error))))
}

/// Checks that the client declared what a question needs. A mode that was not declared is -32602 (elicitation, "Error
/// Handling"); a capability that was not, -32601 (roots, "Error Handling").
fn allowed(
    question: &InputRequest,
    declared: &ClientCapabilities,
    limits: &ClientLimits,
) -> Result<(), ErrorObject> {
    let missing = || Err(ErrorObject::method_not_found(question.method()));
    let undeclared =
        |what: &str| Err(ErrorObject::invalid_params(format!("this client did not declare {what}")));
    match question {
        InputRequest::Elicit(params) => match (&declared.elicitation, params) {
            (None, _) => missing(),
            (Some(modes), ElicitRequestParams::Form(_)) if !ElicitationCapability::allows_form(modes) => {
                undeclared("forms")
            }
            (Some(modes), ElicitRequestParams::Url(_)) if !ElicitationCapability::allows_url(modes) => {
                undeclared("visits to web pages")
            }
            (Some(_), ElicitRequestParams::Url(page)) => {
                check_url(&page.url, limits).map_err(ErrorObject::invalid_params)
            }
            (Some(_), ElicitRequestParams::Form(_)) => Ok(()),
        },
        InputRequest::CreateMessage(params) => match &declared.sampling {
            None => missing(),
            Some(sampling) if !params.tools.is_empty() && sampling.tools.is_none() => {
                undeclared("tools for the model")
            }
            Some(_) => params.check_tool_use().map_err(ErrorObject::invalid_params),
        },
        InputRequest::ListRoots(_) if declared.roots.is_none() => missing(),
        InputRequest::ListRoots(_) => Ok(()),
    }
}

/// Number of questions outside of any call that the handlers are answering, over all sessions of a client.
#[derive(Debug, Clone, Default)]
pub(super) struct Answering(Arc<AtomicUsize>);

/// Place of one such question; given back when dropped.
struct Place(Answering);

impl Answering {
    fn begin(&self, most: usize) -> Option<Place> {
        let more = |answering: usize| (answering < most).then_some(answering + 1);
        let begun = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        begun.ok().map(|_| Place(self.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers a request of the server. A question is answered in a task of its own: people may take longer than a call
/// has time. Beside the `most` that belong to no call, each call under way may have asked one: on a pipe, questions do
/// not say which call they belong to.
pub(super) async fn answer_outside_call<L: SessionLink>(
    session: &Arc<Session<L>>,
    handlers: Option<Arc<Handlers>>,
    most: usize,
    id: &RequestId,
    asked: ServerRequest,
) -> Result<(), SessionFailure> {
    let answer = match (asked, handlers) {
        (ServerRequest::Ping, _) => Ok(Raw::from(json!({}))),
        (ServerRequest::Refused(error), _) => Err(error),
        (ServerRequest::Question(question), None) => {
            Err(refused(&question, ErrorObject::internal("the client is gone")))
        }
        (ServerRequest::Question(question), Some(handlers)) => {
            match session.answering.begin(most.saturating_add(calls_under_way(session))) {
                Some(place) => {
                    tokio::spawn(ask_handlers(Arc::clone(session), handlers, id.clone(), question, place));
                    return Ok(());
                }
                // The caller waits until this is sent, so that a server that floods the client slows itself down.
                None => Err(refused(&question, ErrorObject::internal("too many questions at once"))),
            }
        }
    };
    session.respond(id, answer.as_ref()).await
}

/// Logs the refusal of a question, and returns it.
fn refused(question: &InputRequest, refusal: ErrorObject) -> ErrorObject {
    log_refusal(question.method(), &refusal);
    refusal
}

/// Asks the handlers, unless the client is closed first.
async fn ask_handlers<L: SessionLink>(
    session: Arc<Session<L>>,
    handlers: Arc<Handlers>,
    id: RequestId,
    question: InputRequest,
    place: Place,
) {
    let answering = async {
        let answering = caught(answer_of(&handlers, question, Arc::clone(&session.name)));
        let answer = answering.await.map_err(|error| {
            // The details are not for the server.
            tracing::warn!(%error, "a question of the server was left without an answer");
            ErrorObject::internal("the client could not answer this")
        });
        session.respond(&id, answer.as_ref()).await
    };
    // If it cannot be sent, the session is gone.
    let _ = session.closed.unless(answering).await;
    drop(place);
}

/// Puts one question to the handlers, and checks their answer against it.
async fn answer_of(
    handlers: &Handlers,
    request: InputRequest,
    server: Arc<Implementation>,
) -> Result<Raw, Error> {
    let method = request.method();
    let asks = InputRequiredResult {
        input_requests: InputRequests::from([(KEY.to_owned(), request)]),
        meta: ResultMeta { server_info: Some(server), ..ResultMeta::default() },
        ..InputRequiredResult::default()
    };
    // The same machine as for a call, so that answers are checked and filled in the same way.
    let exchange = Exchange::<CallTool>::new(Params::default());
    let step = exchange.reply(encoded(Raw::of(&asks))?.as_ref(), Duration::ZERO)?;
    let Action::Ask(pending) = step else {
        return Err(PeerMisbehaved::MalformedMessage(format!("`{method}` asks nothing")).into());
    };
    let answered = ask(handlers, pending, method).await?.resume()?;
    let answers = answered.params().get("inputResponses").and_then(|answers| answers.to().ok());
    answers
        .and_then(|mut answers: InputResponses| answers.remove(KEY))
        .ok_or_else(|| ApiMisuse::Unanswered { keys: vec![method.to_owned()] }.into())
}

/// Turns a panic of a handler into an error: there is no caller to see it, and the server waits for an answer.
async fn caught<T>(answering: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let mut answering = pin!(answering);
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(Error::handler("a handler panicked"))))
    })
    .await
}
