//! A server on rmcp whose tools run as tasks (`io.modelcontextprotocol/tasks`), for `task-client`.
//!
//! `rmcp-server` listens on `http://127.0.0.1:$PORT/mcp` and says so; `rmcp-server --stdio` serves standard input and
//! output. Its tools have the names and answers that the task servers on all SDKs have.

use std::{env, error::Error, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
        CreateTaskResult, ElicitRequest, ElicitRequestParams, ElicitationSchema, GetTaskParams,
        GetTaskResult, InputRequest, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
        ServerConfig, Tool, UpdateTaskParams,
    },
    service::{RequestContext, RoleServer},
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde_json::{Value, json};
use tokio::time::sleep;

const TOOLS: [&str; 7] = ["compute", "greet", "rounds", "together", "fail", "broken", "endless"];

#[derive(Clone, Default)]
struct Tasks(TaskManager);

impl ServerHandler for Tasks {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "label": { "type": "string" } } });
        let schema = Arc::new(schema.as_object().cloned().unwrap_or_default());
        let tool = |name| Tool::new(name, "Runs as a task", Arc::clone(&schema));
        Ok(ListToolsResult::with_all_items(TOOLS.map(tool).into()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !TOOLS.contains(&&*call.name) {
            return Err(ErrorData::invalid_params("no such tool", None));
        }
        let options = TaskOptions::new().with_poll_interval_ms(50);
        let task = self.0.spawn(options, |context| Box::pin(work(call, context)));
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.0.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.cancel_task(&request.task_id)
    }
}

async fn work(call: CallToolRequestParams, task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let said = match &*call.name {
        "compute" => {
            task.set_status_message("computing");
            sleep(Duration::from_millis(100)).await;
            let label = call.arguments.as_ref().and_then(|given| given.get("label")).and_then(Value::as_str);
            Ok(format!("{}: computed", label.unwrap_or_default()))
        }
        "greet" => ask(&task, "name", "What is your name?").await?.map(|name| format!("Hello, {name}!")),
        "rounds" => match ask(&task, "name", "What is your name?").await? {
            Ok(name) => {
                let asked = format!("{name}, what is your favourite colour?");
                ask(&task, "colour", &asked).await?.map(|colour| format!("{name} likes {colour}"))
            }
            refused => refused,
        },
        "together" => {
            let name = ask(&task, "name", "What is your name?");
            let colour = ask(&task, "colour", "What is your favourite colour?");
            let (name, colour) = tokio::try_join!(name, colour)?;
            name.and_then(|name| Ok(format!("{name} likes {}", colour?)))
        }
        "fail" => Err("this job always fails".to_owned()),
        "broken" => {
            return Err(ErrorData::internal_error("this job always ends with an error", None).into());
        }
        _ => {
            task.cancelled().await;
            return Err(TaskExit::Cancelled);
        }
    };
    Ok(match said {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
    })
}

/// Asks for one field of text. A user who refuses is the tool's error.
async fn ask(task: &TaskContext, field: &str, message: &str) -> Result<Result<String, String>, TaskExit> {
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: ElicitationSchema::builder()
            .required_string(field)
            .build()
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?,
    };
    let answer = task.request_input(field, InputRequest::Elicitation(ElicitRequest::new(form))).await?;
    Ok(match answer["content"][field].as_str() {
        Some(said) if answer["action"] == "accept" => Ok(said.to_owned()),
        _ => Err(format!("{field}: {}", answer["action"].as_str().unwrap_or("no answer"))),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Tasks::default();
    if env::args().any(|word| word == "--stdio") {
        server.serve(stdio()).await?.waiting().await?;
        return Ok(());
    }
    let port: u16 = env::var("PORT")?.parse()?;
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
