//! An instance of a fleet, whose tools ask nothing.
//!
//! `PORT` is the port, `INSTANCE` its name, `ROUNDTRIP_KEYS` the keys that all instances share.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::env::var;
use std::error::Error;

use roundtrip::{Catalog, Keyring, Progress, Server, Tool};

/// Steps that `count` reports.
const STEPS: u32 = 3;

/// Names the instance and its process, which is another after a restart.
async fn whereabouts() -> String {
    format!("{} {}", var("INSTANCE").unwrap_or_default(), std::process::id())
}

/// Reports its progress, so that it is answered by a stream.
async fn count(progress: Progress) -> String {
    for step in 1..=STEPS {
        progress.report((step, STEPS));
        tokio::task::yield_now().await;
    }
    whereabouts().await
}

/// Tells those who listen at this instance that the tools have changed.
async fn change(catalog: Catalog) -> String {
    catalog.tools_changed();
    whereabouts().await
}

/// Ends the process without an answer, as a crash would.
async fn crash() -> String {
    std::process::abort()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = var("PORT")?.parse()?;
    let server = Server::new("roundtrip-fleet", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("whereabouts", whereabouts))
        .tool(Tool::new("count", count))
        .tool(Tool::new("change", change))
        .tool(Tool::new("crash", crash))
        .seal(Keyring::from_env("ROUNDTRIP_KEYS")?);
    let bound = server.into_http()?.bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}/mcp", bound.local_addr()?);
    Ok(bound.await?)
}
