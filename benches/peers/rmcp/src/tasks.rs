//! Tools whose calls become tasks, kept by the `TaskManager` of the SDK.
//!
//! The SDK has no setting that makes a tool a task: the handler of `tools/call` decides and spawns, and the three methods about
//! tasks are handed to the manager, as its tests show. The router is built once.

use std::sync::Arc;

use rmcp::{
    ServerHandler,
    handler::server::{router::tool::ToolRouter, tool::ToolCallContext, wrapper::Parameters},
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
        CreateTaskResult, ElicitRequest, ElicitRequestParams, ElicitationSchema, ErrorData, GetTaskParams,
        GetTaskResult, InputRequest, ServerCapabilities, ServerConfig, UpdateTaskParams,
    },
    service::{RequestContext, RoleServer},
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
    tool, tool_router,
};
use serde_json::Value;

use crate::{EchoArguments, deploy::DeployArguments};

/// Tasks live for as long as a run takes.
const TTL_MS: u64 = 3_600_000;

#[derive(Clone)]
pub(crate) struct Tasked {
    router: Arc<ToolRouter<Tasked>>,
    tasks: TaskManager,
}

#[tool_router]
impl Tasked {
    #[tool(description = "Says back what it is told")]
    fn echo(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }

    pub(crate) fn new() -> Self {
        Self { router: Arc::new(Self::tool_router()), tasks: TaskManager::new() }
    }
}

impl ServerHandler for Tasked {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks()) {
            return self.router.call(ToolCallContext::new(self, request, context)).await;
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let options = TaskOptions::new().with_ttl_ms(TTL_MS);
        let task = if request.name == "echo" {
            let EchoArguments { text } = serde_json::from_value(arguments).map_err(invalid)?;
            self.tasks.spawn(options, |_| Box::pin(async { Ok(said(text)) }))
        } else {
            let arguments = serde_json::from_value(arguments).map_err(invalid)?;
            self.tasks.spawn(options, |task| Box::pin(deploy(task, arguments)))
        };
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
    }
}

/// Asks one question, and waits in memory for its answer.
async fn deploy(task: TaskContext, arguments: DeployArguments) -> Result<CallToolResult, TaskExit> {
    let schema = ElicitationSchema::builder().required_bool("approve").required_string("reason").build();
    let question = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("Deploy {} to {}?", arguments.service, arguments.env),
        requested_schema: schema.map_err(|error| ErrorData::internal_error(error.to_string(), None))?,
    };
    let answer =
        task.request_input("confirm", InputRequest::Elicitation(ElicitRequest::new(question))).await?;
    Ok(said(format!("deployed: {}", answer["content"]["reason"])))
}

fn said(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn invalid(error: serde_json::Error) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}
