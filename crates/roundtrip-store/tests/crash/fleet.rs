//! [`Fleet`]: the worker processes of a crash test. It kills its own children alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roundtrip::{Client, FormRequest};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Notify, broadcast};

use crate::chance::Chance;
use crate::jobs::{Role, number_of};
use crate::notes::{Log, MARK, Note};
use crate::worker::{LEASE, LOG, ROLE, STORE, WORKER_SEED};

/// Job of notes that are about a process: no job has this name.
pub(crate) const NO_JOB: &str = "-";

/// Worker processes of one test, on one store.
pub(crate) struct Fleet {
    pub(crate) test: &'static str,
    pub(crate) store: String,
    pub(crate) log: PathBuf,
    pub(crate) lease: Duration,
    pub(crate) chance: Chance,
    /// Notes of all workers, as they are written.
    pub(crate) notes: broadcast::Sender<Note>,
    workers: Mutex<Workers>,
    /// Told when a worker has begun to serve.
    ready: Notify,
}

#[derive(Default)]
struct Workers {
    running: BTreeMap<u32, Worker>,
    killed: BTreeSet<u32>,
    /// Number of times that a worker was stopped, and the worker that is stopped now.
    pauses: usize,
    stopped: Option<u32>,
    /// Number of times that a worker has left a task to others.
    left: usize,
}

/// A worker process; it ends with its owner.
struct Worker {
    process: Child,
    role: Role,
    /// `None` until it serves.
    client: Option<Client>,
}

/// Returns a client that answers the questions of jobs.
pub(crate) fn answering(client: Client) -> Client {
    client.on_form(async |form: FormRequest| {
        if let Some(job) = form.message.strip_prefix("How many for ") {
            return form.accept(json!({ "amount": amount_of(job.trim_end_matches('?')) }));
        }
        form.accept(json!({ "confirm": true }))
    })
}

/// Returns the answer to a job's first question in its task.
pub(crate) fn amount_of(job: &str) -> usize {
    number_of(job) * 3 + 1
}

impl Fleet {
    pub(crate) fn new(test: &'static str, store: String, lease: Duration, seed: u64) -> Arc<Self> {
        let log = std::env::temp_dir().join(crate::support::unique());
        Arc::new(Self {
            test,
            store,
            log,
            lease,
            chance: Chance::new(seed),
            notes: broadcast::channel(4096).0,
            workers: Mutex::default(),
            ready: Notify::new(),
        })
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker.
    pub(crate) fn start(self: &Arc<Self>, role: Role) {
        let mut process = Command::new(std::env::current_exe().expect("our own path"))
            .args(["--exact", self.test, "--nocapture"])
            .env(STORE, &self.store)
            .env(LOG, &self.log)
            .env(ROLE, role.name())
            .env(LEASE, self.lease.as_millis().to_string())
            .env(WORKER_SEED, self.chance.next().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a worker");
        let (pid, output) = (process.id().expect("an id"), process.stdout.take().expect("its output"));
        self.workers().running.insert(pid, Worker { process, role, client: None });
        tokio::spawn(Arc::clone(self).hear(pid, output));
    }

    /// Passes on what a worker notes, and finds out where it serves.
    async fn hear(self: Arc<Self>, pid: u32, output: ChildStdout) {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(note) = line.strip_prefix(MARK).and_then(Note::parse) {
                // None listens between two kills.
                let _ = self.notes.send(note);
            } else if let Some((_, url)) = line.split_once("serving MCP at ") {
                let client = answering(Client::http(url.trim()).expect("a URL"));
                if let Some(worker) = self.workers().running.get_mut(&pid) {
                    worker.client = Some(client);
                }
                self.ready.notify_waiters();
            } else if line.contains("a task is left to other processes") {
                self.workers().left += 1;
            }
        }
    }

    /// Returns a client of a worker that has one of these roles, with its role and its process, once one serves.
    pub(crate) async fn client(&self, roles: &[Role]) -> (u32, Role, Client) {
        loop {
            let ready = self.ready.notified();
            let clients: Vec<_> = {
                let workers = self.workers();
                let chosen = workers.running.iter().filter(|(_, worker)| roles.contains(&worker.role));
                chosen.filter_map(|(pid, worker)| Some((*pid, worker.role, worker.client.clone()?))).collect()
            };
            if !clients.is_empty() {
                return clients[self.chance.below(clients.len())].clone();
            }
            ready.await;
        }
    }

    /// Stops a worker that runs, and returns whether there was one.
    pub(crate) fn stop(&self, pid: u32) -> bool {
        let mut workers = self.workers();
        let is_stopped = workers.signal(pid, Signal::STOP);
        if is_stopped {
            workers.pauses += 1;
            workers.stopped = Some(pid);
            Log::open(&self.log).note_of(pid, NO_JOB, "stopped");
        }
        is_stopped
    }

    /// Wakes a worker that was stopped, and returns whether it lives.
    pub(crate) fn wake(&self, pid: u32) -> bool {
        let mut workers = self.workers();
        workers.stopped = None;
        Log::open(&self.log).note_of(pid, NO_JOB, "woken");
        workers.signal(pid, Signal::CONT)
    }

    /// Returns the number of pauses that have begun, and one more while one lasts: if this stays the same over a call, no worker was
    /// stopped that may have held a lock of the database.
    pub(crate) fn pauses(&self) -> usize {
        let workers = self.workers();
        workers.pauses + usize::from(workers.stopped.is_some())
    }

    /// Returns whether a worker was stopped since there were this many pauses, or is.
    pub(crate) fn has_paused_since(&self, pauses: usize) -> bool {
        self.pauses() != pauses || self.workers().stopped.is_some()
    }

    pub(crate) fn left(&self) -> usize {
        self.workers().left
    }

    /// Kills a worker, starts another in its place, and returns when the first is dead. False if it was dead before.
    pub(crate) async fn kill(self: &Arc<Self>, pid: u32) -> bool {
        let worker = {
            let mut workers = self.workers();
            workers.killed.insert(pid);
            workers.running.remove(&pid)
        };
        let Some(mut worker) = worker else { return false };
        // SIGKILL, by way of the child's own handle: its id cannot be another's yet.
        worker.process.kill().await.expect("its end");
        Log::open(&self.log).note_of(pid, NO_JOB, "killed");
        self.start(worker.role);
        true
    }

    pub(crate) fn killed(&self) -> BTreeSet<u32> {
        self.workers().killed.clone()
    }

    /// Ends all workers. Panics if one has ended by itself.
    pub(crate) async fn end(&self) {
        let running = std::mem::take(&mut self.workers().running);
        for (pid, mut worker) in running {
            let ended = worker.process.try_wait().expect("its state");
            assert!(ended.is_none(), "worker {pid} ended by itself: {ended:?}");
            worker.process.kill().await.expect("its end");
        }
    }
}

impl Workers {
    /// Sends a signal to a worker that nobody has waited for, so that its id cannot be another's.
    fn signal(&self, pid: u32, signal: Signal) -> bool {
        let pid = self.running.get(&pid).and_then(|worker| worker.process.id());
        let pid = pid.and_then(|pid| Pid::from_raw(pid.try_into().expect("an id")));
        pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.log);
    }
}
