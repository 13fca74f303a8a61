//! Every kind of client at every kind of server, on both transports, with a tool that asks (versioning, "Compatibility
//! Matrix").

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use roundtrip::server::Peer;
use roundtrip::stdio::serve_lines;
use roundtrip::wire::ProtocolVersion;
use roundtrip::{Ask, Client, Error, Form, FormRequest, Handshake, Server, Tool, ToolError};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::fixture::text;

const SERVER: &str = "ROUNDTRIP_TEST_ERA";

/// What one side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Modern,
    Both,
    Old,
}

const ALL: [Speaks; 3] = [Speaks::Modern, Speaks::Both, Speaks::Old];

#[derive(Form)]
struct Party {
    people: u8,
}

async fn book(ask: Ask) -> Result<String, ToolError> {
    let Party { people } = ask.form("party", "How many people?").await?;
    Ok(format!("a table for {people}"))
}

fn server(speaks: Speaks) -> Server {
    let handshake = if speaks == Speaks::Modern { Handshake::refused() } else { Handshake::sessions() };
    Server::new("matrix", "1").tool(Tool::new("book", book)).handshake(handshake)
}

/// What a server that has never heard of 2026-07-28 says to it.
const UNHEARD_OF: &str = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#;

async fn only_old(request: Request, next: Next) -> Response {
    let modern = request.headers().get("mcp-protocol-version").is_some_and(|version| version == "2026-07-28");
    if modern {
        let headers = [("content-type", "application/json")];
        return (StatusCode::BAD_REQUEST, headers, UNHEARD_OF).into_response();
    }
    next.run(request).await
}

async fn over_http(speaks: Speaks) -> (Client, JoinHandle<()>) {
    let http = server(speaks).into_http().expect("a server");
    let mut app = Router::new().route_service("/mcp", http);
    if speaks == Speaks::Old {
        app = app.layer(from_fn(only_old));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.expect("serving") });
    (Client::http(url).expect("a URL"), serving)
}

fn over_stdio(speaks: Speaks) -> Client {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command
        .args(["--quiet", "--nocapture", "--exact", "old::matrix::serves_when_started_as_a_child"])
        .env(SERVER, format!("{speaks:?}"));
    Client::stdio(command)
}

/// Not a test of its own: the server that the matrix starts.
#[tokio::test]
async fn serves_when_started_as_a_child() {
    let Ok(era) = std::env::var(SERVER) else { return };
    let speaks = ALL.into_iter().find(|speaks| format!("{speaks:?}") == era).expect("an era");
    if speaks != Speaks::Old {
        return server(speaks).serve_stdio().await.expect("served");
    }
    let (input, mut forwarded) = {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        (theirs, ours)
    };
    let endpoint = server(speaks).build().expect("a server");
    let served = tokio::spawn(async move {
        serve_lines(&endpoint, &Peer::default(), input, tokio::io::stdout()).await.expect("served");
    });
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.expect("a line") {
        if line.contains("io.modelcontextprotocol/protocolVersion") {
            let id = serde_json::from_str::<serde_json::Value>(&line).expect("JSON")["id"].clone();
            let refused = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "no" } });
            tokio::io::stdout().write_all(format!("{refused}\n").as_bytes()).await.expect("written");
        } else {
            forwarded.write_all(format!("{line}\n").as_bytes()).await.expect("forwarded");
        }
    }
    drop(forwarded);
    served.await.expect("no panic");
}

fn speaking(client: Client, speaks: Speaks) -> Client {
    let client = client.on_form(async |form: FormRequest| form.accept(json!({ "people": 2 })));
    match speaks {
        Speaks::Modern => client.protocol(ProtocolVersion::LATEST),
        Speaks::Both => client,
        Speaks::Old => client.protocol(ProtocolVersion::V2025_11_25),
    }
}

async fn check(transport: &str, client: Client, at: Speaks, of: Speaks) {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let call = speaking(client, at).call_tool("book", ()).on_round(move |round| {
        seen.lock().expect("no panic").extend(round.questions().map(|question| question.key().to_owned()));
        Ok::<(), Error>(())
    });
    let called = call.await;
    match (at, of) {
        // Neither has a word of the other's, and says which words it would take.
        (Speaks::Modern, Speaks::Old) | (Speaks::Old, Speaks::Modern) => match called {
            Err(Error::PeerIncompatible(why)) => {
                let why = why.to_string();
                assert!(why.contains("2025-11-25") || why.contains("2026-07-28"), "{transport}: {why}");
            }
            other => panic!("{transport}: a {at:?} client at a server that speaks {of:?}: {other:?}"),
        },
        _ => {
            let result = called.unwrap_or_else(|error| panic!("{transport}: {at:?} at {of:?}: {error}"));
            assert_eq!(text(&result), "a table for 2", "{transport}: {at:?} at {of:?}");
            // Modern questions have the keys of their author; in the old words they have none, and are given some. Where
            // both speak both, the newer one is spoken.
            let modern = at != Speaks::Old && of != Speaks::Old;
            let key = if modern { "party" } else { "elicitation-1" };
            assert_eq!(*keys.lock().expect("no panic"), [key], "{transport}: {at:?} at {of:?}");
        }
    }
}

/// L6: over HTTP, every client and every server that have a revision in common use it, and those that have none say so.
#[tokio::test]
async fn every_client_meets_every_server_over_http() {
    for of in ALL {
        for at in ALL {
            let (client, serving) = over_http(of).await;
            check("http", client, at, of).await;
            serving.abort();
        }
    }
}

/// L6: over stdio too.
#[tokio::test]
async fn every_client_meets_every_server_over_stdio() {
    for of in ALL {
        for at in ALL {
            let client = over_stdio(of);
            check("stdio", client.clone(), at, of).await;
            client.close().await;
        }
    }
}
