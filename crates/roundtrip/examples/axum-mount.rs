//! An MCP endpoint inside an axum application, with a caller named by a layer in front of it.
//!
//! `cargo run -p roundtrip --example axum-mount`, then call `http://127.0.0.1:8000/mcp` with an `x-user` header.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use roundtrip::server::Endpoint;
use roundtrip::{Caller, Extension, Principal, Server, Tool};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Whom your own authentication found.
#[derive(Clone)]
struct User(String);

/// Stands in for your authentication: tells the service behind it who is calling.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let name = request.headers().get("x-user").and_then(|name| name.to_str().ok()).map(str::to_owned);
    if let Some(name) = name {
        request.extensions_mut().insert(User(name));
    }
    next.run(request).await
}

async fn whoami(caller: Caller, Extension(User(name)): Extension<User>) -> String {
    format!("{name}, known as {:?}", caller.principal.map(|principal| principal.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mcp = Server::new("mounted", "1.0.0")
        .tool(Tool::new("whoami", whoami).description("Say who is calling"))
        .into_http()?
        .allow_origin("https://app.example")
        .principal(|parts| parts.extensions.get::<User>().map(|User(name)| Principal::new(name.as_str())));
    let endpoint = mcp.endpoint().clone();
    let app = Router::new()
        .route_service("/mcp", mcp)
        .route("/health", get(async || "well"))
        .layer(from_fn(authenticate));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(serve(listener, app, endpoint).await?)
}

/// Serves until ctrl-c; calls under way then have 30 seconds.
async fn serve(listener: TcpListener, app: Router, endpoint: Endpoint) -> std::io::Result<()> {
    let (stop, stopped) = oneshot::channel();
    let server =
        axum::serve(listener, app).with_graceful_shutdown(async { stopped.await.unwrap_or_default() });
    let serving = tokio::spawn(server.into_future());
    tokio::signal::ctrl_c().await?;
    endpoint.drain(); // handlers that come to a checkpoint hand their flow to another instance
    endpoint.close_subscriptions(); // listening streams end with their result
    let _ = stop.send(()); // no new connections, and those that are open end with their answer
    let rest = async {
        let _ = serving.await;
        endpoint.finished().await; // rounds that a ledger has claimed, and whose clients have hung up
    };
    let _ = tokio::time::timeout(Duration::from_secs(30), rest).await;
    Ok(())
}
