//! Metadata of the resource, and mistakes in its settings.

use axum::Router;
use roundtrip::{Authorize, Principal, Server, Tool};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Desk, ISSUER, RESOURCE, issuer, param, server};
use crate::peers::Web;
use crate::support::{Answer, Running, headers, message};

const PATH: &str = "/.well-known/oauth-protected-resource/mcp";

/// Sends a request without a body to any path.
async fn fetch(running: &Running, verb: &str, path: &str, headers: &str) -> Answer {
    let mut connection = running.connect().await;
    let head = format!("{verb} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    connection.raw(head.as_bytes()).await;
    let mut answer = connection.head().await;
    let length = answer.header("content-length").map_or(0, |length| length.parse().expect("a length"));
    answer.body = connection.exactly(if verb == "HEAD" { 0 } else { length }).await;
    answer
}

/// O8, O10, O11, O12, O15: a bound server publishes its metadata below its path, without a token, readable from any origin.
#[tokio::test]
async fn a_bound_server_publishes_its_metadata() {
    let set = |guard: Authorize| guard.scopes(["files:read"]).name("Files");
    let desk = Desk::guarded(server(), set).await;
    let answer = fetch(&desk.running, "GET", PATH, "Origin: https://any.example\r\n").await;
    assert_eq!(
        answer.json(),
        json!({
            "resource": RESOURCE,
            "authorization_servers": [ISSUER],
            "scopes_supported": ["files:read"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Files",
        })
    );
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    let head = fetch(&desk.running, "HEAD", PATH, "").await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")));
    let preflight = fetch(&desk.running, "OPTIONS", PATH, "Origin: https://any.example\r\n").await;
    assert_eq!((preflight.status, preflight.header("access-control-allow-headers")), (204, Some("*")));
    let posted = fetch(&desk.running, "POST", PATH, "").await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    let unguarded = Running::start(server()).await;
    assert_eq!(fetch(&unguarded, "GET", PATH, "").await.status, 404);
}

/// O11, O12: the identifier is published as it was configured, with or without a path.
#[tokio::test]
async fn the_identifier_is_exact() {
    for (resource, path) in [
        ("https://tools.example", "/.well-known/oauth-protected-resource"),
        ("https://tools.example/", "/.well-known/oauth-protected-resource"),
        ("https://tools.example/mcp/", "/.well-known/oauth-protected-resource/mcp/"),
        ("http://localhost:8000/mcp", "/.well-known/oauth-protected-resource/mcp"),
    ] {
        let guard = Authorize::testing(resource, &issuer());
        assert_eq!(guard.path(), path);
        let http = super::guarded(server(), guard);
        let running = Running::start_http(http).await;
        assert_eq!(fetch(&running, "GET", path, "").await.json()["resource"], resource);
    }
}

/// O13: the identifier is configured: neither `Host` nor forwarded headers change metadata or challenge.
#[tokio::test]
async fn requests_do_not_name_the_resource() {
    let desk = Desk::open(server()).await;
    let forged =
        "X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: http\r\nForwarded: host=evil.example\r\n";
    assert_eq!(fetch(&desk.running, "GET", PATH, forged).await.json()["resource"], RESOURCE);
    let refused = fetch(&desk.running, "GET", "/mcp", forged).await;
    assert_eq!(param(&refused, "resource_metadata").as_deref(), Some(super::METADATA));
}

fn mistake(guard: Authorize) -> String {
    let checked = server().into_http().expect("a server").authorize(guard).checked();
    checked.err().map(|error| error.to_string()).unwrap_or_default()
}

/// O12, O14, O16: mistakes have names, and say what to do.
#[test]
fn mistakes_are_named() {
    let good = || Authorize::at(RESOURCE).issuer(ISSUER);
    assert_eq!(mistake(good()), "");
    for (guard, expected) in [
        (Authorize::at(RESOURCE), "name at least one issuer"),
        (
            Authorize::at("http://tools.example/mcp").issuer(ISSUER),
            "http://tools.example/mcp` is not a resource identifier",
        ),
        (Authorize::at("https://tools.example/mcp#a").issuer(ISSUER), "is not a resource identifier"),
        (Authorize::at(RESOURCE).issuer("login"), "`login` is not an issuer"),
        (good().scopes(["offline_access"]), "leave it out of the scopes"),
        (good().scopes(["two words"]), "its scopes: a scope has visible ASCII characters"),
        (good().implies("admin", ["offline_access"]), "the scopes that `admin` implies"),
        (Authorize::at(RESOURCE).accept_untyped_tokens().issuer(ISSUER), "name that first"),
        (
            good().introspect(roundtrip::authorize::Introspection::at("https://login.example/introspect")),
            "needs credentials",
        ),
        (
            good().issuer("https://b.example").introspect(
                roundtrip::authorize::Introspection::at("https://login.example/introspect").client("a", "b"),
            ),
            "name it with `Introspection::issuer`",
        ),
    ] {
        let said = mistake(guard);
        assert!(said.starts_with("authorization at `") && said.contains(expected), "{expected}: {said}");
    }
}

/// O14: the scopes of offers are checked like those of the server.
#[test]
fn scopes_of_offers_are_checked() {
    for scope in ["offline_access", "two words", ""] {
        let server = Server::new("s", "1").tool(Tool::new("write", async || "").scopes([scope]));
        let said = server.build().expect_err("a mistake").to_string();
        assert!(said.starts_with("tool `write`: its scopes: "), "{said}");
    }
}

/// O16: a server whose principal is named twice, or whose settings have a mistake, is not bound, and lets no request in.
#[tokio::test]
async fn a_mistake_lets_no_request_in() {
    let good = || Authorize::at(RESOURCE).issuer(ISSUER);
    let http = || server().into_http().expect("a server");
    let anybody = |_: &http::request::Parts| Some(Principal::new("anybody"));
    for mistaken in [
        http().principal(anybody).authorize(good()),
        http().authorize(good()).principal(anybody),
        http().authorize(Authorize::at(RESOURCE)),
    ] {
        assert!(mistaken.clone().checked().is_err());
        let bound = mistaken.clone().bind("127.0.0.1:0").await;
        assert_eq!(bound.err().map(|error| error.kind()), Some(std::io::ErrorKind::InvalidInput));
        assert_eq!(Web::at(mistaken).post(&json!({})).await.status, 500);
    }
}

/// O16: beside a mounted service, the guard has the path and the service of its metadata.
#[tokio::test]
async fn a_mounted_server_publishes_its_metadata() {
    let issuer = issuer();
    let guard = Authorize::testing(RESOURCE, &issuer);
    let app = Router::new()
        .route_service(guard.path(), guard.metadata())
        .route_service("/mcp", server().into_http().expect("a server").authorize(guard));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let client = |path: &str| reqwest::Client::new().get(format!("http://{address}{path}")).send();
    let document = client(PATH).await.expect("an answer");
    assert_eq!(document.headers()["content-type"], "application/json");
    let document: Value = serde_json::from_str(&document.text().await.expect("text")).expect("JSON");
    assert_eq!(document["resource"], RESOURCE);
    let refused = client("/mcp").await.expect("an answer");
    assert_eq!(refused.status(), 401);
    let call = message(1, "tools/call", json!({ "name": "whoami", "arguments": {} }));
    let mut post = reqwest::Client::new().post(format!("http://{address}/mcp"));
    for (name, value) in headers(&call) {
        post = post.header(name, value);
    }
    let token = issuer.token("alice").sign();
    let answer = post.header("authorization", format!("Bearer {token}")).body(call.to_string()).send().await;
    assert_eq!(answer.expect("an answer").status(), 200);
    serving.abort();
}
