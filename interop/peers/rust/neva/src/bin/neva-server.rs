//! A server on Neva whose tools run as tasks, for `task-client`.
//!
//! `neva-server` listens on `http://127.0.0.1:$PORT/mcp`; `neva-server --stdio` serves standard input and output. Its tools
//! have the names and answers that the task servers on all SDKs have, except for `broken`: an error of a handler is a
//! tool error here.
//!
//! Neva 0.9 has the tasks of `io.modelcontextprotocol/tasks`, but makes one only of a call that has the parameter `task`
//! of earlier revisions. The extension has no such parameter: a server decides by itself for each request that declares
//! the extension. A middleware decides here, and leaves everything after that to Neva.

use std::{env, time::Duration};

use neva::{
    App, Context,
    error::{Error, ErrorCode},
    middleware::{MwContext, Next},
    types::{Message, elicitation::ElicitRequestParams},
};
use serde_json::{Value, json};
use tokio::time::sleep;

const EXTENSION: &str =
    "/_meta/io.modelcontextprotocol~1clientCapabilities/extensions/io.modelcontextprotocol~1tasks";

/// Makes a task of every call whose request declares the extension.
async fn as_tasks(mut context: MwContext, next: Next) -> neva::types::Response {
    if let Message::Request(request) = &mut context.msg
        && let Some(params) = &mut request.params
        && params.pointer(EXTENSION).is_some()
    {
        params["task"] = json!({});
    }
    next(context).await
}

async fn compute(label: String) -> String {
    sleep(Duration::from_millis(100)).await;
    format!("{label}: computed")
}

async fn greet(context: Context) -> Result<String, Error> {
    Ok(format!("Hello, {}!", ask(&context, "name", "What is your name?").await?))
}

async fn rounds(context: Context) -> Result<String, Error> {
    let name = ask(&context, "name", "What is your name?").await?;
    let colour = ask(&context, "colour", &format!("{name}, what is your favourite colour?")).await?;
    Ok(format!("{name} likes {colour}"))
}

async fn together(context: Context) -> Result<String, Error> {
    let name = ask(&context, "name", "What is your name?");
    let colour = ask(&context, "colour", "What is your favourite colour?");
    let (name, colour) = tokio::try_join!(name, colour)?;
    Ok(format!("{name} likes {colour}"))
}

async fn fail() -> Result<String, Error> {
    Err(Error::new(ErrorCode::InternalError, "this job always fails"))
}

async fn endless() -> String {
    std::future::pending().await
}

/// Asks for one field of text. A user who refuses is the tool's error.
async fn ask(context: &Context, field: &str, message: &str) -> Result<String, Error> {
    let form = ElicitRequestParams::form(message).with_required(field, "string");
    let answer = context.task().elicit(form.into()).await?;
    let said = answer.content.as_ref().and_then(|content| content[field].as_str());
    said.map(str::to_owned).ok_or_else(|| {
        let action = serde_json::to_value(answer.action).unwrap_or(Value::Null);
        Error::new(ErrorCode::InvalidRequest, format!("{field}: {}", action.as_str().unwrap_or_default()))
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = if env::args().any(|word| word == "--stdio") {
        App::new().with_options(|options| options.with_stdio().with_tasks())
    } else {
        let address = format!("127.0.0.1:{}", env::var("PORT")?);
        App::new().with_options(|options| {
            options.with_http(|http| http.bind(&address).with_endpoint("/mcp")).with_tasks()
        })
    };
    let mut app = app.wrap_tools(as_tasks);
    app.map_tool("compute", compute).with_arg_names(["label"]).with_task_support("optional");
    app.map_tool("greet", greet).with_task_support("required");
    app.map_tool("rounds", rounds).with_task_support("required");
    app.map_tool("together", together).with_task_support("required");
    app.map_tool("fail", fail).with_task_support("required");
    app.map_tool("endless", endless).with_task_support("required");
    app.run().await;
    Ok(())
}
