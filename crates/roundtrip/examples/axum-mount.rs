//! An MCP endpoint inside an axum application, with a caller named by a layer in front of it.
//!
//! `cargo run -p roundtrip --example axum-mount`, then call `http://127.0.0.1:8000/mcp` with an `x-user` header.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use roundtrip::{Caller, Extension, Principal, Server, Tool};

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
    let app = axum::Router::new()
        .route_service("/mcp", mcp)
        .route("/health", get(async || "well"))
        .layer(from_fn(authenticate));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
