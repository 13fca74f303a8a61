//! A server with one tool, on `http://127.0.0.1:8000/mcp`: `cargo run -p roundtrip --example hello-server`.

use roundtrip::{Args, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Whom to greet
    name: String,
}

async fn greet(Args(Greet { name }): Args<Greet>) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init(); // its address, warnings, what it waits for at the end
    let server = Server::new("hello", "1.0.0").tool(Tool::new("greet", greet).description("Say hello"));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    Ok(server.serve_http(address).await?)
}
