//! The crash test of tasks: worker processes are killed at random points while tasks run that ask. `cargo xtask crash` runs it in
//! full; without that it is short.

#![cfg(unix)]
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a test says what it expects, and what it saw")]

mod chance;
mod fleet;
mod killer;
mod notes;
#[expect(dead_code, unused_imports, unused_macros, reason = "most of it is for the tests without crashes")]
#[path = "../stores/support/mod.rs"]
mod support;
mod verdict;
mod watched;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use roundtrip::task::{Millis, TaskStore};
use roundtrip::{Client, Started, Task};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::fleet::{Fleet, answering};
use crate::killer::{AIMS, Kills, Phase, key_of};
use crate::notes::Note;
use crate::verdict::{Killed, Verdict};
use crate::worker::{front, is_worker, open, tool_of};

/// Variable that makes the test long.
const FULL: &str = "ROUNDTRIP_CRASH_FULL";
/// Variable with the seed of all random choices. Processes are free to differ in time, so that a seed repeats the choices alone.
const SEED: &str = "ROUNDTRIP_CRASH_SEED";

/// Size of a test.
struct Scale {
    kills: usize,
    tasks: usize,
    /// Tasks that run at the same time, and a few more of them for every kill.
    at_once: usize,
    workers: usize,
    lease: Duration,
    limit: Duration,
}

const SHORT: Scale = Scale {
    kills: 15,
    tasks: 15,
    at_once: 8,
    workers: 3,
    lease: Duration::from_secs(2),
    limit: Duration::from_secs(120),
};

const LONG: Scale = Scale {
    kills: 200,
    tasks: 200,
    at_once: 20,
    workers: 4,
    lease: Duration::from_secs(3),
    limit: Duration::from_secs(900),
};

/// Results of tasks, by their jobs.
type Results = BTreeMap<String, String>;

/// T7, T15, T17: workers are killed before a step, in it, between its effect and its record, at a question and during promotion; every
/// task ends with the right result, and no step whose result was stored runs again.
async fn workers_are_killed_at_random_points(test: &'static str, store: String) {
    let scale = if std::env::var_os(FULL).is_some() { LONG } else { SHORT };
    let seed = std::env::var(SEED).map_or_else(|_| clock(), |seed| seed.parse().expect("a number"));
    println!("{test}: seed {seed} (set {SEED} to choose it)");
    let begun = Instant::now();
    let fleet = Fleet::new(test, store, scale.lease, seed);
    let (kills, results, notes) = timeout(scale.limit, crash(&fleet, &scale)).await.expect("an end in time");
    let killed = Killed { pids: &fleet.killed(), stored: &kills.stored };
    let verdict = verdict::judge(&killed, &notes, &results);
    println!("{test}: seed {seed}\n{}", table(&kills, &verdict, &results, begun.elapsed()));
    assert!(verdict.wrong.is_empty(), "{:#?}", verdict.wrong);
    assert!(AIMS.iter().all(|phase| kills.of(*phase) > 0), "{kills:?}");
}

fn clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    u64::from(since.subsec_nanos()) ^ since.as_secs()
}

/// Runs jobs and kills their workers, to the last of both.
async fn crash(fleet: &Arc<Fleet>, scale: &Scale) -> (Kills, Results, Vec<Note>) {
    let store = open(&fleet.store).await;
    let client = Client::in_process(front(&fleet.log, Arc::clone(&store))).expect("a server");
    let client = answering(client);
    (0..scale.workers).for_each(|_| fleet.start());
    let (told, counted) = watch::channel(0);
    let killing = tokio::spawn(killer::kill(Arc::clone(fleet), Arc::clone(&store), scale.kills, told));
    let mut results = run_jobs(fleet, &client, scale, counted).await;
    let kills = killing.await.expect("the killer");
    let notes = notes::read(&fleet.log);
    results.extend(orphans(&client, &*store, &notes, &results).await);
    fleet.end().await;
    // Orphans have gone on meanwhile.
    (kills, results, notes::read(&fleet.log))
}

/// Starts jobs and waits for their results, for as long as workers are being killed: as many at once as the scale says, and
/// another for every kill.
async fn run_jobs(
    fleet: &Arc<Fleet>,
    client: &Client,
    scale: &Scale,
    mut counted: watch::Receiver<usize>,
) -> Results {
    let (mut running, mut results) = (JoinSet::new(), Results::new());
    let (mut started, mut is_killing) = (0, true);
    while is_killing || started < scale.tasks || !running.is_empty() {
        let kills = *counted.borrow_and_update();
        let few = running.len() < scale.at_once / 2;
        while (is_killing || started < scale.tasks)
            && running.len() < scale.at_once
            && (few || started < scale.at_once + kills)
        {
            running.spawn(job(Arc::clone(fleet), client.clone(), started));
            started += 1;
        }
        tokio::select! {
            Some(ended) = running.join_next() => results.extend([ended.expect("a result")]),
            told = counted.changed(), if is_killing => is_killing = told.is_ok(),
        }
    }
    results
}

/// Starts a job at a worker, again if the worker dies before it has answered, and waits for its result at the front.
async fn job(fleet: Arc<Fleet>, client: Client, number: usize) -> (String, String) {
    for attempt in 1.. {
        let name = format!("{number}.{attempt}");
        let (pid, worker) = fleet.client(1).await;
        match worker.call_tool(tool_of(&name), json!({ "job": name })).into_task().await {
            Ok(Started::Task(task)) => return (name.clone(), result(&client, task).await),
            // Without a place for its task it ends its step in the call, and may end altogether.
            Ok(Started::Done(done)) if tool_of(&name) == "slow" => return (name, done.text()),
            Ok(Started::Done(done)) => panic!("{name} is not a task: {done:?}"),
            Err(error) => {
                assert!(fleet.killed().contains(&pid), "{name} at worker {pid}, which lives: {error}");
            }
        }
    }
    unreachable!("there is always another attempt")
}

async fn result(client: &Client, task: Task) -> String {
    let id = task.id().to_owned();
    let result = client.task(task).wait().await.unwrap_or_else(|error| panic!("task {id}: {error}"));
    result.text()
}

/// Waits for the tasks of which no client knows: their workers died after they had been stored and before they were named.
async fn orphans(client: &Client, store: &dyn TaskStore, notes: &[Note], known: &Results) -> Results {
    let mut waiting = JoinSet::new();
    for note in notes.iter().filter(|note| note.event == "creating" && !known.contains_key(&note.job)) {
        let key = key_of(note.detail(0));
        if store.view(&key, false, Millis(0)).await.expect("a store").is_some() {
            let (client, job) = (client.clone(), note.job.clone());
            let task = Task::new(tool_of(&job), key.id.as_str());
            waiting.spawn(async move { (job, result(&client, task).await) });
        }
    }
    waiting.join_all().await.into_iter().collect()
}

/// Returns what was counted, to be read.
fn table(kills: &Kills, verdict: &Verdict, results: &Results, took: Duration) -> String {
    let attempts = results.keys().filter(|job| !job.ends_with(".1")).count();
    let mut rows = vec![
        ("tasks that ended", results.len()),
        ("  begun again, as no worker answered", attempts),
        ("kills that hit a lease holder", kills.counted()),
    ];
    let phases = AIMS.into_iter().chain([Phase::Elsewhere]);
    let phases: Vec<_> = phases.map(|phase| (format!("  {}", phase.name()), kills.of(phase))).collect();
    rows.extend(phases.iter().map(|(name, count)| (&**name, *count)));
    rows.extend([
        ("kills that hit none, not counted", kills.missed),
        ("leases that died with their holders", kills.leases),
        ("steps", verdict.steps),
        ("  run again after a kill, same key", verdict.repeated),
        ("  run again, lease lost alive", verdict.overtaken),
        ("wrong", verdict.wrong.len()),
        ("seconds", usize::try_from(took.as_secs()).unwrap_or(usize::MAX)),
    ]);
    rows.iter().map(|(name, count)| format!("  {name:<40} {count:>6}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    if !is_worker().await {
        let site = support::SqliteSite::new();
        workers_are_killed_at_random_points("sqlite", format!("sqlite|{}", site.file().display())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    if !is_worker().await
        && let Some(site) = support::PostgresSite::new().await
    {
        workers_are_killed_at_random_points("postgres", format!("postgres|{}", site.url)).await;
    }
}
