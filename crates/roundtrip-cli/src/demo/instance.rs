//! Instances of the demo's server: processes of this program, each on a loopback port of its own.

use std::error::Error;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use roundtrip::{Args, Ask, Client, Form, Keyring, Progress, Server, State, Tasks, Tool, ToolError};
use roundtrip_store::Sqlite;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::tasks_folder::{DEPOSIT, HANDLER, RanLog, database_in};

/// Subcommand that serves one instance.
const COMMAND: &str = "demo-instance";
/// Environment variable with the keys that all instances share. Arguments could be read by every user of the machine.
const KEYS: &str = "ROUNDTRIP_KEYS";

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// Name of the restaurant
    restaurant: String,
}

#[derive(Form)]
struct Party {
    /// From 1 to 12
    #[form(min = 1, max = 12)]
    people: u8,
}

#[derive(Form)]
struct When {
    /// A day, such as 2026-12-24
    #[form(format = "date")]
    date: String,
}

async fn book(
    Args(booking): Args<Booking>,
    ask: Ask,
    progress: Progress,
    State(ran): State<RanLog>,
) -> Result<String, ToolError> {
    ran.note(HANDLER)?;
    let party: Party = ask.form("party", "How many people?").await?;
    let deposit: u32 = ask
        .once("deposit", async |_| {
            progress.report((1, 2, "asks the restaurant for its deposit, once"));
            ran.note(DEPOSIT)?;
            Ok::<_, ToolError>(20 * u32::from(party.people))
        })
        .await?;
    let when: When = ask.form("when", format!("Which day? The deposit is {deposit}.")).await?;
    Ok(format!("{} for {} on {}, deposit {deposit}", booking.restaurant, party.people, when.date))
}

/// Builds the server. With a folder, its calls are tasks on the database there.
async fn server(folder: Option<&Path>) -> Result<Server, Box<dyn Error>> {
    let book = Tool::new("book_table", book).description("Book a table");
    let server = Server::new("bookings", env!("CARGO_PKG_VERSION"))
        .state(RanLog::new(folder))
        .seal(Keyring::from_env(KEYS)?);
    let Some(folder) = folder else { return Ok(server.tool(book)) };
    let store = Sqlite::open(database_in(folder)).sealed_by(Keyring::from_env(KEYS)?).await?;
    Ok(server.tool(book.task(roundtrip::When::Offered)).tasks(Tasks::new(store)))
}

/// Serves one instance until standard input ends. That happens when the demo ends, however it does.
pub(crate) async fn serve(folder: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let bound = server(folder).await?.into_http()?.bind("127.0.0.1:0").await?;
    anstream::println!("{}", bound.local_addr()?);
    let demo_ends = async {
        // Nothing is ever written there, and a broken pipe is an end too.
        let _ = tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await;
    };
    Ok(bound.until(demo_ends).await?)
}

/// A running instance, and a client that talks to no other. The process is killed when this is dropped.
pub(crate) struct Instance {
    pub(crate) name: &'static str,
    pub(crate) pid: u32,
    pub(crate) client: Client,
    process: Child,
}

impl Instance {
    /// Starts a process, with tasks if it gets a folder for them, and waits until it listens.
    pub(crate) async fn start(
        name: &'static str,
        keys: &str,
        folder: Option<&Path>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(COMMAND)
            .args(folder)
            .env(KEYS, keys)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let ended = || format!("{name} ended before it listened");
        let (pid, stdout) = process.id().zip(process.stdout.take()).ok_or_else(ended)?;
        let address = BufReader::new(stdout).lines().next_line().await?.ok_or_else(ended)?;
        // A proxy for the rest of the world is none for this machine.
        let client = Client::http(format!("http://{address}/mcp"))?
            .http_client(reqwest::Client::builder().no_proxy().build()?)
            .info("demo", env!("CARGO_PKG_VERSION"));
        Ok(Self { name, pid, client, process })
    }

    /// Kills the process, and waits until it is gone.
    pub(crate) async fn kill(mut self) -> std::io::Result<ExitStatus> {
        self.process.start_kill()?;
        self.process.wait().await
    }
}
