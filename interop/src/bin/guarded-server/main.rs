//! Server that wants access tokens of a published authorization server.
//!
//! `PORT` is the port, `ISSUER` names the authorization server. Optional: `RESOURCE`, the URL that clients use (else its own),
//! `AUDIENCE`, another name of the resource in tokens, `INTROSPECT` (`PATH CLIENT SECRET`) for tokens that are opaque, or
//! JWTs that do not say enough, `INSTANCE`, its name, and `ROUNDTRIP_KEYS`.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::env::var;
use std::error::Error;

use roundtrip::authorize::Introspection;
use roundtrip::{Ask, Authorize, Caller, Form, Keyring, Server, Tool, ToolError};

#[derive(Form)]
struct Sure {
    ok: bool,
}

async fn whoami(caller: Caller) -> String {
    subject(&caller)
}

async fn write(caller: Caller) -> String {
    format!("written by {}", subject(&caller))
}

/// Asks twice and needs more rights in the end. Each step tells which instance ran it.
async fn publish(ask: Ask, caller: Caller) -> Result<String, ToolError> {
    let Sure { ok: begin } = ask.form("begin", "Begin?").await?;
    let drafted = ask.remember("draft", async || instance()).await?;
    let Sure { ok: end } = ask.form("publish", "Publish?").await?;
    caller.need_scopes(["mcp:write"])?;
    let sent = ask.remember("send", async || instance()).await?;
    Ok(format!("{begin} {end} by {}, drafted at {drafted}, sent from {sent}", subject(&caller)))
}

fn subject(caller: &Caller) -> String {
    let claims = caller.claims();
    let name = claims.and_then(|claims| claims.subject.as_ref().or(claims.client_id.as_ref()));
    name.map_or_else(|| "a stranger".to_owned(), Clone::clone)
}

fn instance() -> String {
    var("INSTANCE").unwrap_or_else(|_| "one".to_owned())
}

fn guard(resource: String) -> Result<Authorize, Box<dyn Error>> {
    let issuer = var("ISSUER")?;
    let mut guard = Authorize::at(resource).issuer(&issuer).scopes(["mcp:read"]);
    if let Ok(audience) = var("AUDIENCE") {
        guard = guard.audience(audience);
    }
    if let Ok(told) = var("INTROSPECT") {
        let [path, client, secret] = credentials(&told)?;
        let endpoint = Introspection::at(format!("{issuer}{path}")).client(client, secret);
        guard = guard.introspect(endpoint.incomplete_jwts());
    }
    Ok(guard)
}

/// Reads `PATH CLIENT SECRET`.
fn credentials(told: &str) -> Result<[&str; 3], Box<dyn Error>> {
    let words: Vec<&str> = told.split(' ').collect();
    words.try_into().map_err(|_| format!("`{told}` is not PATH CLIENT SECRET").into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = var("PORT")?.parse()?;
    let resource = var("RESOURCE").unwrap_or_else(|_| format!("http://127.0.0.1:{port}/mcp"));
    let mut server = Server::new("roundtrip-guarded", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("whoami", whoami))
        .tool(Tool::new("write", write).scopes(["mcp:write"]))
        .tool(Tool::new("publish", publish));
    if var("ROUNDTRIP_KEYS").is_ok() {
        server = server.seal(Keyring::from_env("ROUNDTRIP_KEYS")?);
    }
    let bound = server.into_http()?.authorize(guard(resource)?).bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}/mcp", bound.local_addr()?);
    Ok(bound.await?)
}
