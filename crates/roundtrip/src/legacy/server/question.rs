//! Questions in the words of the old eras.

use roundtrip_core::wire::{
    ElicitRequestFormParams, ElicitRequestParams, ElicitSchema, ErrorObject, InputRequest,
    LegacyTitledEnumSchema, PrimitiveSchemaDefinition, ProtocolVersion, RequestId, encode_request,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::legacy::handshake::URL_ELICITATION_REQUIRED;
use crate::server::random;

/// A question as the request that a server of an old revision sends.
pub(super) fn message(
    id: i64,
    question: InputRequest,
    version: ProtocolVersion,
) -> Result<Vec<u8>, ErrorObject> {
    let id = RequestId::Number(id);
    let method = question.method();
    match question {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => encode(&id, method, &form_of(form, version)),
        InputRequest::Elicit(ElicitRequestParams::Url(_)) => encode(&id, method, &page(&question)?),
        InputRequest::CreateMessage(params) => encode(&id, method, &params),
        InputRequest::ListRoots(params) => encode(&id, method, &params),
    }
}

fn encode(id: &RequestId, method: &str, params: &impl Serialize) -> Result<Vec<u8>, ErrorObject> {
    encode_request(id, method, params)
        .map_err(|error| ErrorObject::internal(format!("a question does not serialise: {error}")))
}

/// Before 2025-11-25 a form has no mode, and choices with titles are written in two lists.
fn form_of(mut form: ElicitRequestFormParams, version: ProtocolVersion) -> ElicitRequestFormParams {
    if version >= ProtocolVersion::V2025_11_25 {
        return form;
    }
    form.mode = None;
    let mut schema = ElicitSchema::clone(&form.requested_schema);
    for (_, field) in &mut schema.properties {
        if let PrimitiveSchemaDefinition::TitledSingleSelect(choice) = field {
            let (values, enum_names) =
                std::mem::take(&mut choice.one_of).into_iter().map(|one| (one.value, one.title)).unzip();
            *field = PrimitiveSchemaDefinition::LegacyTitled(LegacyTitledEnumSchema {
                title: choice.title.take(),
                description: choice.description.take(),
                values,
                enum_names,
                default: choice.default.take(),
            });
        }
    }
    form.requested_schema = schema.into();
    form
}

/// A visit to a web page has an id of its own in 2025-11-25.
fn page(question: &InputRequest) -> Result<Value, ErrorObject> {
    let params = match serde_json::to_value(question) {
        Ok(mut question) => question["params"].take(),
        Err(error) => return Err(ErrorObject::internal(error.to_string())),
    };
    let mut page = params;
    page["elicitationId"] = u128::from_le_bytes(random()?).to_string().into();
    Ok(page)
}

/// What a caller without a session is told when it would have to be asked (L4). A web page can still be named: that is
/// the one question that 2025-11-25 can put into an error.
pub(super) fn without_session(question: &InputRequest) -> ErrorObject {
    if let InputRequest::Elicit(ElicitRequestParams::Url(_)) = question
        && let Ok(page) = page(question)
    {
        let why = "this needs a visit to a web page first: make it and call again, or call with revision 2026-07-28 or \
                   in a session";
        return ErrorObject::new(URL_ELICITATION_REQUIRED, why).with_data(json!({ "elicitations": [page] }));
    }
    ErrorObject::invalid_request(
        "this call has a question to ask, and there is no way to ask it: call with revision 2026-07-28, or in a session",
    )
}
