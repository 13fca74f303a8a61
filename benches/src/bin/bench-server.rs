//! Server under measurement: `bench-server [--authorize ALGORITHM N] http PORT [--tools N]` or `bench-server stdio`.
//!
//! With `--authorize` it lets only callers in that present one of the N access tokens which it prints, a line `token TOKEN` each.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

#[path = "../part.rs"]
mod part;
#[path = "../tools.rs"]
mod tools;

use roundtrip::authorize::Algorithm;
use roundtrip::http::Http;
use roundtrip::testing::Issuer;
use roundtrip::wire::ToolAnnotations;
use roundtrip::{Authorize, Parts, Server, Tool};

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

/// Lets callers in by tokens of an issuer in this process, and prints the tokens.
fn authorized(http: Http, algorithm: &str, tokens: usize) -> Result<Http, Box<dyn std::error::Error>> {
    const RESOURCE: &str = "https://bench.example/mcp";
    let algorithm = Algorithm::parse(algorithm).ok_or("no such algorithm")?;
    let issuer = Issuer::signing(algorithm, "https://login.example", RESOURCE)?;
    for number in 0..tokens {
        // Of one length, so that a request is as long with each of them.
        let token = issuer.token("alice").scopes(["files:read"]).claim("jti", format!("{number:08}"));
        println!("token {}", token.sign());
    }
    Ok(http.authorize(Authorize::testing(RESOURCE, &issuer).scopes(["files:read"])).checked()?)
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
    let (authorization, words) = match words {
        ["--authorize", algorithm, tokens, rest @ ..] => (Some((*algorithm, tokens.parse()?)), rest),
        all => (None, all),
    };
    match words {
        ["http", port] => {
            let mut http = server(fillers).into_http()?;
            if let Some((algorithm, tokens)) = authorization {
                http = authorized(http, algorithm, tokens)?;
            }
            let bound = http.bind(("127.0.0.1", port.parse()?)).await?;
            println!("listening on {}", bound.local_addr()?);
            bound.await?;
        }
        ["stdio"] => server(fillers).serve_stdio().await?,
        _ => {
            return Err(
                "usage: bench-server [--authorize ALGORITHM N] http PORT [--tools N] | bench-server stdio"
                    .into(),
            );
        }
    }
    Ok(())
}
