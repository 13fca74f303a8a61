//! The hello server of `cargo xtask weight`, over HTTP and stdio.

use roundtrip::{Args, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(Args(Greet { name }): Args<Greet>) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("hello", "1.0.0").tool(Tool::new("greet", greet).description("Say hello"));
    if std::env::args().any(|argument| argument == "stdio") {
        return Ok(server.serve_stdio().await?);
    }
    Ok(server.serve_http("127.0.0.1:8000").await?)
}
