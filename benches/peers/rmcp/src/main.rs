//! The official Rust SDK (rmcp) behind the command line the load generator expects:
//!
//! ```text
//! rmcp-server [--tuned] http PORT [--tools N]
//! rmcp-server [--tuned] stdio
//! rmcp-server --tasks http PORT
//! ```
//!
//! Without `--tuned` it is written the way its documentation shows: the macros in their shortest form, the
//! configuration at its defaults (answers as SSE streams), `stdio()` for the pipes. With `--tuned` it is what
//! somebody who measured would write: the router built once and shared, JSON answers, no sessions for older
//! revisions, `stdio_pipes()`. Both set TCP_NODELAY, which the documentation does not: without it the second
//! write of each SSE answer waits some 40 ms for the client's delayed acknowledgement, and the benchmark would
//! measure that wait and nothing else.
//!
//! `--tools N` adds N tools that are never called. The macros cannot make tools at run time, so a server with
//! such tools keeps its router in a field, built once; untuned, each POST gets a copy of it. That is kinder than
//! the documentation's `new()` in the service factory, which would build all N routes again for each POST.
//!
//! A tool that asks returns its question and reads the answers of the next round by hand. `RequestStateCodec` signs
//! the state and binds it to the call; unlike the other servers' it can be read by whoever carries it.
//!
//! With `--tasks`, calls of clients that declare the tasks extension become tasks. The rest is as with `--tuned`.

mod deploy;
mod tasks;

use std::{env, error::Error, sync::Arc};

use axum::serve::ListenerExt;
use rmcp::{
    ServerHandler, ServiceExt,
    handler::server::{
        router::tool::{CallToolHandlerExt, ToolRouter},
        tool::{InputResponses, RequestState},
        wrapper::Parameters,
    },
    model::{CallToolResponse, ErrorData, RequestStateCodec},
    schemars, tool, tool_handler, tool_router,
    transport::{
        io::stdio_pipes,
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde::Deserialize;

use deploy::DeployArguments;

#[derive(Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    /// What to say back.
    text: String,
}

/// The server of the documentation: nothing but macros.
struct Documented {
    codec: Arc<RequestStateCodec>,
}

#[tool_router]
impl Documented {
    #[tool(description = "Says back what it is told")]
    fn echo(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }

    #[tool(description = "Deploys a service, once it is confirmed")]
    async fn deploy(
        &self,
        Parameters(arguments): Parameters<DeployArguments>,
        RequestState(state): RequestState,
        InputResponses(answers): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        deploy::deploy(&self.codec, &arguments, state, answers)
    }
}

#[tool_handler]
impl ServerHandler for Documented {}

/// The server with its router in a field.
#[derive(Clone)]
struct Prepared {
    router: Arc<ToolRouter<Prepared>>,
    codec: Arc<RequestStateCodec>,
}

#[tool_router]
impl Prepared {
    #[tool(description = "Says back what it is told")]
    fn echo(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }

    #[tool(description = "Deploys a service, once it is confirmed")]
    async fn deploy(
        &self,
        Parameters(arguments): Parameters<DeployArguments>,
        RequestState(state): RequestState,
        InputResponses(answers): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        deploy::deploy(&self.codec, &arguments, state, answers)
    }

    fn filler(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }

    fn new(fillers: usize, codec: Arc<RequestStateCodec>) -> Self {
        let mut router = Self::tool_router();
        for number in 0..fillers {
            router = router.with_route(
                Self::filler
                    .name(format!("filler_{number:05}"))
                    .description("A tool that is never called")
                    .parameters::<EchoArguments>(),
            );
        }
        Self { router: Arc::new(router), codec }
    }

    fn copy(&self) -> Self {
        Self { router: Arc::new((*self.router).clone()), codec: Arc::clone(&self.codec) }
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for Prepared {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = env::args().skip(1).collect();
    let tuned = words.first().is_some_and(|word| word == "--tuned");
    if tuned {
        words.remove(0);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["stdio"] => serve_stdio(tuned).await,
        ["--tasks", "http", port] => serve_tasks(port.parse()?).await,
        ["http", port] => serve_http(tuned, port.parse()?, 0).await,
        ["http", port, "--tools", fillers] => serve_http(tuned, port.parse()?, fillers.parse()?).await,
        _ => Err(
            "usage: rmcp-server [--tuned] (http PORT [--tools N] | stdio), or rmcp-server --tasks http PORT"
                .into(),
        ),
    }
}

async fn serve_stdio(tuned: bool) -> Result<(), Box<dyn Error>> {
    let codec = deploy::codec()?;
    if tuned {
        Prepared::new(0, codec).serve(stdio_pipes()).await?.waiting().await?;
    } else {
        Documented { codec }.serve(stdio()).await?.waiting().await?;
    }
    Ok(())
}

async fn serve_http(tuned: bool, port: u16, fillers: usize) -> Result<(), Box<dyn Error>> {
    let codec = deploy::codec()?;
    if tuned {
        let server = Prepared::new(fillers, codec);
        listen(port, tuned_config(), move || server.clone()).await
    } else if fillers == 0 {
        let server = move || Documented { codec: Arc::clone(&codec) };
        listen(port, StreamableHttpServerConfig::default(), server).await
    } else {
        let server = Prepared::new(fillers, codec);
        listen(port, StreamableHttpServerConfig::default(), move || server.copy()).await
    }
}

async fn serve_tasks(port: u16) -> Result<(), Box<dyn Error>> {
    let server = tasks::Tasked::new();
    listen(port, tuned_config(), move || server.clone()).await
}

fn tuned_config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default().with_json_response(true).with_legacy_session_mode(false)
}

async fn listen<S: ServerHandler>(
    port: u16,
    config: StreamableHttpServerConfig,
    server: impl Fn() -> S + Send + Sync + 'static,
) -> Result<(), Box<dyn Error>> {
    let service =
        StreamableHttpService::new(move || Ok(server()), Arc::new(LocalSessionManager::default()), config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on {}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // Best effort: a connection that is already gone fails at its first read.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}
