//! A server that wants access tokens, inside an axum application: `cargo run -p roundtrip --example authorized-in-axum`.
//!
//! An issuer for tests signs the tokens here. In place of it, name your authorization server with `Authorize::issuer`.

#![expect(clippy::print_stdout, reason = "it shows what is published")]

use axum::Router;
use axum::routing::get;
use roundtrip::server::SetupError;
use roundtrip::testing::Issuer;
use roundtrip::{Authorize, Caller, Client, Server, Tool};
use serde_json::json;
use tokio::net::TcpListener;

async fn whoami(caller: Caller) -> String {
    let claims = caller.claims();
    format!("{:?}", claims.map(|claims| (claims.subject.as_deref(), claims.client_id.as_deref())))
}

/// Mounts the service, and the metadata of its resource beside it: clients begin there.
fn app(guard: Authorize) -> Result<Router, SetupError> {
    let mcp = Server::new("mounted", "1.0.0").tool(Tool::new("whoami", whoami)).into_http()?;
    Ok(Router::new()
        .route_service(guard.path(), guard.metadata())
        .route_service("/mcp", mcp.authorize(guard).checked()?)
        .route("/health", get(async || "well")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let resource = format!("http://{}/mcp", listener.local_addr()?);
    let issuer = Issuer::bind(&resource).await?;
    let guard = Authorize::at(&resource).issuer(issuer.name()).name("An example");
    println!("metadata at {}", guard.path());
    let serving = tokio::spawn(axum::serve(listener, app(guard)?).into_future());

    let token = issuer.token("alice").client_id("agent").sign();
    let client = Client::http(&resource)?.header("authorization", format!("Bearer {token}"));
    let answer = client.call_tool("whoami", json!({})).await?;
    println!("{}", answer.content[0].as_text().unwrap_or_default());
    serving.abort();
    Ok(())
}
