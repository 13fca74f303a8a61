//! Which requests of a server are questions, and which of them may be asked.

use roundtrip_core::wire::{
    ClientCapabilities, ElicitRequestParams, ElicitationCapability, ErrorObject, InputRequest, Request,
    clip_error,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::client::{ClientLimits, check_url};
use crate::legacy::handshake::PING;

/// How large a request of the server's own may be.
const LARGEST: usize = 1024 * 1024;

/// What a request of the server's own is.
pub(super) enum Asked {
    /// Are you there?
    Ping,
    /// A question that may be asked.
    Question(InputRequest),
    /// Anything else, and what to say to it.
    Refused(ErrorObject),
}

/// Looks at a request of the server's own, given what the client declared and its limits.
pub(super) fn admit(request: &Request<'_>, declared: &ClientCapabilities, limits: &ClientLimits) -> Asked {
    if request.method == PING {
        return Asked::Ping;
    }
    match read(request).and_then(|question| allowed(&question, declared, limits).map(|()| question)) {
        Ok(question) => Asked::Question(question),
        Err(error) => Asked::Refused(error),
    }
}

/// Refuses a request of the server's own that is too large to be kept.
pub(super) fn small_enough(message: &[u8]) -> Result<(), ErrorObject> {
    if message.len() <= LARGEST {
        return Ok(());
    }
    Err(ErrorObject::invalid_params(format!("a request of a server is at most {LARGEST} bytes")))
}

/// Whether a method of a server asks something of the client.
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
        .and_then(|text| serde_json::from_str(&text))
        .map_err(|error| ErrorObject::invalid_params(format!("{}: {}", request.method, clip_error(&error))))
}

/// A mode that was not declared is -32602 (elicitation, "Error Handling"); a capability that was not, -32601 (roots,
/// "Error Handling").
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
            Some(_) => Ok(()),
        },
        InputRequest::ListRoots(_) if declared.roots.is_none() => missing(),
        InputRequest::ListRoots(_) => Ok(()),
    }
}
