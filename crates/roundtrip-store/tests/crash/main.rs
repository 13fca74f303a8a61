//! The crash test of tasks: worker processes are killed at random points while tasks run that ask, and others are stopped for longer
//! than their leases. Two services and two releases of one of them share the database, with tasks that nobody can open. `cargo xtask crash` runs it in full; without
//! that it is short.

#![cfg(unix)]
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a test says what it expects, and what it saw")]

mod chance;
mod fleet;
mod jobs;
mod killer;
mod notes;
mod pauser;
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
use crate::jobs::{Role, key_of, service_of, starters, tool_of};
use crate::killer::{AIMS, Kills, Phase};
use crate::notes::Note;
use crate::verdict::Verdict;
use crate::worker::{KEYS, LOST_KEYS, front, is_worker, open};

/// Variable that makes the test long.
const FULL: &str = "ROUNDTRIP_CRASH_FULL";
/// Variable with the seed of all random choices. Processes are free to differ in time, so that a seed repeats the choices alone.
const SEED: &str = "ROUNDTRIP_CRASH_SEED";

/// Number of tasks that no worker can open.
const POISON: usize = 20;

/// Size of a test.
struct Scale {
    kills: usize,
    /// Workers that are stopped for longer than their leases, and woken.
    pauses: usize,
    tasks: usize,
    /// Tasks that run at the same time, and a few more of them for every kill.
    at_once: usize,
    /// Workers of each role.
    workers: usize,
    lease: Duration,
    limit: Duration,
}

const SHORT: Scale = Scale {
    kills: 15,
    pauses: 3,
    tasks: 24,
    at_once: 8,
    workers: 2,
    lease: Duration::from_secs(2),
    limit: Duration::from_secs(120),
};

const LONG: Scale = Scale {
    kills: 200,
    pauses: 40,
    tasks: 240,
    at_once: 20,
    workers: 2,
    lease: Duration::from_secs(3),
    limit: Duration::from_secs(900),
};

/// Results of tasks, by their jobs.
type Results = BTreeMap<String, String>;

/// T7, T15, T16, T17: workers are killed before a step, in it, between its effect and its record, at a question, in a step
/// beside one, and during promotion, and stopped for longer than their leases; some steps block for longer. Every task ends with the right result, by a
/// process of its service that can run it, and no step begins whose result was stored.
async fn workers_are_killed_at_random_points(test: &'static str, store: String) {
    let is_full = std::env::var_os(FULL).is_some();
    let scale = if is_full { LONG } else { SHORT };
    let seed = std::env::var(SEED).map_or_else(|_| clock(), |seed| seed.parse().expect("a number"));
    println!("{test}: seed {seed} (set {SEED} to choose it)");
    let begun = Instant::now();
    let fleet = Fleet::new(test, store, scale.lease, seed);
    let crash = timeout(scale.limit, crash(&fleet, &scale)).await.expect("an end in time");
    let verdict = verdict::judge(&crash.kills.stored, &crash.notes, &crash.results);
    println!("{test}: seed {seed}\n{}", table(&crash, &verdict, begun.elapsed()));
    assert!(verdict.wrong.is_empty(), "{:#?}", verdict.wrong);
    assert!(AIMS.iter().all(|phase| crash.kills.of(*phase) > 0), "{:?}", crash.kills);
    assert!(!is_full || crash.left > 0, "no release has met a task of the other that it cannot run");
}

/// Kills and pauses of a test, and the results of its tasks.
struct Crash {
    kills: Kills,
    pauses: usize,
    /// Number of times that a task was left to others.
    left: usize,
    results: Results,
    notes: Vec<Note>,
}

/// Clients of the services, by servers that work on nothing.
#[derive(Clone)]
struct Fronts {
    jobs: Client,
    reports: Client,
}

impl Fronts {
    fn new(fleet: &Fleet, store: &Arc<dyn TaskStore>) -> Self {
        let client = |role| {
            let server = front(role, &fleet.log, Arc::clone(store));
            answering(Client::in_process(server).expect("a server"))
        };
        // It shows tasks of tools that it does not have.
        Self { jobs: client(Role::Old), reports: client(Role::Other) }
    }

    fn of(&self, job: &str) -> &Client {
        if service_of(job) == "jobs" { &self.jobs } else { &self.reports }
    }
}

fn clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    u64::from(since.subsec_nanos()) ^ since.as_secs()
}

/// Runs jobs, and kills and stops their workers, to the last of all.
async fn crash(fleet: &Arc<Fleet>, scale: &Scale) -> Crash {
    let store = open(&fleet.store, KEYS).await;
    let fronts = Fronts::new(fleet, &store);
    poison(fleet).await;
    (0..scale.workers).for_each(|_| Role::ALL.iter().for_each(|role| fleet.start(*role)));
    let (told, counted) = watch::channel(0);
    let (killed, paused) = (Arc::clone(fleet), Arc::clone(fleet));
    let (kills, pauses, held) = (scale.kills, scale.pauses, Arc::clone(&store));
    let killing = tokio::spawn(async move {
        tokio::join!(killer::kill(killed, held, kills, &told), pauser::pause(paused, pauses))
    });
    let mut results = run_jobs(fleet, &fronts, scale, counted).await;
    let (kills, pauses) = killing.await.expect("the killer");
    let notes = notes::read(&fleet.log);
    results.extend(orphans(fleet, &fronts, &*store, &notes, &results).await);
    fleet.end().await;
    // Orphans have gone on meanwhile.
    Crash { kills, pauses, left: fleet.left(), results, notes: notes::read(&fleet.log) }
}

/// Stores tasks that no worker can open. They are due all the time.
async fn poison(fleet: &Fleet) {
    let lost = Fronts::new(fleet, &open(&fleet.store, LOST_KEYS).await);
    for _ in 0..POISON {
        let started = lost.jobs.call_tool("required", json!({ "job": "0.0" })).into_task().await;
        assert!(matches!(started, Ok(Started::Task(_))), "{started:?}");
    }
}

/// Starts jobs and waits for their results, for as long as workers are being killed: as many at once as the scale says, and
/// another for every kill.
async fn run_jobs(
    fleet: &Arc<Fleet>,
    fronts: &Fronts,
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
            running.spawn(job(Arc::clone(fleet), fronts.clone(), started));
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
async fn job(fleet: Arc<Fleet>, fronts: Fronts, number: usize) -> (String, String) {
    for attempt in 1.. {
        let name = format!("{number}.{attempt}");
        let pauses = fleet.pauses();
        let (pid, role, worker) = fleet.client(starters(&name)).await;
        let arguments = match (tool_of(&name), role) {
            ("changed", Role::New) => json!({ "job": name, "rank": 1 }),
            _ => json!({ "job": name }),
        };
        match worker.call_tool(tool_of(&name), arguments).into_task().await {
            Ok(Started::Task(task)) => {
                // A second client, at a worker that may die: it watches the task, and answers too.
                let (watched, watching) = (task.clone(), worker.clone());
                tokio::spawn(async move { watching.task(watched).wait().await });
                return (name.clone(), result(&fleet, fronts.of(&name), task).await);
            }
            // Without a place for its task it ends its step in the call, and may end altogether.
            Ok(Started::Done(done)) if tool_of(&name) == "slow" => return (name, done.text()),
            Ok(Started::Done(done)) => panic!("{name} is not a task: {done:?}"),
            Err(error) => {
                let is_excused = fleet.killed().contains(&pid) || fleet.has_paused_since(pauses);
                assert!(is_excused, "{name} at worker {pid}, which lives: {error}");
            }
        }
    }
    unreachable!("there is always another attempt")
}

/// Waits for the result of a task. A worker that is stopped in the middle of a commit holds the lock of its database, so that calls
/// may fail meanwhile.
async fn result(fleet: &Fleet, client: &Client, task: Task) -> String {
    loop {
        let pauses = fleet.pauses();
        match client.task(task.clone()).wait().await {
            Ok(result) => return result.text(),
            Err(error) => assert!(fleet.has_paused_since(pauses), "task {}: {error}", task.id()),
        }
    }
}

/// Waits for the tasks of which no client knows: their workers died after they had been stored and before they were named.
async fn orphans(
    fleet: &Arc<Fleet>,
    fronts: &Fronts,
    store: &dyn TaskStore,
    notes: &[Note],
    known: &Results,
) -> Results {
    let mut waiting = JoinSet::new();
    for note in notes.iter().filter(|note| note.event == "creating" && !known.contains_key(&note.job)) {
        let key = key_of(&note.job, note.detail(0));
        if store.view(&key, false, Millis(0)).await.expect("a store").is_some() {
            let (fleet, client, job) = (Arc::clone(fleet), fronts.of(&note.job).clone(), note.job.clone());
            let task = Task::new(tool_of(&job), key.id.as_str());
            waiting.spawn(async move { (job, result(&fleet, &client, task).await) });
        }
    }
    waiting.join_all().await.into_iter().collect()
}

/// Returns what was counted, to be read.
fn table(crash: &Crash, verdict: &Verdict, took: Duration) -> String {
    let Crash { kills, pauses, left, results, .. } = crash;
    let attempts = results.keys().filter(|job| !job.ends_with(".1")).count();
    let mut rows = vec![
        ("tasks that ended", results.len()),
        ("  begun again, as no worker answered", attempts),
        ("  left by a release that cannot run them", *left),
        ("workers stopped and woken", *pauses),
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
        ("  ended by a worker that woke too late", verdict.woken),
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
