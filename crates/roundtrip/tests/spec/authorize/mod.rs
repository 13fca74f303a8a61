//! Access tokens: a server that is a resource server of OAuth 2.1, over real HTTP with signed tokens.

mod challenge;
mod flows;
mod identity;
mod metadata;
#[path = "../../common/proxied.rs"]
mod proxied;
mod proxies;
mod scopes;
mod tasks;

use roundtrip::http::Http;
use roundtrip::testing::Issuer;
use roundtrip::{Authorize, Caller, Server, Tool};
use serde_json::{Value, json};

use crate::support::{Answer, Running, headers, message, meta};

const RESOURCE: &str = "https://tools.example/mcp";
const METADATA: &str = "https://tools.example/.well-known/oauth-protected-resource/mcp";
const ISSUER: &str = "https://login.example";

fn issuer() -> Issuer {
    Issuer::new(ISSUER, RESOURCE).expect("an issuer")
}

/// A guarded server on loopback, and the issuer of its tokens.
struct Desk {
    running: Running,
    issuer: Issuer,
}

impl Desk {
    async fn open(server: Server) -> Self {
        Self::guarded(server, |guard| guard).await
    }

    async fn guarded(server: Server, set: impl FnOnce(Authorize) -> Authorize) -> Self {
        Self::with(issuer(), server, set).await
    }

    async fn with(issuer: Issuer, server: Server, set: impl FnOnce(Authorize) -> Authorize) -> Self {
        let guard = set(Authorize::testing(RESOURCE, &issuer));
        Self { running: Running::start_http(guarded(server, guard)).await, issuer }
    }

    /// A token for somebody, with scopes separated by spaces.
    fn token(&self, who: &str, scopes: &str) -> String {
        self.issuer.token(who).scopes(scopes.split_whitespace()).sign()
    }

    async fn send(&self, token: Option<&str>, message: &Value) -> Answer {
        let mut headers = headers(message);
        headers.extend(token.map(bearer));
        self.running.connect().await.post(&headers, message.to_string().as_bytes()).await
    }

    async fn request(&self, token: &str, method: &str, params: Value) -> Answer {
        self.send(Some(token), &message(1, method, params)).await
    }

    async fn call(&self, token: &str, tool: &str, arguments: Value) -> Answer {
        self.request(token, "tools/call", json!({ "name": tool, "arguments": arguments })).await
    }
}

fn guarded(server: Server, guard: Authorize) -> Http {
    server.into_http().expect("a server").authorize(guard).checked().expect("a guard")
}

fn bearer(token: &str) -> (String, String) {
    ("Authorization".to_owned(), format!("Bearer {token}"))
}

/// The text of a tool's result.
fn text(answer: &Answer) -> String {
    let result = answer.result();
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("text: {result}")).to_owned()
}

/// A parameter of the challenge of an answer.
fn param(answer: &Answer, name: &str) -> Option<String> {
    let challenge = answer.header("www-authenticate").unwrap_or_else(|| panic!("a challenge: {answer:?}"));
    let params = challenge.strip_prefix("Bearer ").unwrap_or_else(|| panic!("Bearer: {challenge}"));
    let found = params.split(", ").find_map(|param| param.strip_prefix(&format!("{name}=\"")));
    found.map(|value| value.trim_end_matches('"').to_owned())
}

/// Status of an answer that lacks scopes, and the scopes that it names.
fn lacking(answer: &Answer) -> (u16, Option<String>) {
    assert_eq!(param(answer, "error").as_deref(), Some("insufficient_scope"), "{answer:?}");
    assert_eq!(param(answer, "resource_metadata").as_deref(), Some(METADATA));
    (answer.status, param(answer, "scope"))
}

/// A tool that says who calls.
fn whoami() -> Tool {
    Tool::new("whoami", async |caller: Caller| {
        caller.principal.map(|principal| principal.to_string()).unwrap_or_default()
    })
}

fn server() -> Server {
    Server::new("desk", "1").tool(whoami())
}

/// `_meta` of a client that can be asked, and given tasks.
fn capable() -> Value {
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    meta
}
