//! The server of the manual's first chapter: `cargo run -p roundtrip --example getting-started`.

use roundtrip::{Args, Ask, Form, Server, Tool, ToolError};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Article {
    /// Title of the article
    title: String,
}

#[derive(Form)]
struct Release {
    /// Who has read it?
    #[form(min_length = 2)]
    editor: String,
    #[form(default = true)]
    newsletter: bool,
}

async fn publish(Args(Article { title }): Args<Article>, ask: Ask) -> Result<String, ToolError> {
    let release: Release = ask.form("release", format!("Publish {title:?}?")).await?;
    let post = if release.newsletter { " and sent to subscribers" } else { "" };
    Ok(format!("{title} was published{post}, read by {}", release.editor))
}

fn server() -> Server {
    Server::new("press", "1.0.0").tool(Tool::new("publish", publish).description("Publishes an article"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init(); // its address, warnings, what it waits for at the end
    Ok(server().serve_http("127.0.0.1:8000").await?)
}

#[cfg(test)]
mod tests {
    use roundtrip::testing::replay;
    use serde_json::json;

    /// The result is the same though the handler is dropped at every await, every reply lost and every round repeated.
    #[tokio::test]
    async fn it_publishes() -> Result<(), Box<dyn std::error::Error>> {
        let call = replay(super::server()).tool("publish", json!({ "title": "On Engines" }));
        let result = call.accept("release", json!({ "editor": "Ada" })).await?;
        let published = "On Engines was published and sent to subscribers, read by Ada";
        assert_eq!(result["content"][0]["text"], published);
        Ok(())
    }
}
