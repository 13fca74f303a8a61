//! Server of tasks under measurement: `task-server STORE http PORT [--at-once N]` or `task-server STORE work`.
//!
//! STORE is `memory`, `sqlite FILE` or `postgres`; the address of PostgreSQL is in the variable `ROUNDTRIP_TEST_POSTGRES`, which
//! `cargo xtask services -- ..` sets. With `http` the store is empty at first. With `work` the process serves nothing, and works on
//! the tasks of a store that another has begun. Stores are sealed.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

#[path = "../tools.rs"]
mod tools;

use std::error::Error;
use std::time::SystemTime;

use roundtrip::{Args, Ask, Keyring, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use roundtrip_store::{Postgres, Sqlite};
use schemars::JsonSchema;
use serde::Deserialize;

use tools::{deploy, echo};

/// Keys that nothing but a benchmark uses.
const KEYS: &str = "5f1d0c7a9e3b48624d8ac1f09b7e3562c0d4a81f6e2b9375184cde60af72b93d";

/// Asks one question, and says when its answer had arrived: in microseconds since 1970.
async fn resume(ask: Ask) -> Result<String, ToolError> {
    ask.confirm("go", "Go on?").await?;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(since.as_micros().to_string())
}

#[derive(Deserialize, JsonSchema)]
struct Report {
    bytes: usize,
    ends: bool,
}

/// Makes a text of this size, and returns it if it is to end.
async fn report(Args(Report { bytes, ends }): Args<Report>) -> String {
    let text = "r".repeat(bytes);
    if !ends {
        std::future::pending::<()>().await;
    }
    text
}

fn server(tasks: Tasks, at_once: Option<usize>) -> Server {
    let tasks = tasks.per_caller(usize::MAX).sep_2322();
    let tasks = at_once.into_iter().fold(tasks, Tasks::at_once);
    Server::new("task-server", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("echo", echo).description("Say what was said").task(When::Offered))
        .tool(Tool::new("deploy", deploy).description("Deploy a service").task(When::Offered))
        .tool(Tool::new("resume", resume).description("Say when it went on").task(When::Offered))
        .tool(Tool::new("report", report).description("Say much").task(When::Offered))
        .tasks(tasks)
}

async fn sqlite(file: &str, is_new: bool) -> Result<Tasks, Box<dyn Error>> {
    for end in ["", "-wal", "-shm"].iter().filter(|_| is_new) {
        // Where there is none, it is new already.
        let _ = std::fs::remove_file(format!("{file}{end}"));
    }
    Ok(Tasks::new(Sqlite::open(file).sealed_by(keys()?).await?))
}

/// Tasks in a schema of their own.
async fn postgres(is_new: bool) -> Result<Tasks, Box<dyn Error>> {
    use sqlx::Connection as _;
    let address = std::env::var("ROUNDTRIP_TEST_POSTGRES")?;
    if is_new {
        let mut connection = sqlx::PgConnection::connect(&address).await?;
        let empty = "DROP SCHEMA IF EXISTS roundtrip_bench CASCADE; CREATE SCHEMA roundtrip_bench";
        sqlx::raw_sql(empty).execute(&mut connection).await?;
    }
    let address = format!("{address}?options[search_path]=roundtrip_bench");
    Ok(Tasks::new(Postgres::connect(&address).sealed_by(keys()?).await?))
}

fn keys() -> Result<Keyring, Box<dyn Error>> {
    Ok(KEYS.parse()?)
}

/// Runs on one thread, because the cost of a request is measured.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (words, at_once) = match words.as_slice() {
        [rest @ .., "--at-once", number] => (rest, Some(number.parse()?)),
        all => (all, None),
    };
    let is_new = words.last() != Some(&"work");
    let (tasks, words) = match words {
        ["memory", rest @ ..] => (Tasks::new(MemoryTasks::new()), rest),
        ["sqlite", file, rest @ ..] => (sqlite(file, is_new).await?, rest),
        ["postgres", rest @ ..] => (postgres(is_new).await?, rest),
        _ => {
            return Err(
                "usage: task-server (memory|sqlite FILE|postgres) (http PORT [--at-once N]|work)".into()
            );
        }
    };
    match words {
        ["http", port] => {
            let bound = server(tasks, at_once).into_http()?.bind(("127.0.0.1", port.parse()?)).await?;
            println!("listening on {}", bound.local_addr()?);
            bound.await?;
            Ok(())
        }
        ["work"] => {
            let _worker = server(tasks, at_once).build()?;
            std::future::pending().await
        }
        _ => Err("wanted http PORT or work after the store".into()),
    }
}
