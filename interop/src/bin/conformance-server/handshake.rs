//! Tools that the suite calls in the handshake eras alone: questions during a call, log messages for a whole session,
//! and a connection that is closed early.

use std::time::Duration;

use roundtrip::server::Answered;
use roundtrip::wire::{CreateMessageRequestParams, ElicitSchema, JsonObject};
use roundtrip::{Args, Ask, Connection, Form, Log, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn offer(server: Server) -> Server {
    server
        .tool(Tool::new("test_tool_with_logging", logging).description("Sends three log messages"))
        .tool(Tool::new("test_sampling", sampling).description("Asks the model"))
        .tool(Tool::new("test_elicitation", elicitation).description("Asks the user"))
        .tool(
            Tool::new("test_elicitation_sep1034_defaults", defaults)
                .description("Asks for fields that have defaults"),
        )
        .tool(
            Tool::new("test_elicitation_sep1330_enums", choices)
                .description("Asks for choices, written in every way there is"),
        )
        .tool(
            Tool::new("test_reconnection", reconnection).description("Lets go of its connection on the way"),
        )
}

async fn logging(log: Log) -> &'static str {
    log.info("Tool execution started");
    tokio::time::sleep(Duration::from_millis(50)).await;
    log.info("Tool processing data");
    tokio::time::sleep(Duration::from_millis(50)).await;
    log.info("Tool execution completed");
    "Tool with logging executed successfully"
}

#[derive(Deserialize, JsonSchema)]
struct Ask4Model {
    /// Prompt for the model
    prompt: String,
}

async fn sampling(Args(Ask4Model { prompt }): Args<Ask4Model>, ask: Ask) -> Result<String, ToolError> {
    let said = ask.sample("model", CreateMessageRequestParams::text(prompt, 100)).await?;
    Ok(format!("LLM response: {}", said.text()))
}

#[derive(Deserialize, JsonSchema)]
struct Ask4User {
    /// Message to the user
    message: String,
}

#[derive(Form)]
struct Person {
    /// User's response
    username: String,
    /// User's email address
    #[form(format = "email")]
    email: String,
}

async fn elicitation(Args(Ask4User { message }): Args<Ask4User>, ask: Ask) -> Result<String, ToolError> {
    Ok(match ask.form::<Person>("user", message).reply().await? {
        Answered::Accepted(Person { username, email }) => {
            format!(
                "User response: action=accept, content={}",
                json!({ "username": username, "email": email })
            )
        }
        Answered::Declined => "User response: action=decline".to_owned(),
        Answered::Cancelled => "User response: action=cancel".to_owned(),
    })
}

async fn defaults(ask: Ask) -> Result<String, ToolError> {
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string", "description": "User status",
                "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
        "required": [],
    }))?;
    let answered = ask.form_of("defaults", "Please review and update the form fields with defaults", schema);
    Ok(told(answered.reply().await?))
}

async fn choices(ask: Ask) -> Result<String, ToolError> {
    let titled = |name: &str| json!({ "const": format!("value{name}"), "title": format!("Option {name}") });
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": [titled("1"), titled("2"), titled("3")] },
            "legacyEnum": {
                "type": "string", "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": { "type": "array", "items": { "anyOf": [titled("1"), titled("2"), titled("3")] } },
        },
        "required": [],
    }))?;
    let answered = ask.form_of("choices", "Please select options from the enum fields", schema);
    Ok(told(answered.reply().await?))
}

fn schema(schema: Value) -> Result<ElicitSchema, ToolError> {
    serde_json::from_value(schema).map_err(|error| ToolError::new(error.to_string()))
}

fn told(answered: Answered<JsonObject>) -> String {
    match answered {
        Answered::Accepted(content) => {
            format!("Elicitation completed: action=accept, content={}", Value::from(content))
        }
        Answered::Declined => "Elicitation completed: action=decline".to_owned(),
        Answered::Cancelled => "Elicitation completed: action=cancel".to_owned(),
    }
}

async fn reconnection(connection: Connection) -> &'static str {
    connection.let_go();
    // Long enough for the client to have to come back for the answer.
    tokio::time::sleep(Duration::from_millis(100)).await;
    "Reconnection test completed successfully"
}
