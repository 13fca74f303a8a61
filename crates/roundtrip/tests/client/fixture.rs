//! A server with one of everything.

use std::future::pending;
use std::time::Duration;

use roundtrip::server::{Listed, Partial};
use roundtrip::wire::LoggingLevel;
use roundtrip::{
    Args, Cache, Caller, Client, Log, Progress, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError,
    Uri,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::oneshot;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(Args(Greet { name }): Args<Greet>) -> String {
    format!("Hello, {name}!")
}

async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("it is broken"))
}

/// Says who called, and with what in `_meta`.
async fn whoami(caller: Caller) -> String {
    let info = caller.info().expect("clients name themselves");
    let extra: Option<u32> = caller.meta("com.example/x");
    format!("{} {} {extra:?} {}", info.name, info.version, caller.capabilities.roots.is_some())
}

async fn work(progress: Progress, log: Log) -> String {
    progress.report((1, 3));
    log.send(LoggingLevel::Debug, "details");
    log.info("half way");
    progress.report((2, 3, "nearly"));
    log.error(json!({ "code": 7 }));
    progress.report((3, 3));
    "done".to_owned()
}

async fn hang() -> String {
    pending().await
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Mirrored {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    #[schemars(extend("x-mcp-header" = "Shard"))]
    shard: i64,
}

async fn region(_: Args<Mirrored>) -> String {
    "mirrored".to_owned()
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    lang: String,
    code: String,
}

async fn review(Args(Review { lang, code }): Args<Review>) -> String {
    format!("Review this {lang}: {code}")
}

async fn motto() -> String {
    "Stop and ask.".to_owned()
}

async fn page(Uri(uri): Uri) -> String {
    format!("the page at {uri}")
}

async fn languages(partial: Partial) -> Vec<String> {
    match partial.arguments.get("code").map(String::as_str) {
        Some("fn") => vec!["rust".to_owned()],
        _ => partial.starting(["ruby", "rust", "go"]),
    }
}

async fn pages(partial: Partial) -> Vec<String> {
    partial.starting(["one", "two"])
}

pub(crate) fn server() -> Server {
    let kept = Cache::public(Duration::from_secs(60));
    Server::new("fixture", "1.2.3")
        .tool(Tool::new("greet", greet))
        .tool(Tool::new("fail", fail))
        .tool(Tool::new("whoami", whoami))
        .tool(Tool::new("work", work))
        .tool(Tool::new("hang", hang))
        .tool(Tool::new("region", region))
        .prompt(Prompt::new("review", review).complete("lang", languages))
        .resource(Resource::new("app://motto", "motto", motto).cache(kept))
        .template(ResourceTemplate::new("app://pages/{page}", "pages", page).complete("page", pages))
        .cache(Listed::Tools, kept)
        .page_size(2)
}

/// A server on HTTP, until the sender is dropped or used.
pub(crate) async fn serve(server: Server) -> (Client, oneshot::Sender<()>) {
    let (stop, stopped) = oneshot::channel();
    let bound = server.into_http().expect("a sound server").bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", bound.local_addr().expect("an address"));
    tokio::spawn(bound.until(async { drop(stopped.await) }).into_future());
    (Client::http(url).expect("a client"), stop)
}

/// The text of a tool's result.
pub(crate) fn text(result: &roundtrip::wire::CallToolResult) -> String {
    let value = serde_json::to_value(result).expect("a result serialises");
    value["content"][0]["text"].as_str().expect("text").to_owned()
}
