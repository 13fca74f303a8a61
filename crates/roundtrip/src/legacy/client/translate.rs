//! Translates the outcome of a legacy call into modern results.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::wire::{
    ClientCapabilities, Discover, DiscoverResult, ElicitRequestParams, ErrorObject, INVALID_PARAMS,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, METHOD_NOT_FOUND, Message, Method as _,
    NotificationMethod as _, ProgressNotification, Raw, RequestId, ResultMeta, SubscriptionsListen,
    encode_error, encode_result, json,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::call::{Event, OpenCall};
use super::link::{SessionFailure, SessionLink};
use super::listen::listen;
use super::open_calls::{AGAIN, OpenCalls};
use super::request::{Request, encoded};
use super::session::Session;
use super::tasks;
use super::unfold::unfold;
use crate::client::{Error, Incoming, ServerRejection};
use crate::legacy::handshake::{RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED};

/// Serves a request in a session.
pub(super) async fn serve<L: SessionLink>(
    open_calls: &Arc<OpenCalls<L>>,
    session: &Arc<Session<L>>,
    request: &Request,
) -> Result<Incoming, SessionFailure> {
    match request.method {
        Discover::NAME => Ok(alone(discovered(session, &request.id)?)),
        SubscriptionsListen::NAME => listen(session, request).await,
        _ => {
            if let Some(result) = tasks::serve(open_calls, session, request).await? {
                return Ok(alone(result_of(&request.id, &result)?));
            }
            let call = match tasks::as_task(session, request).await? {
                Some(request) => session.call(&request).await?,
                None => session.call(request).await?,
            };
            Ok(leg(open_calls, call, request.id.clone()))
        }
    }
}

/// Sends answers to an open call, and goes on with it.
pub(super) async fn go_on<L: SessionLink>(
    open_calls: &Arc<OpenCalls<L>>,
    state: &str,
    id: RequestId,
    answers: InputResponses,
) -> Result<Incoming, Error> {
    let mut call = open_calls.take(state).await?;
    call.answer(answers).await?;
    Ok(leg(open_calls, call, id))
}

/// Returns whether a `requestState` only says that the call is to be made again. Fails if the user did not accept the
/// pages the server requires first.
pub(super) fn calls_again(state: &str, answers: &InputResponses) -> Result<bool, Error> {
    if state != AGAIN {
        return Ok(false);
    }
    if answers.values().all(|answer| answer.to_value()["action"] == "accept") {
        return Ok(true);
    }
    let why = "the server wants a web page to be visited first, and the user did not agree to that";
    Err(Error::Rejected(ServerRejection::Declined(ErrorObject::new(URL_ELICITATION_REQUIRED, why))))
}

/// Returns the messages of one round of a call: up to its answer, or to its next questions.
fn leg<L: SessionLink>(open_calls: &Arc<OpenCalls<L>>, call: OpenCall<L>, id: RequestId) -> Incoming {
    unfold((Arc::clone(open_calls), call, id), |(open_calls, mut call, id)| async move {
        let message = match call.event().await {
            Ok(Event::Notification(message)) => {
                let message = in_the_name_of(&id, call.id(), message);
                return Some((Ok(message), Some((open_calls, call, id))));
            }
            Ok(Event::Answer(answer)) => answered(&call, &id, answer.as_ref()),
            Ok(Event::Asks(questions)) => {
                let meta = named(call.session());
                open_calls.keep(call).and_then(|handle| asks(&id, questions, handle, meta))
            }
            Err(error) => Err(error),
        };
        Some((message, None))
    })
}

fn answered<L: SessionLink>(
    call: &OpenCall<L>,
    id: &RequestId,
    answer: Result<&Raw, &ErrorObject>,
) -> Result<Bytes, Error> {
    match answer {
        Ok(result) if call.is_task => {
            let created = tasks::created(result)?;
            result_of(id, created.as_ref().unwrap_or(result))
        }
        Ok(result) => result_of(id, result),
        Err(error) => {
            if error.code == METHOD_NOT_FOUND {
                call.session().forget_task_tools();
            }
            if let Some(pages) = may_visit(call, error) {
                return asks(id, pages, AGAIN.to_owned(), named(call.session()));
            }
            let mut message = Vec::new();
            encode_error(&mut message, Some(id), &modern(error));
            Ok(message.into())
        }
    }
}

/// Maps error codes of the handshake eras to modern ones.
fn modern(error: &ErrorObject) -> ErrorObject {
    let code = if error.code == RESOURCE_NOT_FOUND { INVALID_PARAMS } else { error.code };
    ErrorObject { code, ..error.clone() }
}

/// Returns the pages that an error requires to be visited, if the caller can visit pages.
fn may_visit<L: SessionLink>(call: &OpenCall<L>, error: &ErrorObject) -> Option<InputRequests> {
    let elicitation = call.session().askable(call.hello()).elicitation;
    let can = call.may_ask() && elicitation.is_some_and(|modes| modes.allows_url());
    if can && error.code == URL_ELICITATION_REQUIRED {
        pages(error, call.hello().caller.limits.questions)
    } else {
        None
    }
}

fn asks(
    id: &RequestId,
    input_requests: InputRequests,
    state: String,
    meta: ResultMeta,
) -> Result<Bytes, Error> {
    let asks = InputRequiredResult {
        input_requests,
        request_state: Some(state),
        meta,
        ..InputRequiredResult::default()
    };
    result_of(id, &asks)
}

fn named<L: SessionLink>(session: &Session<L>) -> ResultMeta {
    ResultMeta { server_info: Some(Arc::clone(&session.name)), ..ResultMeta::default() }
}

/// Answers `server/discover` from the result of `initialize`.
fn discovered<L: SessionLink>(session: &Session<L>, id: &RequestId) -> Result<Bytes, Error> {
    let result = DiscoverResult {
        supported_versions: vec![session.version.to_string()],
        capabilities: session.server.capabilities.clone(),
        instructions: session.server.instructions.clone(),
        meta: named(session),
        ..DiscoverResult::default()
    };
    result_of(id, &result)
}

fn result_of<R: Serialize + ?Sized>(id: &RequestId, result: &R) -> Result<Bytes, Error> {
    let mut message = Vec::new();
    encoded(encode_result(&mut message, id, &result))?;
    Ok(message.into())
}

/// Returns a stream of one message.
fn alone(message: Bytes) -> Incoming {
    unfold(message, |message| async move { Some((Ok(message), None)) })
}

/// Rewrites the progress token of a notification to the request that waits for it now.
fn in_the_name_of(leg: &RequestId, call: &RequestId, message: Bytes) -> Bytes {
    if leg == call {
        return message;
    }
    match Message::decode(&message) {
        Ok(Message::Notification(notification)) if notification.method == ProgressNotification::NAME => {
            let Ok(mut value) = json::from_slice::<Value>(&message) else { return message };
            if value["params"]["progressToken"] == json!(call) {
                value["params"]["progressToken"] = json!(leg);
            }
            value.to_string().into()
        }
        _ => message,
    }
}

/// Returns the URL questions of an error that requires pages to be visited; `None` if there are more than `most`.
fn pages(error: &ErrorObject, most: usize) -> Option<InputRequests> {
    let pages = error.data.as_ref()?.get("elicitations")?.as_array()?;
    if pages.is_empty() || pages.len() > most {
        return None;
    }
    let mut questions = InputRequests::new();
    for (index, page) in pages.iter().enumerate() {
        let shape = json!({ "method": "elicitation/create", "params": page });
        let question: InputRequest = json::from_value(&shape).ok()?;
        // An error may ask for URLs alone.
        let InputRequest::Elicit(ElicitRequestParams::Url(_)) = question else { return None };
        questions.insert(format!("elicitation-{}", index + 1), question);
    }
    Some(questions)
}

/// Adds the capabilities that were declared before.
pub(super) fn widen(capabilities: &mut ClientCapabilities, declared: &ClientCapabilities) {
    let declared = declared.clone();
    capabilities.experimental.extend(declared.experimental);
    capabilities.roots = capabilities.roots.take().or(declared.roots);
    capabilities.sampling = match (capabilities.sampling.take(), declared.sampling) {
        (Some(mut ours), Some(theirs)) => {
            ours.context = ours.context.or(theirs.context);
            ours.tools = ours.tools.or(theirs.tools);
            Some(ours)
        }
        (ours, theirs) => ours.or(theirs),
    };
    capabilities.elicitation = match (capabilities.elicitation.take(), declared.elicitation) {
        (Some(mut ours), Some(theirs)) => {
            // A capability without a mode means forms.
            let form = ours.allows_form() || theirs.allows_form();
            ours.url = ours.url.or(theirs.url);
            ours.form = form.then(|| ours.form.or(theirs.form).unwrap_or_default());
            Some(ours)
        }
        (ours, theirs) => ours.or(theirs),
    };
}
