//! Neva behind the command line the load generator expects: `neva-server http PORT`.
//!
//! It is written the way its documentation shows: `#[tool]` for the tools, `ctx.elicit` for the questions, the
//! HTTP engine at its defaults. That includes the store of committed answers, which is on by default. The handler
//! runs from the top in every round and builds all its questions again, because `elicit` takes them built.
//!
//! Neva binds its socket itself and does not say which port it got. For PORT 0 a free one is found beforehand, and
//! the line the generator waits for is printed once somebody answers there.
//!
//! Calls that ask for a task (`task` in the parameters: it does not look at the extension's declaration) become one. A tool asks
//! differently in a task: it waits in memory, and is not run again.
//!
//! Left out: `--tools N`, since its macros make no tools at run time, and `stdio`; so the scenarios `tools`, `list`
//! and `stdio` cannot be run.

use std::{env, net::TcpListener, time::Duration};

use neva::prelude::*;
use neva::types::elicitation::ElicitRequestParams;
use serde::Deserialize;

#[derive(Deserialize, schemars::JsonSchema)]
struct Confirm {
    approve: bool,
    reason: String,
}

#[tool(descr = "Says back what it is told", task_support = "optional")]
async fn echo(text: String) -> String {
    text
}

#[tool(descr = "Deploys a service, once it is confirmed", task_support = "optional")]
async fn deploy(ctx: Context, service: String, env: String, rounds: u32) -> Result<String, Error> {
    let mut last_reason = String::new();
    for round in 1..=rounds {
        let key = if round == 1 { "confirm".to_owned() } else { format!("confirm-{round}") };
        let question =
            ElicitRequestParams::form(format!("Deploy {service} to {env}?")).with_schema::<Confirm>();
        let answer = if ctx.is_task() {
            ctx.task().elicit(question.into()).await?
        } else {
            ctx.elicit(key, question.into()).await?
        };
        let Confirm { approve, reason } = answer.map(|confirm: Confirm| confirm)?;
        if !approve {
            return Err(Error::new(ErrorCode::InvalidRequest, format!("not deployed: {reason}")));
        }
        last_reason = reason;
    }
    Ok(format!("deployed {service} to {env} after {rounds} answers: {last_reason}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["http", port] = words[..] else { return Err("usage: neva-server http PORT".into()) };
    let address = TcpListener::bind(("127.0.0.1", port.parse()?))?.local_addr()?;
    tokio::spawn(async move {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        println!("listening on {address}");
    });
    let address = address.to_string();
    App::new()
        .with_options(|options| {
            options
                .with_name("neva-server")
                .with_version("0.0.0")
                .with_tasks()
                .with_http(|http| http.bind(&address).with_endpoint("/mcp"))
        })
        .run()
        .await;
    Ok(())
}
