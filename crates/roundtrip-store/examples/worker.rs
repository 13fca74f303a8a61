//! A process that works on tasks and serves nothing, and another that hands tasks to it. They share one SQLite file.
//! `cargo run -p roundtrip-store --example worker -- work tasks.db`, and beside it `.. -- call tasks.db`.

#![expect(clippy::print_stdout, reason = "it shows what happened")]

use std::error::Error;

use roundtrip::{Ask, Client, FormRequest, Server, Status, Tasks, Tool, ToolError, When};
use roundtrip_store::Sqlite;
use serde_json::json;

/// Stands for keys in a file or a variable: `openssl rand -hex 32`.
const KEYS: &str = "5f1d0c7a9e3b48624d8ac1f09b7e3562c0d4a81f6e2b9375184cde60af72b93d";

async fn report(ask: Ask, status: Status) -> Result<String, ToolError> {
    if !ask.confirm("sure", "This reads the whole archive. Go on?").await? {
        return Ok("nothing was read".into());
    }
    status.set("reading the archive");
    // A worker that dies after this step is replaced by one that does not read again.
    let rows = ask.remember("rows", async || 42).await?;
    Ok(format!("{rows} rows"))
}

/// The server of both processes: they share the tool and the store, and differ in how many tasks they work on at once.
async fn server(file: &str, at_once: usize) -> Result<Server, Box<dyn Error>> {
    let store = Sqlite::open(file).sealed_by(KEYS.parse()?).await?;
    let report = Tool::new("report", report).task(When::Required);
    Ok(Server::new("reports", "1.0.0").tool(report).tasks(Tasks::new(store).at_once(at_once)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work", file] => {
            let _worker = server(file, 16).await?.build()?;
            std::future::pending().await
        }
        ["call", file] => {
            // In earnest this is `serve_http`, and the client is elsewhere.
            let client = Client::in_process(server(file, 0).await?)?;
            let client = client.on_form(async |form: FormRequest| form.accept(json!({ "confirm": true })));
            println!("{}", client.call_tool("report", ()).await?.text());
            Ok(())
        }
        _ => Err("usage: worker (work|call) FILE".into()),
    }
}
