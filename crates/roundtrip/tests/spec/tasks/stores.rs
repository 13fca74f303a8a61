//! The contract of stores of tasks, and a store that breaks it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::{BoxFuture, Digest};
use roundtrip::task::{
    ChangedTask, ExpiredTask, Millis, NewTask, StoredTask, StoredView, TakeRequest, TakenTask, TaskAnswer,
    TaskChange, TaskChanges, TaskId, TaskKey, TaskOwner, TaskStore,
};
use roundtrip::testing::stores;
use roundtrip::{Ask, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::json;
use tokio::sync::Notify;

use super::layer::{Layer, Layered};
use super::{TaskClient, key};

/// What a store does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Replaces a task whatever its version is.
    Overwrites,
    /// Shows every task to everyone.
    Shows,
    /// Counts no live tasks.
    Uncounted,
    /// Leaves a task due that it has given away.
    Shares,
    /// Says nothing of changes.
    Silent,
    /// Is no fault: gives tasks away only when it is told to.
    Slow,
    /// Is no fault: says that anything may have changed, whenever it is told to.
    Vague,
    /// Is no fault: cannot open the first task that it lists.
    Sealed,
    /// Panics once where it is asked for tasks that are due, or that have expired.
    Panics,
}

#[derive(Clone)]
struct Faulty(Arc<MemoryTasks>, Fault, TaskOwner, Arc<Notify>, Panics);

/// Whether a store has panicked in `take` and in `expired`.
#[derive(Clone, Default)]
struct Panics(Arc<[AtomicBool; 2]>);

struct Vagueness(Box<dyn TaskChanges>, Arc<Notify>);

impl TaskChanges for Vagueness {
    fn next(&mut self) -> BoxFuture<'_, Option<ChangedTask>> {
        Box::pin(async move {
            tokio::select! {
                () = self.1.notified() => None,
                change = self.0.next() => change,
            }
        })
    }
}

struct Silence;

impl TaskChanges for Silence {
    fn next(&mut self) -> BoxFuture<'_, Option<ChangedTask>> {
        Box::pin(std::future::pending())
    }
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self(
            Arc::new(MemoryTasks::new()),
            fault,
            TaskOwner::new(Some("all")),
            Arc::default(),
            Panics::default(),
        )
    }

    fn panic_once(&self, place: usize) {
        assert!(self.1 != Fault::Panics || self.4.0[place].swap(true, Ordering::SeqCst), "a bug");
    }

    fn store(&self) -> impl TaskStore + use<> {
        Layered(Arc::new(self.clone()))
    }
}

impl Layer for Faulty {
    fn inner(&self) -> &MemoryTasks {
        &self.0
    }

    fn key(&self, key: &TaskKey) -> TaskKey {
        let owner = if self.1 == Fault::Shows { self.2 } else { key.owner };
        TaskKey { owner, ..key.clone() }
    }

    fn create(&self, mut task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
        task.key = self.key(&task.key);
        self.0.create(task, if self.1 == Fault::Uncounted { usize::MAX } else { most }, now)
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        Box::pin(async move { self.0.view(&self.key(key), with_result, now).await })
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        Box::pin(async move {
            let read = self.0.read(&self.key(key), now).await?;
            Ok(read.map(|task| StoredTask { key: key.clone(), ..task }))
        })
    }

    fn write(&self, mut change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        Box::pin(async move {
            change.key = self.key(&change.key);
            if self.1 == Fault::Overwrites
                && let Some(stored) = self.0.read(&change.key, now).await?
            {
                change.version = stored.version;
            }
            self.0.write(change, now).await
        })
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        Box::pin(async move {
            self.panic_once(0);
            let lease = if self.1 == Fault::Shares { Duration::ZERO } else { request.lease };
            let taken = self.0.take(TakeRequest { lease, ..request }, now).await?;
            if self.1 == Fault::Slow && !taken.is_empty() {
                self.3.notified().await;
            }
            Ok(taken)
        })
    }

    fn expired<'a>(
        &'a self,
        service: &'a Digest,
        now: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
        self.panic_once(1);
        if self.1 == Fault::Panics {
            self.3.notify_one();
        }
        self.0.expired(service, now, most)
    }

    fn list<'a>(
        &'a self,
        (service, owner): (&'a Digest, &'a TaskOwner),
        after: Option<&'a TaskId>,
        most: usize,
    ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>> {
        Box::pin(async move {
            let owner = if self.1 == Fault::Shows { &self.2 } else { owner };
            let mut listed = self.0.list(service, owner, after, most).await?;
            if let Some((_, view)) = listed.first_mut().filter(|_| self.1 == Fault::Sealed && after.is_none())
            {
                *view = Bytes::new();
            }
            Ok(listed)
        })
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        match self.1 {
            Fault::Silent => Box::new(Silence),
            Fault::Vague => Box::new(Vagueness(self.0.changes(), Arc::clone(&self.3))),
            _ => self.0.changes(),
        }
    }
}

/// K1: tasks in memory keep the contract of stores of tasks.
#[tokio::test]
async fn tasks_in_memory_keep_the_contract() {
    let tasks = Arc::new(MemoryTasks::new());
    stores::tasks(Arc::clone(&tasks), tasks).await.expect("the contract");
}

/// K1: the contract finds stores that break it, and says how.
#[tokio::test(start_paused = true)]
async fn the_contract_finds_stores_that_break_it() {
    for (fault, rule) in [
        (Fault::Overwrites, "of changes to one version"),
        (Fault::Shows, "by its service, its owner and its identifier"),
        (Fault::Uncounted, "as many live tasks as it may"),
        (Fault::Shares, "those due longest first"),
        (Fault::Silent, "announced on every instance"),
    ] {
        let faulty = Faulty::new(fault);
        let broken = stores::tasks(faulty.store(), faulty.store()).await.expect_err(rule);
        assert!(broken.to_string().contains(rule), "{broken}");
    }
    let broken = stores::tasks(MemoryTasks::new(), MemoryTasks::new()).await.expect_err("two stores");
    assert!(broken.to_string().contains("is not there"), "{broken}");
}

/// T8: a worker that was told that its task may have changed, and found nothing, still hears of the change that comes next.
#[tokio::test]
async fn a_look_for_changes_hides_none() {
    let (store, begun) = (Faulty::new(Fault::Vague), Arc::new(Notify::new()));
    let noted = Arc::clone(&begun);
    let held = move || {
        let noted = Arc::clone(&noted);
        async move {
            noted.notify_one();
            std::future::pending::<String>().await
        }
    };
    let server = |at_once| {
        let held = Tool::new("held", held.clone()).task(When::Required);
        Server::new("tasks", "1.0.0").tool(held).tasks(Tasks::new(store.store()).at_once(at_once))
    };
    let (front, _worker) = (TaskClient::of(server(0)), server(1).build().expect("a worker"));
    let id = front.start("held", json!({})).await;
    begun.notified().await;
    for _ in 0..3 {
        store.3.notify_one();
        // It looks: nothing here waits for anything but its turn.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    front.cancel(&id).await;
    assert_eq!(front.ended(&id).await["status"], "cancelled");
}

/// T8: a cancellation that comes while a worker takes the task up reaches it, and not with the next renewal of its lease.
#[tokio::test]
async fn a_cancellation_reaches_a_worker_that_begins() {
    let store = Faulty::new(Fault::Slow);
    let held = || {
        let held = Tool::new("held", async || std::future::pending::<String>().await);
        Server::new("tasks", "1.0.0").tool(held.task(When::Required))
    };
    let front = TaskClient::of(held().tasks(Tasks::new(Arc::clone(&store.0)).at_once(0)));
    let id = front.start("held", json!({})).await;
    let hour = Duration::from_secs(3600);
    let _worker = held().tasks(Tasks::new(store.store()).at_once(1).lease(hour)).build().expect("a worker");
    while store.0.read(&key(&id), Millis(0)).await.expect("a store").expect("a task").fence == 0 {
        tokio::task::yield_now().await;
    }
    // The answer of the store is still on its way.
    front.cancel(&id).await;
    store.3.notify_one();
    assert_eq!(front.ended(&id).await["status"], "cancelled");
}

/// T3: a cancellation that the worker finds where its handler asks counts: the task does not wait for an answer.
#[tokio::test]
async fn a_cancellation_meets_a_question() {
    let store = Faulty::new(Fault::Silent);
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let noted = (Arc::clone(&begun), Arc::clone(&go_on));
    let asks = move |ask: Ask| {
        let (begun, go_on) = noted.clone();
        async move {
            let step = ask.remember("step", async || {
                begun.notify_one();
                go_on.notified().await;
            });
            let (sure, ()) = tokio::try_join!(async { Ok(ask.confirm("sure", "Sure?").await?) }, step)?;
            Ok::<_, ToolError>(sure.to_string())
        }
    };
    let server = || Server::new("tasks", "1.0.0").tool(Tool::new("asks", asks.clone()).task(When::Required));
    let front = TaskClient::of(server().tasks(Tasks::new(Arc::clone(&store.0)).at_once(0)));
    let _worker = server().tasks(Tasks::new(store.store())).build().expect("a worker");
    let id = front.start("asks", json!({})).await;
    begun.notified().await;
    front.cancel(&id).await;
    go_on.notify_one();
    assert_eq!(front.ended(&id).await["status"], "cancelled");
}

/// K6, T24: a task that cannot be opened is left out of `tasks/list`, and hides no other.
#[tokio::test]
async fn a_task_that_cannot_be_opened_is_not_listed() {
    let store = Faulty::new(Fault::Sealed);
    let tasks = Tasks::new(store.store()).sep_2322().per_caller(100);
    let tool = Tool::new("greet", async || "hello").task(When::Offered);
    let server = Server::new("tasks", "1.0.0").tool(tool).tasks(tasks);
    let client = TaskClient::of(server).by("ada").sep_2322();
    for _ in 0..51 {
        client.result("tools/call", json!({ "name": "greet", "task": {} })).await;
    }
    let page = client.result("tasks/list", json!({})).await;
    assert_eq!(page["tasks"].as_array().map(Vec::len), Some(49), "{page}");
    assert!(page["nextCursor"].is_string(), "{page}");
}

/// T15: a task that a process has taken, and has no place for any more, is given back at once: its lease has an hour to go.
#[tokio::test]
async fn a_task_without_a_place_is_given_back() {
    let store = Faulty::new(Fault::Slow);
    let memory = Arc::clone(&store.0);
    let tools = |server: Server| {
        let held = Tool::new("held", async || std::future::pending::<String>().await);
        server.tool(Tool::new("short", async || "done").task(When::Required)).tool(held.task(When::Required))
    };
    let hour = Duration::from_secs(3600);
    let server = |at_once| {
        let tasks = Tasks::new(Arc::clone(&memory)).at_once(at_once).lease(hour);
        tools(Server::new("tasks", "1.0.0")).tasks(tasks)
    };
    let front = TaskClient::of(server(0));
    let id = front.start("short", json!({})).await;
    let slow = Tasks::new(store.store()).at_once(1).lease(hour);
    let slow = TaskClient::of(tools(Server::new("tasks", "1.0.0")).tasks(slow));
    while memory.read(&key(&id), Millis(0)).await.expect("a store").expect("a task").fence == 0 {
        tokio::task::yield_now().await;
    }
    // The answer of the store is still on its way when a call takes the only place.
    slow.start("held", json!({})).await;
    store.3.notify_one();
    let _other = server(1).build().expect("another worker");
    assert_eq!(front.ended(&id).await["status"], "completed");
}

/// Z1: a store that panics where it is asked for tasks that are due, or that have expired, is asked again.
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_asked_again() {
    let store = Faulty::new(Fault::Panics);
    let server = |tasks: Tasks| {
        let greet = Tool::new("greet", async || "hello").task(When::Required);
        Server::new("tasks", "1.0.0").tool(greet).tasks(tasks)
    };
    let front = TaskClient::of(server(Tasks::new(Arc::clone(&store.0)).at_once(0)));
    let id = front.start("greet", json!({})).await;
    let _worker = server(Tasks::new(store.store())).build().expect("a worker");
    assert_eq!(front.ended(&id).await["status"], "completed");
    // It says so from the second time on.
    tokio::time::timeout(Duration::from_secs(60), store.3.notified()).await.expect("swept again");
    assert!(store.4.0.iter().all(|panicked| panicked.load(Ordering::SeqCst)), "it has panicked");
}
