//! Leases: handlers that block, processes that stop, and stores that say little.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::seal::BoxFuture;
use roundtrip::task::{
    ChangedTask, Chunk, ExpiredTask, LeaseRenewer, Millis, StoredTask, StoredView, TaskAnswer, TaskChange,
    TaskChanges, TaskId, TaskKey, TaskOwner, TaskStore as _,
};
use roundtrip::{Ask, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::json;
use tokio::sync::Notify;

use super::layer::{Layer, Layered, service};
use super::{TaskClient, text};
use crate::support::messages_of;

const LEASE: Duration = Duration::from_millis(300);

/// T15, T7: a step that blocks its thread for longer than its lease is begun once, and its task ends; so do its neighbours.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_step_that_blocks_past_its_lease_is_begun_once() {
    let begun = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let counted = Arc::clone(&begun);
    let blocks = move |ask: Ask| {
        let counted = Arc::clone(&counted);
        async move {
            let step = async || {
                counted[0].fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(5 * LEASE);
            };
            ask.remember("blocks", step).await?;
            Ok::<_, ToolError>("done")
        }
    };
    let counted = Arc::clone(&begun);
    let waits = move |ask: Ask| {
        let counted = Arc::clone(&counted);
        async move {
            let step = async || {
                counted[1].fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(LEASE / 2).await;
            };
            ask.remember("waits", step).await?;
            Ok::<_, ToolError>("done")
        }
    };
    let server = Server::new("tasks", "1.0.0")
        .tool(Tool::new("blocks", blocks).task(When::Required))
        .tool(Tool::new("waits", waits).task(When::Required))
        .tasks(Tasks::new(MemoryTasks::new()).lease(LEASE));
    let client = TaskClient::of(server);
    let neighbour = client.start("waits", json!({})).await;
    let id = client.start("blocks", json!({})).await;
    for id in [id, neighbour] {
        assert_eq!(text(&client.ended(&id).await), "done");
    }
    assert_eq!(begun.each_ref().map(|begun| begun.load(Ordering::SeqCst)), [1, 1]);
}

/// T15: a step that blocks its thread keeps its lease: a process beside it, which looks for tasks meanwhile, does not begin the step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_blocks_is_not_begun_by_another_process() {
    let (store, begun) = (Arc::new(MemoryTasks::new()), Arc::new(AtomicUsize::new(0)));
    let server = || {
        let begun = Arc::clone(&begun);
        let blocks = move |ask: Ask| {
            let begun = Arc::clone(&begun);
            async move {
                let step = async || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(10 * LEASE);
                };
                ask.remember("blocks", step).await?;
                Ok::<_, ToolError>("done")
            }
        };
        // One slot: the process that runs the task looks for no other.
        let tasks = Tasks::new(Arc::clone(&store)).at_once(1).lease(LEASE);
        Server::new("tasks", "1.0.0").tool(Tool::new("blocks", blocks).task(When::Required)).tasks(tasks)
    };
    let client = TaskClient::of(server());
    let id = client.start("blocks", json!({})).await;
    let _other = server().build().expect("a worker");
    assert_eq!(text(&client.ended(&id).await), "done");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

/// A store of a process that can be stopped: from then on no answer reaches it, and it renews nothing, until it wakes.
struct Stoppable {
    inner: Arc<MemoryTasks>,
    /// True until the process has been stopped: after the first append.
    armed: AtomicBool,
    stopped: Arc<AtomicBool>,
    reached: Notify,
    wake: Notify,
}

impl Layer for Stoppable {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        Box::pin(async move {
            let appended = self.inner.append(key, fence, pieces).await;
            if self.armed.swap(false, Ordering::SeqCst) {
                self.stopped.store(true, Ordering::SeqCst);
                self.reached.notify_one();
                self.wake.notified().await;
                self.stopped.store(false, Ordering::SeqCst);
            }
            appended
        })
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        Box::new(StoppableRenewer(self.inner.renewer(), Arc::clone(&self.stopped)))
    }
}

struct StoppableRenewer(Box<dyn LeaseRenewer>, Arc<AtomicBool>);

impl LeaseRenewer for StoppableRenewer {
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>> {
        if self.1.load(Ordering::SeqCst) {
            return Box::pin(std::future::pending());
        }
        self.0.renew(held, lease, now)
    }
}

/// T7, T15: a process that was stopped for longer than its lease, after it had stored the beginning of a step, does not begin the
/// step when it wakes: another has run it.
#[tokio::test]
async fn a_process_that_wakes_late_begins_no_step_that_another_has_run() {
    let runs = Arc::new(Mutex::new(Vec::new()));
    let tool = |process: &'static str| {
        let runs = Arc::clone(&runs);
        let pays = move |ask: Ask| {
            let runs = Arc::clone(&runs);
            async move {
                ask.remember("pay", async || runs.lock().expect("runs").push(process)).await?;
                Ok::<_, ToolError>(process)
            }
        };
        Tool::new("pays", pays).task(When::Required)
    };
    let inner = Arc::new(MemoryTasks::new());
    let store = Arc::new(Stoppable {
        inner: Arc::clone(&inner),
        armed: AtomicBool::new(true),
        stopped: Arc::default(),
        reached: Notify::new(),
        wake: Notify::new(),
    });
    let server = |process| Server::new("tasks", "1.0.0").tool(tool(process));
    let stopped = Tasks::new(Layered(Arc::clone(&store))).at_once(1).lease(LEASE);
    let stopped = TaskClient::of(server("stopped").tasks(stopped));
    let id = stopped.start("pays", json!({})).await;
    store.reached.notified().await;
    let other = TaskClient::of(server("other").tasks(Tasks::new(inner).lease(LEASE)));
    assert_eq!(text(&other.ended(&id).await), "other");
    store.wake.notify_one();
    // It has woken: it runs a task of its own.
    assert_eq!(text(&stopped.ended(&stopped.start("pays", json!({})).await).await), "stopped");
    assert_eq!(*runs.lock().expect("runs"), ["other", "stopped"]);
}

/// A store that says of changes only that there are some, and where nobody can look at tasks while it is shut.
struct Vague {
    inner: MemoryTasks,
    shut: AtomicBool,
    looked: Notify,
}

struct Vagueness;

impl TaskChanges for Vagueness {
    fn next(&mut self) -> BoxFuture<'_, Option<ChangedTask>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            None
        })
    }
}

impl Layer for Vague {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        if self.shut.load(Ordering::SeqCst) {
            self.looked.notify_one();
            return Box::pin(std::future::pending());
        }
        self.inner.view(key, with_result, now)
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        Box::new(Vagueness)
    }
}

/// Z3: changes that are announced to watchers keep no task from being taken, however long that takes.
#[tokio::test]
async fn watchers_do_not_stop_the_workers() {
    let store =
        Arc::new(Vague { inner: MemoryTasks::new(), shut: AtomicBool::new(false), looked: Notify::new() });
    let ran = Arc::new(Notify::new());
    let noted = Arc::clone(&ran);
    let job = move || {
        let noted = Arc::clone(&noted);
        async move {
            noted.notify_one();
            "done"
        }
    };
    let server = || {
        let held = Tool::new("held", async || std::future::pending::<String>().await);
        let job = Tool::new("job", job.clone()).task(When::Required);
        Server::new("tasks", "1.0.0").tool(job).tool(held.task(When::Required))
    };
    let client = TaskClient::of(server().tasks(Tasks::new(Layered(Arc::clone(&store)))));
    let watched = client.start("held", json!({})).await;
    let mut meta = crate::support::meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { super::EXTENSION: {} } });
    let listen = json!({ "notifications": { "taskIds": [watched] }, "_meta": meta });
    let (endpoint, request) =
        (client.endpoint.clone(), crate::support::message(1, "subscriptions/listen", listen));
    let watching = tokio::spawn(async move { messages_of(&endpoint, &Default::default(), &request).await });
    while store.inner().view(&super::key(&watched), false, Millis(0)).await.expect("a store").is_none() {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    store.shut.store(true, Ordering::SeqCst);
    store.looked.notified().await;
    // The task is queued, and the worker has to find it.
    let front = TaskClient::of(server().tasks(Tasks::new(Layered(Arc::clone(&store))).at_once(0)));
    front.start("job", json!({})).await;
    tokio::time::timeout(Duration::from_secs(10), ran.notified()).await.expect("it is taken");
    watching.abort();
}

/// Z3: expired tasks that have ended are removed without being read.
#[tokio::test(start_paused = true)]
async fn expired_tasks_are_removed_unread() {
    let store =
        Arc::new(Counting { inner: MemoryTasks::new(), reads: AtomicUsize::new(0), swept: Notify::new() });
    let tool = Tool::new("large", async || "x".repeat(1 << 20)).task(When::Required);
    let tasks = Tasks::new(Layered(Arc::clone(&store))).keep_for(Duration::from_secs(1));
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).tasks(tasks));
    for _ in 0..20 {
        client.ended(&client.start("large", json!({})).await).await;
    }
    store.reads.store(0, Ordering::SeqCst);
    let (service, owner) = (service("tasks"), TaskOwner::new(None));
    while !store.inner.list(&service, &owner, None, 1).await.expect("a list").is_empty() {
        store.swept.notified().await;
    }
    assert_eq!(store.reads.load(Ordering::SeqCst), 0);
}

/// A store that counts what is read of tasks. Its tasks have expired when they are swept.
struct Counting {
    inner: MemoryTasks,
    reads: AtomicUsize,
    swept: Notify,
}

impl Layer for Counting {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.view(key, with_result, now)
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.read(key, now)
    }

    fn expired<'a>(
        &'a self,
        service: &'a roundtrip::seal::Digest,
        _: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
        self.swept.notify_one();
        self.inner.expired(service, Millis(u64::MAX), most)
    }
}

/// Bytes that a store was given.
struct Weighing {
    inner: MemoryTasks,
    bytes: AtomicUsize,
}

impl Layer for Weighing {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        let pieces = change.journal.iter().chain(&change.parts).map(|piece| piece.bytes.len()).sum::<usize>();
        self.bytes.fetch_add(change.view.len() + change.work.len() + pieces, Ordering::SeqCst);
        self.inner.write(change, now)
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        self.bytes.fetch_add(pieces.iter().map(|piece| piece.bytes.len()).sum(), Ordering::SeqCst);
        self.inner.append(key, fence, pieces)
    }
}

/// T17: a step costs the bytes of its own result, and not those of the steps before it.
#[tokio::test]
async fn bytes_of_steps_grow_with_their_number() {
    let bytes = async |steps: usize| {
        let store = Arc::new(Weighing { inner: MemoryTasks::new(), bytes: AtomicUsize::new(0) });
        let job = move |ask: Ask| async move {
            for number in 0..steps {
                ask.remember(format!("step {number}"), async || "x".repeat(100)).await?;
            }
            Ok::<_, ToolError>("done")
        };
        let tasks = Tasks::new(Layered(Arc::clone(&store)));
        let client = TaskClient::of(
            Server::new("tasks", "1.0.0").tool(Tool::new("job", job).task(When::Required)).tasks(tasks),
        );
        assert_eq!(text(&client.ended(&client.start("job", json!({})).await).await), "done");
        store.bytes.load(Ordering::SeqCst)
    };
    let (few, many) = (bytes(500).await, bytes(1_000).await);
    assert!(many * 10 <= few * 21, "{few} bytes for 500 steps, {many} for 1,000");
    assert!(many <= 1_000 * 400, "{many} bytes for 1,000 steps of 100");
}
