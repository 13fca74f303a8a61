//! Server under measurement: `bench-server http PORT [--tools N]` or `bench-server stdio`.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

#[path = "../part.rs"]
mod part;
#[path = "../tools.rs"]
mod tools;

use roundtrip::wire::ToolAnnotations;
use roundtrip::{Parts, Server, Tool};

use part::{PART, PARTS};
use tools::{deploy, echo};

async fn parts(mut out: Parts) -> Parts {
    for _ in 0..PARTS {
        out.text(PART).await;
    }
    out
}

fn server(fillers: usize) -> Server {
    let server = Server::new("bench-server", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("echo", echo).description("Say what was said"))
        .tool(Tool::new("deploy", deploy).description("Deploy a service, once it is confirmed"))
        .tool(Tool::new("parts", parts).description("Write a long log"))
        .max_rounds(100);
    (0..fillers).fold(server, |server, number| {
        let hints = ToolAnnotations { read_only_hint: Some(true), ..ToolAnnotations::default() };
        let filler =
            Tool::new(format!("filler_{number}"), echo).description("Takes up room").annotations(hints);
        server.tool(filler)
    })
}

/// Runs on one thread, because the cost of a call is measured.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (fillers, words) = match words.as_slice() {
        [rest @ .., "--tools", number] => (number.parse()?, rest),
        all => (0, all),
    };
    match words {
        ["http", port] => {
            let bound = server(fillers).into_http()?.bind(("127.0.0.1", port.parse()?)).await?;
            println!("listening on {}", bound.local_addr()?);
            bound.await?;
        }
        ["stdio"] => server(fillers).serve_stdio().await?,
        _ => return Err("usage: bench-server http PORT [--tools N] | bench-server stdio".into()),
    }
    Ok(())
}
