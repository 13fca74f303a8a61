//! Questions as requests of the handshake eras.

use roundtrip_core::wire::{
    CreateMessageRequestParams, ElicitRequestFormParams, ElicitRequestParams, ElicitSchema, ErrorObject,
    InputRequest, LegacyTitledEnumSchema, PrimitiveSchemaDefinition, ProtocolVersion, RequestId,
    SamplingContent, SamplingMessage, encode_request, related_task,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::legacy::handshake::URL_ELICITATION_REQUIRED;
use crate::server::{AskKind, CannotAsk, random};

/// Encodes a question as the request that a legacy server sends.
pub(super) fn message(
    id: i64,
    question: InputRequest,
    version: ProtocolVersion,
    task: Option<&str>,
) -> Result<Vec<u8>, ErrorObject> {
    let encode = Encode { id: RequestId::Number(id), method: question.method(), task };
    match question {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => encode.params(&form_of(form, version)),
        InputRequest::Elicit(ElicitRequestParams::Url(_)) => encode.params(&page(&question)?),
        InputRequest::CreateMessage(params) => encode.params(&messages_of(*params, version)),
        InputRequest::ListRoots(params) => encode.params(&params),
    }
}

/// A question that is being encoded.
struct Encode<'a> {
    id: RequestId,
    method: &'static str,
    /// Task that asks it.
    task: Option<&'a str>,
}

impl Encode<'_> {
    fn params(&self, params: &impl Serialize) -> Result<Vec<u8>, ErrorObject> {
        let encoded = match self.task {
            None => encode_request(&self.id, self.method, params),
            Some(task) => {
                related(params, task).and_then(|params| encode_request(&self.id, self.method, &params))
            }
        };
        encoded.map_err(|error| ErrorObject::internal(format!("a question does not serialise: {error}")))
    }
}

/// Relates the parameters of a question to the task that asks it.
fn related(params: &impl Serialize, task: &str) -> Result<Value, serde_json::Error> {
    let mut params = serde_json::to_value(params)?;
    for (name, value) in related_task(task) {
        params["_meta"][name] = value;
    }
    Ok(params)
}

/// Adapts a form: before 2025-11-25 it has no mode, and choices with titles are written as two lists.
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

/// Adapts sampling messages: before 2025-11-25 a message has one block of content, so several blocks become several
/// messages.
fn messages_of(
    mut params: CreateMessageRequestParams,
    version: ProtocolVersion,
) -> CreateMessageRequestParams {
    if version >= ProtocolVersion::V2025_11_25 {
        return params;
    }
    let messages = std::mem::take(&mut params.messages).into_iter().flat_map(|message| {
        let SamplingMessage { role, content, meta } = message;
        let blocks = match content {
            SamplingContent::One(block) => vec![block],
            SamplingContent::Many(blocks) => blocks,
        };
        blocks.into_iter().map(move |block| SamplingMessage {
            role,
            content: SamplingContent::One(block),
            meta: meta.clone(),
        })
    });
    params.messages = messages.collect();
    params
}

/// Returns the parameters of a URL question, with the `elicitationId` that 2025-11-25 has.
fn page(question: &InputRequest) -> Result<Value, ErrorObject> {
    let params = match serde_json::to_value(question) {
        Ok(mut question) => question["params"].take(),
        Err(error) => return Err(ErrorObject::internal(error.to_string())),
    };
    let mut page = params;
    page["elicitationId"] = u128::from_le_bytes(random()?).to_string().into();
    Ok(page)
}

/// Checks that a revision has a kind of question (L5).
pub(super) fn in_revision(kind: AskKind, revision: ProtocolVersion) -> Result<(), CannotAsk> {
    let (since, what) = match kind {
        AskKind::Form => (ProtocolVersion::V2025_06_18, "for a form"),
        AskKind::MultiSelect => (ProtocolVersion::V2025_11_25, "for several choices at once"),
        AskKind::Url => (ProtocolVersion::V2025_11_25, "for a visit to a web page"),
        AskKind::SampleWithTools => (ProtocolVersion::V2025_11_25, "the client's model with tools"),
        AskKind::Sample | AskKind::Roots => return Ok(()),
    };
    if revision >= since { Ok(()) } else { Err(CannotAsk::NotInRevision { revision, what }) }
}

/// Builds the error of 2025-11-25 for a web page, which is all that an error can ask for (L4).
pub(super) fn visit_first(question: &InputRequest) -> Option<ErrorObject> {
    let InputRequest::Elicit(ElicitRequestParams::Url(_)) = question else { return None };
    let why = "this needs a visit to a web page first: make it and call again, or call with revision 2026-07-28 or in \
               a session";
    let error =
        |page| ErrorObject::new(URL_ELICITATION_REQUIRED, why).with_data(json!({ "elicitations": [page] }));
    Some(page(question).map_or_else(|failed| failed, error))
}
