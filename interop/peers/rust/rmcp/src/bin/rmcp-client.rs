//! A client on rmcp that starts tasks at our conformance server, answers their questions, cancels them, and reads how they
//! ended. rmcp hands tasks over: the client looks at them by itself.

use std::{process::ExitCode, time::Duration};

use checks::{Failure, Report, Target, expect};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
        ClientConfig, ErrorCode, GetTaskParams, Implementation, InputResponses, JsonObject, ProtocolVersion,
        TaskPayload, UpdateTaskParams,
    },
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};

type Client = RunningService<RoleClient, ClientConfig>;

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let target = Target::read()?;
    let mut report = Report::default();
    let client = connect(&target, true).await?;
    let c = &client;
    report.check("slow_compute", computed(c)).await;
    report
        .check("confirm_delete", one_question(c, accept(json!({ "confirm": true })), "a.txt is deleted"))
        .await;
    report.check("confirm_delete, decline", declined(c)).await;
    report.check("multi_input, one answer at a time", one_at_a_time(c)).await;
    report.check("test_tool_with_task", a_round_then_a_task(c)).await;
    report.check("failing_job", tool_error(c)).await;
    report.check("protocol_error_job", protocol_error(c)).await;
    report.check("tasks/cancel", cancelled(c)).await;
    report.check("an unknown task", unknown(c)).await;
    client.cancel().await?;

    let plain = connect(&target, false).await?;
    report.check("failing_job (tasks not declared)", needs_tasks(&plain)).await;
    report.check("slow_compute (tasks not declared)", inside_the_call(&plain)).await;
    plain.cancel().await?;
    Ok(report.conclude())
}

async fn connect(target: &Target, tasks: bool) -> Result<Client, Failure> {
    let capabilities = if tasks {
        ClientCapabilities::builder().enable_elicitation().enable_tasks().build()
    } else {
        ClientCapabilities::builder().enable_elicitation().build()
    };
    let config = ClientConfig::new(capabilities, Implementation::new("rmcp-client", "0.0.0"));
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    Ok(match target {
        Target::Http(url) => {
            config.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url.as_str()), mode).await?
        }
        Target::Stdio(program, arguments) => {
            let mut command = tokio::process::Command::new(program);
            command.args(arguments);
            config.serve_with_lifecycle(TokioChildProcess::new(command)?, mode).await?
        }
    })
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// Starts a task, and returns its identifier.
async fn start(client: &Client, call: CallToolRequestParams) -> Result<String, Failure> {
    match client.call_tool_once(call).await? {
        CallToolResponse::Task(created) => Ok(created.task.task_id),
        other => Err(format!("wanted a task, got {other:?}").into()),
    }
}

/// Looks at a task until it is no longer `working`, as often as the server says.
async fn look(client: &Client, id: &str) -> Result<TaskPayload, Failure> {
    loop {
        let found = client.get_task(GetTaskParams::new(id)).await?.task;
        match found.payload {
            TaskPayload::Working => {
                let pause = found.task.poll_interval_ms.unwrap_or(100);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            payload => return Ok(payload),
        }
    }
}

async fn answer(client: &Client, id: &str, key: &str, answer: Value) -> Result<(), Failure> {
    let answers = InputResponses::from([(key.to_owned(), answer)]);
    Ok(client.update_task(UpdateTaskParams::new(id, answers)).await?)
}

/// Waits for the question under this key alone.
async fn asked(client: &Client, id: &str, key: &str) -> Result<(), Failure> {
    match look(client, id).await? {
        TaskPayload::InputRequired { input_requests } if input_requests.keys().eq([key]) => Ok(()),
        other => Err(format!("wanted `{key}` to be asked, got {other:?}").into()),
    }
}

async fn result(client: &Client, id: &str) -> Result<CallToolResult, Failure> {
    match look(client, id).await? {
        TaskPayload::Completed { result } => Ok(serde_json::from_value(Value::Object(result))?),
        other => Err(format!("wanted a result, got {other:?}").into()),
    }
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| Some(block.as_text()?.text.clone())).collect()
}

async fn ends_with(client: &Client, id: &str, wanted: &str) -> Result<String, Failure> {
    let result = result(client, id).await?;
    let right = result.is_error != Some(true) && text(&result) == wanted;
    expect(right, || format!("wanted `{wanted}`, got {result:?}"))?;
    Ok(wanted.to_owned())
}

async fn computed(client: &Client) -> Result<String, Failure> {
    let id = start(client, call("slow_compute", json!({ "seconds": 0.3, "label": "seven" }))).await?;
    ends_with(client, &id, "seven: computed for 0.3 s").await
}

async fn one_question(client: &Client, said: Value, wanted: &str) -> Result<String, Failure> {
    let id = start(client, call("confirm_delete", json!({ "filename": "a.txt" }))).await?;
    asked(client, &id, "confirm").await?;
    answer(client, &id, "confirm", said).await?;
    ends_with(client, &id, wanted).await
}

async fn declined(client: &Client) -> Result<String, Failure> {
    let id = start(client, call("confirm_delete", json!({ "filename": "a.txt" }))).await?;
    asked(client, &id, "confirm").await?;
    answer(client, &id, "confirm", json!({ "action": "decline" })).await?;
    let result = result(client, &id).await?;
    let right = result.is_error == Some(true) && text(&result).contains("declined");
    expect(right, || format!("wanted a tool error, got {result:?}"))?;
    Ok(text(&result))
}

async fn one_at_a_time(client: &Client) -> Result<String, Failure> {
    let id = start(client, call("multi_input", json!({}))).await?;
    match look(client, &id).await? {
        TaskPayload::InputRequired { input_requests } if input_requests.len() == 2 => {}
        other => return Err(format!("wanted two questions, got {other:?}").into()),
    }
    answer(client, &id, "name", accept(json!({ "name": "Ada" }))).await?;
    asked(client, &id, "confirm").await?;
    answer(client, &id, "confirm", accept(json!({ "confirm": true }))).await?;
    ends_with(client, &id, "Ada: true").await
}

async fn a_round_then_a_task(client: &Client) -> Result<String, Failure> {
    let mut call = call("test_tool_with_task", json!({}));
    let CallToolResponse::InputRequired(round) = client.call_tool_once(call.clone()).await? else {
        return Err("wanted a round first".into());
    };
    let answers = [("user_name".to_owned(), accept(json!({ "name": "Ada" })))];
    call.input_responses = Some(InputResponses::from(answers));
    call.request_state = round.request_state;
    let id = start(client, call).await?;
    ends_with(client, &id, "Hello, Ada!").await
}

async fn tool_error(client: &Client) -> Result<String, Failure> {
    let id = start(client, call("failing_job", json!({}))).await?;
    let result = result(client, &id).await?;
    expect(result.is_error == Some(true), || format!("wanted a tool error, got {result:?}"))?;
    Ok(text(&result))
}

async fn protocol_error(client: &Client) -> Result<String, Failure> {
    let id = start(client, call("protocol_error_job", json!({}))).await?;
    match look(client, &id).await? {
        TaskPayload::Failed { error } if error["code"] == -32603 => Ok(error["message"].to_string()),
        other => Err(format!("wanted a failed task, got {other:?}").into()),
    }
}

async fn cancelled(client: &Client) -> Result<String, Failure> {
    let id = start(client, call("slow_compute", json!({ "seconds": 60, "label": "long" }))).await?;
    client.cancel_task(CancelTaskParams::new(id.clone())).await?;
    match look(client, &id).await? {
        TaskPayload::Cancelled => Ok("cancelled".to_owned()),
        other => Err(format!("wanted a cancelled task, got {other:?}").into()),
    }
}

async fn unknown(client: &Client) -> Result<String, Failure> {
    refused(client.get_task(GetTaskParams::new("no-such-task")).await, ErrorCode::INVALID_PARAMS)
}

async fn needs_tasks(client: &Client) -> Result<String, Failure> {
    let outcome = client.call_tool_once(call("failing_job", json!({}))).await;
    refused(outcome, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY)
}

async fn inside_the_call(client: &Client) -> Result<String, Failure> {
    let arguments = JsonObject::from_iter([("seconds".into(), json!(0)), ("label".into(), json!("now"))]);
    let result =
        client.call_tool(CallToolRequestParams::new("slow_compute").with_arguments(arguments)).await?;
    expect(text(&result).starts_with("now: computed"), || format!("got {result:?}"))?;
    Ok(text(&result))
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, ServiceError>, code: ErrorCode) -> Result<String, Failure> {
    match outcome {
        Err(ServiceError::McpError(error)) if error.code == code => Ok(error.to_string()),
        other => Err(format!("wanted {code:?}, got {other:?}").into()),
    }
}
