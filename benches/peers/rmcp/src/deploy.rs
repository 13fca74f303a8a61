//! A tool that asks.

use std::{sync::Arc, time::Duration};

use rmcp::{
    model::{
        CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
        ElicitationSchema, ErrorData, InputRequest, InputRequests, InputRequiredResult, InputResponses,
        RequestStateCodec, RequestStateError, SealOptions,
    },
    schemars,
};
use serde::{Deserialize, Serialize};

const GOOD_FOR: Duration = Duration::from_secs(600);

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct DeployArguments {
    pub(crate) service: String,
    pub(crate) env: String,
    #[serde(default = "once")]
    rounds: usize,
}

fn once() -> usize {
    1
}

#[derive(Serialize, Deserialize)]
struct Answer {
    approve: bool,
    reason: String,
}

/// A key for this process alone would be drawn at random; one that is fixed measures the same.
pub(crate) fn codec() -> Result<Arc<RequestStateCodec>, RequestStateError> {
    RequestStateCodec::try_new(b"a key that nothing but a benchmark uses").map(Arc::new)
}

/// One round: the answers so far come back in the state, which is bound to the tool and its arguments.
pub(crate) fn deploy(
    codec: &RequestStateCodec,
    arguments: &DeployArguments,
    state: Option<String>,
    responses: Option<InputResponses>,
) -> Result<CallToolResponse, ErrorData> {
    let DeployArguments { service, env, rounds } = arguments;
    let call = serde_json::to_vec(&("tools/call", "deploy", arguments)).map_err(internal)?;
    let mut answers: Vec<Answer> = Vec::new();
    if let Some(state) = state {
        answers = codec
            .open_json_with(&state, &call)
            .map_err(|_| ErrorData::invalid_params("invalid or expired requestState", None))?;
        let response = responses.and_then(|mut responses| responses.remove(&key(answers.len() + 1)));
        if let Some(mut response) = response {
            if response["action"] != "accept" {
                return Ok(refused("the question was not answered"));
            }
            let answer: Answer = serde_json::from_value(response["content"].take())
                .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
            if !answer.approve {
                return Ok(refused(&answer.reason));
            }
            answers.push(answer);
        }
    }
    if answers.len() < *rounds {
        let schema = ElicitationSchema::builder().required_bool("approve").required_string("reason").build();
        let question = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: format!("Deploy {service} to {env}?"),
            requested_schema: schema.map_err(internal)?,
        };
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        let options = SealOptions::new().associated_data(&call).ttl(GOOD_FOR);
        let state = codec.seal_json_with(&answers, &options).map_err(internal)?;
        let questions = InputRequests::from([(key(answers.len() + 1), question)]);
        return Ok(InputRequiredResult::new(Some(questions), Some(state)).into());
    }
    let reason = answers.last().map_or("", |answer| &answer.reason);
    let text = format!("deployed {service} to {env} after {rounds} answers: {reason}");
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn refused(reason: &str) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(format!("not deployed: {reason}"))]).into()
}

fn key(round: usize) -> String {
    if round == 1 { "confirm".to_owned() } else { format!("confirm-{round}") }
}

fn internal(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
