//! A worker process: serves calls and works on tasks until it is killed, and notes what it does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roundtrip::task::TaskStore;
use roundtrip::{Args, Ask, Form, Keyring, Server, State, Tasks, Tool, ToolError, When};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::jobs::{Role, tool_of};
use crate::notes::Log;
use crate::support::unique;
use crate::watched::Watched;

/// Variables that make a test the worker of another process of the same test.
pub(crate) const STORE: &str = "ROUNDTRIP_CRASH_STORE";
pub(crate) const LOG: &str = "ROUNDTRIP_CRASH_LOG";
pub(crate) const LEASE: &str = "ROUNDTRIP_CRASH_LEASE";
pub(crate) const ROLE: &str = "ROUNDTRIP_CRASH_ROLE";
pub(crate) const WORKER_SEED: &str = "ROUNDTRIP_CRASH_WORKER_SEED";

/// Keys that all processes share.
pub(crate) const KEYS: &str = "0101010101010101010101010101010101010101010101010101010101010101";
/// Keys that no worker has.
pub(crate) const LOST_KEYS: &str = "0202020202020202020202020202020202020202020202020202020202020202";

/// Longest time that a part of a step takes.
const WORK: Duration = Duration::from_millis(30);
/// Tasks that one process works on at once: enough that a kill hits several.
const AT_ONCE: usize = 4;

#[derive(Deserialize, schemars::JsonSchema)]
struct Job {
    job: String,
}

/// Arguments of the tool `changed` in the new release.
#[derive(Deserialize, schemars::JsonSchema)]
struct RankedJob {
    job: String,
    #[expect(dead_code, reason = "that it has to be there is what matters")]
    rank: u32,
}

#[derive(Form)]
struct Amount {
    amount: u32,
}

/// Log and random numbers of a handler.
#[derive(Clone)]
struct Site {
    role: Role,
    lease: Duration,
    log: Log,
    chance: Arc<Chance>,
}

async fn work(ask: Ask, Args(Job { job }): Args<Job>, State(site): State<Site>) -> Result<String, ToolError> {
    steps(ask, job, site, |_| unique()).await
}

async fn ranked(
    ask: Ask,
    Args(ranked): Args<RankedJob>,
    State(site): State<Site>,
) -> Result<String, ToolError> {
    steps(ask, ranked.job, site, |_| unique()).await
}

/// The tool `retyped` of the release before: its first step is a number.
async fn numbered(
    ask: Ask,
    Args(Job { job }): Args<Job>,
    State(site): State<Site>,
) -> Result<String, ToolError> {
    steps(ask, job, site, |site| site.chance.next()).await
}

/// Three steps with two questions between them. The tool `detached` asks a first one in a round, and `busy` asks beside its second
/// step. The value of the first step may have a type of its own.
async fn steps<T: Value>(
    ask: Ask,
    job: String,
    site: Site,
    value: fn(&Site) -> T,
) -> Result<String, ToolError> {
    let note = |event: &str| site.log.note(&job, event);
    note(&format!("run {}", site.role.name()));
    if tool_of(&job) == "detached" {
        ask.confirm("begin", format!("Begin {job}?")).await?;
        note("detaching");
        ask.detach("rest").await?;
        note("detached");
    }
    let first = step(&ask, &job, &site, ("first", value), ".").await?;
    note("asking");
    let text = |_: &Site| unique();
    let amount = async {
        let amount: Amount = ask.form("amount", format!("How many for {job}?")).await?;
        Ok::<_, ToolError>(amount.amount)
    };
    let (amount, second) = if tool_of(&job) == "busy" {
        tokio::try_join!(amount, step(&ask, &job, &site, ("second", text), &first))?
    } else {
        (amount.await?, step(&ask, &job, &site, ("second", text), &first).await?)
    };
    note("asking");
    let sure = ask.confirm("sure", format!("{amount} for {job}?")).await?;
    let third = step(&ask, &job, &site, ("third", text), &format!("{first},{second}")).await?;
    note("ending");
    Ok(format!("{amount} {sure} {first} {second} {third}"))
}

/// Result of a step.
trait Value: Serialize + DeserializeOwned + ToString + Send {}

impl<T: Serialize + DeserializeOwned + ToString + Send> Value for T {}

/// Takes a step whose result is a new value each time it runs. Its effect is a line of the log, with the results it has seen.
async fn step<T: Value>(
    ask: &Ask,
    job: &str,
    site: &Site,
    (key, value): (&str, fn(&Site) -> T),
    seen: &str,
) -> Result<String, ToolError> {
    site.log.note(job, &format!("before {key}"));
    let value = ask
        .once(key, async |step| {
            site.log.note(job, &format!("inside {key}"));
            // Longer than the pause after which the tool `slow` becomes a task, so that it does so in a step.
            tokio::time::sleep(2 * SLOW).await;
            if tool_of(job) == "blocking" && key == "second" {
                // A thread of the runtime, for longer than its lease, as handlers should not.
                std::thread::sleep(site.lease * 3 / 2);
            }
            if tool_of(job) == "busy" && key == "second" {
                // Long enough that its question is shown, and at times answered.
                site.chance.moment(10 * WORK).await;
            }
            site.chance.moment(WORK).await;
            let value = value(site);
            let (written, idempotency_key) = (value.to_string(), step.idempotency_key());
            site.log.note(job, &format!("effect {key} {written} {idempotency_key} {seen}"));
            site.chance.moment(WORK).await;
            Ok::<_, ToolError>(value)
        })
        .await?
        .to_string();
    site.log.note(job, &format!("stored {key} {value}"));
    Ok(value)
}

/// Time after which a call of the tool `slow` becomes a task.
const SLOW: Duration = Duration::from_millis(1);

/// Returns the server without its store.
fn server(site: Site) -> Server {
    let server = Server::new(site.role.service(), "1.0.0")
        .tool(Tool::new("required", work).task(When::Required))
        .tool(Tool::new("detached", work).task(When::After(Duration::from_secs(3600))))
        .tool(Tool::new("slow", work).task(When::After(SLOW)))
        .tool(Tool::new("blocking", work).task(When::Required))
        .tool(Tool::new("busy", work).task(When::Required));
    let server = match site.role {
        Role::Other => server,
        Role::Old => server
            .tool(Tool::new("removed", work).task(When::Required))
            .tool(Tool::new("changed", work).task(When::Required))
            .tool(Tool::new("retyped", numbered).task(When::Required)),
        Role::New => server
            .tool(Tool::new("added", work).task(When::Required))
            .tool(Tool::new("changed", ranked).task(When::Required))
            .tool(Tool::new("retyped", work).task(When::Required)),
    };
    server.state(site).seal(KEYS.parse::<Keyring>().expect("keys"))
}

/// Returns a server that works on nothing, for the clients of the test's own process.
pub(crate) fn front(role: Role, log: &Path, store: Arc<dyn TaskStore>) -> Server {
    let chance = Arc::new(Chance::new(0));
    let site = Site { role, lease: Duration::ZERO, log: Log::open(log), chance };
    server(site).tasks(Tasks::new(store).at_once(0))
}

/// Opens the store of a test, its kind and its place, with these keys.
pub(crate) async fn open(store: &str, keys: &str) -> Arc<dyn TaskStore> {
    let ring = keys.parse::<Keyring>().expect("keys");
    match store.split_once('|').expect("a kind and a place") {
        ("sqlite", file) => {
            Arc::new(roundtrip_store::Sqlite::open(file).sealed_by(ring).await.expect("a store"))
        }
        (_, url) => Arc::new(roundtrip_store::Postgres::connect(url).sealed_by(ring).await.expect("a store")),
    }
}

/// Serves until the process is killed. Only a worker process gets past the first line.
pub(crate) async fn is_worker() -> bool {
    let Ok(store) = std::env::var(STORE) else { return false };
    std::thread::spawn(end_with_parent);
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stdout).init();
    let number = |variable| std::env::var(variable).expect("a variable").parse().expect("a number");
    let log = Log::open(Path::new(&std::env::var_os(LOG).expect("a log")));
    let chance = Arc::new(Chance::new(number(WORKER_SEED)));
    let watched = Watched { store: open(&store, KEYS).await, log: log.clone(), chance: Arc::clone(&chance) };
    let lease = Duration::from_millis(number(LEASE));
    let role = Role::parse(&std::env::var(ROLE).expect("a role")).expect("a role");
    let tasks = Tasks::new(watched).at_once(AT_ONCE).lease(lease);
    let server = server(Site { role, lease, log, chance }).tasks(tasks.per_caller(1_000_000));
    server.serve_http("127.0.0.1:0").await.expect("an end in good order");
    true
}

/// Ends the process when its parent has gone, whose end of the pipe is closed then.
fn end_with_parent() {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(1);
}
