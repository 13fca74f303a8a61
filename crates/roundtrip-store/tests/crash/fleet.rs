//! [`Fleet`]: the worker processes of a crash test. It kills its own children alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roundtrip::{Client, FormRequest};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Notify, broadcast};

use crate::chance::Chance;
use crate::notes::{MARK, Note};
use crate::worker::{LEASE, LOG, STORE, WORKER_SEED, number_of};

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
}

/// A worker process; it ends with its owner.
struct Worker {
    process: Child,
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
    pub(crate) fn start(self: &Arc<Self>) {
        let mut process = Command::new(std::env::current_exe().expect("our own path"))
            .args(["--exact", self.test, "--nocapture"])
            .env(STORE, &self.store)
            .env(LOG, &self.log)
            .env(LEASE, self.lease.as_millis().to_string())
            .env(WORKER_SEED, self.chance.next().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a worker");
        let (pid, output) = (process.id().expect("an id"), process.stdout.take().expect("its output"));
        self.workers().running.insert(pid, Worker { process, client: None });
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
            }
        }
    }

    /// Returns a client of a worker, and its process, once this many workers serve.
    pub(crate) async fn client(&self, serving: usize) -> (u32, Client) {
        loop {
            let ready = self.ready.notified();
            let clients: Vec<_> = {
                let workers = self.workers();
                let served =
                    workers.running.iter().filter_map(|(pid, worker)| Some((*pid, worker.client.clone()?)));
                served.collect()
            };
            if clients.len() >= serving {
                return clients[self.chance.below(clients.len())].clone();
            }
            ready.await;
        }
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
        self.start();
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

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.log);
    }
}
