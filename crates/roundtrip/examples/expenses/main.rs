//! A whole application: expense reports, with tools that ask, prompts, resources, and callers kept apart.
//!
//! ```sh
//! cargo run -p roundtrip --example expenses                         # a client and the server in one process
//! cargo run -p roundtrip --example expenses child                   # the same over stdio, the server a child process
//! cargo run -p roundtrip --example expenses http 127.0.0.1:8000     # the server, mounted into axum
//! cargo run -p roundtrip --example expenses call http://127.0.0.1:8000/mcp
//! ```

#![expect(clippy::print_stdout, reason = "it shows what it does")]

mod books;
mod client;
mod server;
#[cfg(test)]
mod tests;

use axum::Router;
use axum::routing::get;
use roundtrip::{Client, Keyring, Principal};
use tokio::net::TcpListener;

use books::Books;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => client::visit(Client::in_process(server::server(Books::default()))?).await,
        ["child"] => {
            let mut server = std::process::Command::new(std::env::current_exe()?);
            server.arg("stdio");
            client::visit(Client::stdio(server)).await
        }
        ["stdio"] => Ok(server::server(Books::default()).serve_stdio().await?),
        ["http", address] => serve(address).await,
        ["call", url] => client::visit(Client::http(url)?.header("x-user", "ada")).await,
        other => anyhow::bail!("nothing, child, stdio, http ADDRESS or call URL, not {other:?}"),
    }
}

/// Serves the application over HTTP, beside a page that is none of ours.
async fn serve(address: &str) -> anyhow::Result<()> {
    let mut server = server::server(Books::default());
    // Instances that share these keys carry on each other's flows.
    if std::env::var_os("ROUNDTRIP_KEYS").is_some() {
        server = server.seal(Keyring::from_env("ROUNDTRIP_KEYS")?);
    }
    // Stands in for your authentication.
    let mcp = server.into_http()?.principal(|parts| {
        parts.headers.get("x-user").and_then(|user| user.to_str().ok()).map(Principal::new)
    });
    let app = Router::new().route_service("/mcp", mcp).route("/health", get(async || "well"));
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
