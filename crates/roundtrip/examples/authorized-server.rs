//! A server that wants access tokens, on its own: `cargo run -p roundtrip --example authorized-server`.
//!
//! An issuer for tests signs the tokens here. In place of it, name your authorization server with `Authorize::issuer`.

#![expect(clippy::print_stdout, reason = "it shows who may do what")]

use roundtrip::testing::Issuer;
use roundtrip::{Args, Authorize, Caller, Client, Error, Server, Tool, ToolError};
use serde_json::json;
use tokio::sync::oneshot;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct File {
    folder: String,
}

async fn read_file(caller: Caller) -> String {
    let who = caller.claims().and_then(|claims| claims.subject.clone());
    format!("a file of {}", who.unwrap_or_default())
}

/// Any caller with `files:write` gets here; folders have scopes of their own.
async fn write_file(Args(file): Args<File>, caller: Caller) -> Result<String, ToolError> {
    caller.need_scopes([format!("files:write:{}", file.folder)])?;
    Ok(format!("written to {}", file.folder))
}

fn files() -> Server {
    Server::new("files", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("read_file", read_file))
        .tool(Tool::new("write_file", write_file).scopes(["files:write"]))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The URL at which clients reach the server: configured, never taken from a request.
    let resource = "http://127.0.0.1/mcp";
    let issuer = Issuer::bind(resource).await?;
    let guard = Authorize::at(resource)
        .issuer(issuer.name())
        .scopes(["files:read"])
        .implies("files:admin", ["files:read", "files:write", "files:write:inbox"]);
    let bound = files().into_http()?.authorize(guard).bind("127.0.0.1:0").await?;
    let address = bound.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(bound.until(async { drop(stopped.await) }).into_future());

    let url = format!("http://{address}/mcp");
    for (who, scopes) in [
        ("nobody", None),
        ("alice", Some("files:read")),
        ("bob", Some("files:read files:write")),
        ("carol", Some("files:admin")),
    ] {
        let mut client = Client::http(&url)?;
        if let Some(scopes) = scopes {
            let token = issuer.token(who).scopes(scopes.split(' ')).sign();
            client = client.header("authorization", format!("Bearer {token}"));
        }
        println!("{who}: {}", told(client.call_tool("read_file", json!({})).await));
        println!("{who}: {}", told(client.call_tool("write_file", json!({ "folder": "inbox" })).await));
    }
    let _ = stop.send(());
    serving.await??;
    Ok(())
}

/// Returns the text of a result, or the status and the challenge of a refusal.
fn told(answer: Result<roundtrip::wire::CallToolResult, Error>) -> String {
    match answer {
        Ok(result) => result.content[0].as_text().unwrap_or_default().to_owned(),
        Err(Error::Refused(refusal)) => {
            let challenge = refusal.headers.get("www-authenticate").and_then(|value| value.to_str().ok());
            let scope = challenge.and_then(|text| text.split("scope=\"").nth(1)?.split('"').next());
            format!("{}, needs {}", refusal.status.as_u16(), scope.unwrap_or_default())
        }
        Err(error) => error.to_string(),
    }
}
