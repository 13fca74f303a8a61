//! A worker process: serves calls and works on tasks until it is killed, and notes what it does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roundtrip::task::TaskStore;
use roundtrip::{Args, Ask, Form, Keyring, Server, State, Tasks, Tool, ToolError, When};
use serde::Deserialize;

use crate::chance::Chance;
use crate::notes::Log;
use crate::support::unique;
use crate::watched::Watched;

/// Variables that make a test the worker of another process of the same test.
pub(crate) const STORE: &str = "ROUNDTRIP_CRASH_STORE";
pub(crate) const LOG: &str = "ROUNDTRIP_CRASH_LOG";
pub(crate) const LEASE: &str = "ROUNDTRIP_CRASH_LEASE";
pub(crate) const WORKER_SEED: &str = "ROUNDTRIP_CRASH_WORKER_SEED";

/// Keys that all processes share.
const KEYS: &str = "0101010101010101010101010101010101010101010101010101010101010101";

/// Longest time that a part of a step takes.
const WORK: Duration = Duration::from_millis(30);
/// Tasks that one process works on at once: enough that a kill hits several.
const AT_ONCE: usize = 4;

/// Tools of the server: one for each way in which a call becomes a task.
pub(crate) const TOOLS: [&str; 3] = ["required", "detached", "slow"];

/// Returns the tool that does a job, which the number in the job's name says.
pub(crate) fn tool_of(job: &str) -> &'static str {
    let number: usize = number_of(job);
    TOOLS[number % TOOLS.len()]
}

/// Returns the number of a job, whose name is that and the number of the attempt at starting it.
pub(crate) fn number_of(job: &str) -> usize {
    job.split_once('.').and_then(|(number, _)| number.parse().ok()).expect("a job")
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Job {
    job: String,
}

#[derive(Form)]
struct Amount {
    amount: u32,
}

/// Log and random numbers of a handler.
#[derive(Clone)]
struct Site {
    log: Log,
    chance: Arc<Chance>,
}

/// Three steps with two questions between them. The tool `detached` asks a first one in a round.
async fn work(ask: Ask, Args(Job { job }): Args<Job>, State(site): State<Site>) -> Result<String, ToolError> {
    let note = |event: &str| site.log.note(&job, event);
    note("run");
    if tool_of(&job) == "detached" {
        ask.confirm("begin", format!("Begin {job}?")).await?;
        note("detaching");
        ask.detach("rest").await?;
        note("detached");
    }
    let first = step(&ask, &job, &site, "first", "-").await?;
    note("asking");
    let Amount { amount } = ask.form("amount", format!("How many for {job}?")).await?;
    let second = step(&ask, &job, &site, "second", &first).await?;
    note("asking");
    let sure = ask.confirm("sure", format!("{amount} for {job}?")).await?;
    let third = step(&ask, &job, &site, "third", &format!("{first},{second}")).await?;
    note("ending");
    Ok(format!("{amount} {sure} {first} {second} {third}"))
}

/// Takes a step whose result is a new value each time it runs. Its effect is a line of the log, with the results it has seen.
async fn step(ask: &Ask, job: &str, site: &Site, key: &str, seen: &str) -> Result<String, ToolError> {
    site.log.note(job, &format!("before {key}"));
    let value = ask
        .once(key, async |step| {
            site.log.note(job, &format!("inside {key}"));
            // Longer than the pause after which the tool `slow` becomes a task, so that it does so in a step.
            tokio::time::sleep(2 * SLOW).await;
            site.chance.moment(WORK).await;
            let value = unique();
            site.log.note(job, &format!("effect {key} {value} {} {seen}", step.idempotency_key()));
            site.chance.moment(WORK).await;
            Ok::<_, ToolError>(value)
        })
        .await?;
    site.log.note(job, &format!("stored {key} {value}"));
    Ok(value)
}

/// Time after which a call of the tool `slow` becomes a task.
const SLOW: Duration = Duration::from_millis(1);

/// Returns the server without its store.
fn server(site: Site) -> Server {
    Server::new("jobs", "1.0.0")
        .tool(Tool::new("required", work).task(When::Required))
        .tool(Tool::new("detached", work).task(When::After(Duration::from_secs(3600))))
        .tool(Tool::new("slow", work).task(When::After(SLOW)))
        .state(site)
        .seal(KEYS.parse::<Keyring>().expect("keys"))
}

/// Returns a server that works on nothing, for the clients of the test's own process.
pub(crate) fn front(log: &Path, store: Arc<dyn TaskStore>) -> Server {
    let site = Site { log: Log::open(log), chance: Arc::new(Chance::new(0)) };
    server(site).tasks(Tasks::new(store).at_once(0))
}

/// Opens the store of a test: its kind and its place.
pub(crate) async fn open(store: &str) -> Arc<dyn TaskStore> {
    let ring = KEYS.parse::<Keyring>().expect("keys");
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
    let watched = Watched { store: open(&store).await, log: log.clone(), chance: Arc::clone(&chance) };
    let tasks = Tasks::new(watched).at_once(AT_ONCE).lease(Duration::from_millis(number(LEASE)));
    let server = server(Site { log, chance }).tasks(tasks.per_caller(1_000_000));
    server.serve_http("127.0.0.1:0").await.expect("an end in good order");
    true
}

/// Ends the process when its parent has gone, whose end of the pipe is closed then.
fn end_with_parent() {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(1);
}
