//! Worker processes that share a store of tasks, and die.

use std::future::pending;
use std::time::Duration;

use roundtrip::client::TaskError;
use roundtrip::wire::TaskStatus;
use roundtrip::{
    Ask, Client, Error, FormRequest, Keyring, Server, Started, State, Task, Tasks, Tool, ToolError, When,
};
use serde_json::json;
use tokio::process::Child;

use crate::processes::{Effects, Fleet, HANGS, KEYS, LOG, STORE};

/// Variable with the length of leases, in milliseconds.
const LEASE: &str = "ROUNDTRIP_TEST_LEASE";

/// A step, a question, and a step that never ends where the process is one that is to die in it.
async fn job(ask: Ask, State(effects): State<Effects>) -> Result<String, ToolError> {
    ask.remember("first", async || effects.append("first")).await?;
    let sure = ask.confirm("sure", "Go on?").await?;
    ask.once("second", async |step| {
        effects.append(&format!("second {}", step.idempotency_key()));
        if std::env::var_os(HANGS).is_some() {
            pending::<()>().await;
        }
        Ok::<_, ToolError>(())
    })
    .await?;
    Ok(format!("{sure} by {}", std::process::id()))
}

async fn held(State(effects): State<Effects>) -> String {
    effects.append("held");
    pending().await
}

fn server(effects: &Effects, tasks: Tasks) -> Server {
    Server::new("jobs", "1.0.0")
        .tool(Tool::new("job", job).task(When::Required))
        .tool(Tool::new("held", held).task(When::Required))
        .state(effects.clone())
        .tasks(tasks)
}

async fn tasks_in(store: &str) -> Tasks {
    let ring = KEYS.parse::<Keyring>().expect("keys");
    let (kind, place) = store.split_once('|').expect("a kind and a place");
    match kind {
        #[cfg(feature = "sqlite")]
        "sqlite" => Tasks::new(roundtrip_store::Sqlite::open(place).sealed_by(ring).await.expect("a store")),
        #[cfg(feature = "postgres")]
        "postgres" => {
            Tasks::new(roundtrip_store::Postgres::connect(place).sealed_by(ring).await.expect("a store"))
        }
        other => panic!("no such store: {other}"),
    }
}

/// Works until the process is killed. Only a worker process gets past the first line.
async fn work() -> bool {
    let Ok(store) = std::env::var(STORE) else { return false };
    let effects = Effects(std::env::var_os(LOG).expect("a log").into());
    let lease = std::env::var(LEASE).expect("a length").parse().expect("a number");
    let tasks = tasks_in(&store).await.at_once(4).lease(Duration::from_millis(lease));
    let _worker = server(&effects, tasks).build().expect("a worker");
    pending::<()>().await;
    true
}

impl Fleet {
    /// Starts a worker: one that dies in its second step, or one that does not.
    fn worker(&self, hangs: bool, lease: Duration) -> Child {
        let mut command = self.command(hangs);
        command.env(LEASE, lease.as_millis().to_string()).spawn().expect("a worker")
    }

    /// A client of a server that works on nothing.
    async fn front(&self) -> Client {
        let front = server(&self.effects, tasks_in(&self.store).await.at_once(0));
        // A client that can be asked; the test answers itself.
        Client::in_process(front).expect("a server").on_form(async |form: FormRequest| form.decline())
    }

    async fn until(&self, lines: usize) {
        while self.effects.lines().len() < lines {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn started(client: &Client, tool: &str) -> Task {
    match client.call_tool(tool, ()).into_task().await.expect("a task") {
        Started::Task(task) => task,
        Started::Done(result) => panic!("a task, not {result:?}"),
    }
}

/// T7, T15, T17: workers that are killed at a question and in a step are replaced; a step that was stored does not run again, one that
/// was not runs again with its idempotency key.
async fn workers_are_killed_and_replaced(fleet: &Fleet) {
    let lease = Duration::from_secs(1);
    let (client, mut first) = (fleet.front().await, fleet.worker(true, lease));
    let mut task = client.task(started(&client, "job").await);
    while task.status().await.expect("a status").status != TaskStatus::InputRequired {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    first.kill().await.expect("its end");
    assert_eq!(fleet.effects.lines(), ["first"]);

    let mut second = fleet.worker(true, lease);
    task.answer("sure", json!({ "confirm": true })).await.expect("an answer");
    fleet.until(2).await;
    second.kill().await.expect("its end");

    let third = fleet.worker(false, lease);
    let result = task.wait().await.expect("a result");
    assert_eq!(result.text(), format!("true by {}", third.id().expect("an id")));
    let effects = fleet.effects.lines();
    assert_eq!((effects.len(), &*effects[0]), (3, "first"), "{effects:?}");
    assert!(effects[1].starts_with("second ") && effects[1] == effects[2], "{effects:?}");
}

/// T8, K3: a worker hears at once of a task that was cancelled in another process: its lease has an hour to go.
async fn a_cancellation_reaches_another_process(fleet: &Fleet) {
    let (client, before) = (fleet.front().await, fleet.effects.lines().len());
    let _worker = fleet.worker(false, Duration::from_secs(3600));
    let mut task = client.task(started(&client, "held").await);
    fleet.until(before + 1).await;
    task.cancel().await.expect("heard");
    let error = task.wait().await.expect_err("cancelled");
    assert!(matches!(error, Error::Task(TaskError::Cancelled { .. })), "{error:?}");
}

async fn play(fleet: Fleet) {
    let both = async {
        workers_are_killed_and_replaced(&fleet).await;
        a_cancellation_reaches_another_process(&fleet).await;
    };
    tokio::time::timeout(Duration::from_secs(60), both).await.expect("in time");
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn on_one_sqlite_file() {
    if !work().await {
        let site = crate::support::SqliteSite::new();
        let store = format!("sqlite|{}", site.file().display());
        play(Fleet::new("workers::on_one_sqlite_file", store)).await;
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn on_postgres() {
    if !work().await
        && let Some(site) = crate::support::PostgresSite::new().await
    {
        play(Fleet::new("workers::on_postgres", format!("postgres|{}", site.url))).await;
    }
}
