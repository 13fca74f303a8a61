//! Server processes that share a ledger.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use roundtrip::client::{Pending, Turn};
use roundtrip::{Ask, Client, Keyring, Server, State, Tool, ToolError};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::unique;

/// Variables that make a test the server that another process of the same test talks to.
pub(crate) const STORE: &str = "ROUNDTRIP_TEST_STORE";
pub(crate) const LOG: &str = "ROUNDTRIP_TEST_LOG";
pub(crate) const HANGS: &str = "ROUNDTRIP_TEST_HANGS";

/// Keys that all processes share.
pub(crate) const KEYS: &str = "0101010101010101010101010101010101010101010101010101010101010101";

/// Effects, appended to a file outside the store.
#[derive(Clone)]
pub(crate) struct Effects(pub(crate) PathBuf);

impl Effects {
    pub(crate) fn append(&self, line: &str) {
        use std::io::Write as _;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&self.0);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("an effect");
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.effects.0);
    }
}

/// Asks, and pays outside of `once`: only the ledger keeps it from being done twice.
async fn pay(ask: Ask, State(effects): State<Effects>) -> Result<String, ToolError> {
    let order = ask.remember("order", async || unique()).await?;
    ask.confirm("sure", "Pay?").await?;
    effects.append(&order);
    if std::env::var_os(HANGS).is_some() {
        std::future::pending::<()>().await;
    }
    Ok(format!("{order} by {}", std::process::id()))
}

/// Serves until the process is killed. Only a server process gets past the first line.
async fn serve() -> bool {
    let Ok(store) = std::env::var(STORE) else { return false };
    let effects = Effects(std::env::var_os(LOG).expect("a log").into());
    let server = Server::new("shop", "1").tool(Tool::new("pay", pay)).state(effects);
    let server = server.seal(KEYS.parse::<Keyring>().expect("keys"));
    let ring = || KEYS.parse::<Keyring>().expect("keys");
    let lease = Duration::from_secs(1);
    let (kind, place) = store.split_once('|').expect("a kind and a place");
    let server = match kind {
        #[cfg(feature = "sqlite")]
        "sqlite" => server.ledger(
            roundtrip_store::Sqlite::open(place).sealed_by(ring()).lease(lease).await.expect("a store"),
        ),
        #[cfg(feature = "postgres")]
        "postgres" => server.ledger(
            roundtrip_store::Postgres::connect(place).sealed_by(ring()).lease(lease).await.expect("a store"),
        ),
        #[cfg(feature = "redis")]
        "redis" => {
            let (url, prefix) = place.split_once('|').expect("a URL and a prefix");
            let opening = roundtrip_store::Redis::connect(url).prefix(prefix).sealed_by(ring());
            server.ledger(opening.lease(lease).await.expect("a store"))
        }
        other => panic!("no such store: {other}"),
    };
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    server.serve_http("127.0.0.1:0").await.expect("an end in good order");
    true
}

/// Processes of one test, on one store.
pub(crate) struct Fleet {
    test: String,
    pub(crate) store: String,
    pub(crate) effects: Effects,
}

/// A server process; it ends with its owner.
pub(crate) struct Running {
    pub(crate) process: Child,
    pub(crate) client: Client,
}

impl Fleet {
    pub(crate) fn new(test: &str, store: String) -> Self {
        let effects = Effects(std::env::temp_dir().join(unique()));
        Self { test: test.to_owned(), store, effects }
    }

    /// Returns the command that runs this test again as another process of it.
    pub(crate) fn command(&self, hangs: bool) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("our own path"));
        command
            .args(["--exact", &self.test, "--nocapture"])
            .env(STORE, &self.store)
            .env(LOG, &self.effects.0);
        if hangs {
            command.env(HANGS, "1");
        }
        command.stdout(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Starts a server.
    pub(crate) async fn start(&self, hangs: bool) -> Running {
        Self::launch(self.command(hangs)).await
    }

    /// Runs the command of a server, and reads from its log where it is.
    pub(crate) async fn launch(mut command: Command) -> Running {
        let mut process = command.stderr(Stdio::piped()).spawn().expect("a process");
        let mut log = BufReader::new(process.stderr.take().expect("its log")).lines();
        let url = loop {
            let line = log.next_line().await.expect("a log").expect("an address before the end of the log");
            if let Some((_, url)) = line.split_once("serving MCP at ") {
                break url.trim().to_owned();
            }
        };
        // Read on, or the server stands still when the pipe is full.
        tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        Running { process, client: Client::http(&url).expect("a URL") }
    }
}

impl Running {
    /// Begins a flow here, and answers its question.
    async fn answered(&self) -> Pending {
        let Turn::Asked(pending) = self.client.call_tool("pay", json!({})).one_round().await.expect("a turn")
        else {
            panic!("it should have asked");
        };
        pending.answer("sure", json!({ "confirm": true })).expect("an answer")
    }
}

async fn resume(client: Client, pending: Pending) -> String {
    match client.resume(pending).await.expect("a turn") {
        Turn::Done(result) => result.content[0].as_text().expect("a text").to_owned(),
        other => panic!("not done: {other:?}"),
    }
}

/// M6: one answer that is sent to two processes many times at once runs once, and all get its reply. A process that is killed
/// while it runs a round leaves the round to the other.
async fn processes_share_a_ledger(fleet: Fleet) {
    let (one, other) = (fleet.start(false).await, fleet.start(false).await);
    for flow in 1..=10 {
        let answered = one.answered().await;
        let mut repeats = tokio::task::JoinSet::new();
        for number in 0..8 {
            let client = if number % 2 == 0 { one.client.clone() } else { other.client.clone() };
            repeats.spawn(resume(client, answered.clone()));
        }
        let mut replies = repeats.join_all().await;
        replies.dedup();
        assert_eq!((replies.len(), fleet.effects.lines().len()), (1, flow), "{replies:?}");
    }
    let mut doomed = fleet.start(true).await;
    let answered = doomed.answered().await;
    let before = fleet.effects.lines().len();
    let lost = tokio::spawn(resume(doomed.client.clone(), answered.clone()));
    while fleet.effects.lines().len() == before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    doomed.process.kill().await.expect("its end");
    let reply = resume(other.client.clone(), answered.clone()).await;
    assert!(reply.ends_with(&format!("by {}", other.process.id().expect("an id"))), "{reply}");
    assert_eq!(resume(one.client.clone(), answered).await, reply);
    assert_eq!(fleet.effects.lines().len(), before + 2, "once by the dead, once by the living");
    lost.abort();
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn on_one_sqlite_file() {
    if !serve().await {
        let site = crate::support::SqliteSite::new();
        let store = format!("sqlite|{}", site.file().display());
        processes_share_a_ledger(Fleet::new("processes::on_one_sqlite_file", store)).await;
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn on_postgres() {
    if !serve().await
        && let Some(site) = crate::support::PostgresSite::new().await
    {
        let store = format!("postgres|{}", site.url);
        processes_share_a_ledger(Fleet::new("processes::on_postgres", store)).await;
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn on_redis() {
    if !serve().await
        && let Some(site) = crate::support::RedisSite::new()
    {
        let store = format!("redis|{}|{}", site.url, site.prefix);
        processes_share_a_ledger(Fleet::new("processes::on_redis", store)).await;
    }
}
