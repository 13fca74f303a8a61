//! News that come late, once, or while something else is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::seal::BoxFuture;
use roundtrip::task::{
    ChangedTask, Due, LeaseRenewer, Millis, StoredTask, StoredView, TakeRequest, TakenTask, TaskAnswer,
    TaskChange, TaskChanges, TaskId, TaskKey, TaskStore as _, TaskStoreError,
};
use roundtrip::{Ask, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::json;
use tokio::sync::{Notify, watch};

use super::TaskClient;
use super::layer::{Layer, Layered};
use crate::support::messages_of;

/// Tasks in memory that announce nothing, and fail where the test says.
struct Mute {
    inner: MemoryTasks,
    /// Number of reads, and of views, that fail next.
    failing: [AtomicUsize; 2],
    is_mute: bool,
}

impl Mute {
    fn new(is_mute: bool) -> Arc<Self> {
        Arc::new(Self { inner: MemoryTasks::new(), failing: Default::default(), is_mute })
    }

    fn fails(&self, kind: usize) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.failing[kind].fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }
}

fn failed<T>() -> Result<T, TaskStoreError> {
    Err(TaskStoreError::Failed("the database is locked".into()))
}

struct Nothing;

impl TaskChanges for Nothing {
    fn next(&mut self) -> BoxFuture<'_, Option<ChangedTask>> {
        Box::pin(std::future::pending())
    }
}

impl Layer for Mute {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        if self.fails(0) { Box::pin(async { failed() }) } else { self.inner.read(key, now) }
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        if self.fails(1) { Box::pin(async { failed() }) } else { self.inner.view(key, with_result, now) }
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        if self.is_mute { Box::new(Nothing) } else { self.inner.changes() }
    }
}

/// A tool that runs until it is dropped, and says so.
fn held(begun: &Arc<Notify>) -> Tool {
    let begun = Arc::clone(begun);
    let held = move || {
        let begun = Arc::clone(&begun);
        async move {
            begun.notify_one();
            std::future::pending::<String>().await
        }
    };
    Tool::new("held", held).task(When::Required)
}

/// T8: a worker that learns of a change by a renewal alone, and cannot read it at first, reads it later.
#[tokio::test]
async fn a_cancellation_that_cannot_be_read_at_first_is_heard() {
    let (store, begun) = (Mute::new(true), Arc::new(Notify::new()));
    let tasks = Tasks::new(Layered(Arc::clone(&store))).lease(Duration::from_millis(300));
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(held(&begun)).tasks(tasks));
    let id = client.start("held", json!({})).await;
    begun.notified().await;
    client.cancel(&id).await;
    store.failing[0].store(2, Ordering::SeqCst);
    assert_eq!(client.ended(&id).await["status"], "cancelled");
}

/// T9: a change that could not be read when it was to be announced is announced later.
#[tokio::test(start_paused = true)]
async fn a_change_that_cannot_be_read_at_first_is_announced() {
    let (store, begun) = (Mute::new(false), Arc::new(Notify::new()));
    let tasks = Tasks::new(Layered(Arc::clone(&store)));
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(held(&begun)).tasks(tasks));
    let id = client.start("held", json!({})).await;
    begun.notified().await;
    let mut meta = crate::support::meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { super::EXTENSION: {} } });
    let listen = json!({ "notifications": { "taskIds": [id] }, "_meta": meta });
    let request = crate::support::message(1, "subscriptions/listen", listen);
    let endpoint = client.endpoint.clone();
    let watching = tokio::spawn(async move { messages_of(&endpoint, &Default::default(), &request).await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    store.failing[1].store(2, Ordering::SeqCst);
    client.cancel(&id).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    client.endpoint.close_subscriptions();
    let heard = watching.await.expect("messages");
    let statuses: Vec<_> = heard.iter().filter_map(|message| message["params"]["status"].as_str()).collect();
    assert_eq!(statuses.last(), Some(&"cancelled"), "{heard:?}");
}

/// Tasks in memory whose answer to `take` waits for two renewals, once the test says so.
struct Delayed {
    inner: MemoryTasks,
    armed: AtomicBool,
    renewals: watch::Sender<usize>,
    ahead: Arc<AtomicUsize>,
}

struct DelayedRenewer(Box<dyn LeaseRenewer>, watch::Sender<usize>, Arc<AtomicUsize>);

impl LeaseRenewer for DelayedRenewer {
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>> {
        Box::pin(async move {
            // Nothing is renewed until the process has taken its own task again.
            if self.2.load(Ordering::SeqCst) == 1 {
                return Ok(held.iter().map(|(id, _)| (id.clone(), 0)).collect());
            }
            let renewed = self.0.renew(held, lease, now).await;
            self.1.send_modify(|renewals| *renewals += 1);
            renewed
        })
    }
}

impl Layer for Delayed {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        Box::pin(async move {
            let taken = self.inner.take(request, now).await?;
            if !taken.is_empty() && self.armed.swap(false, Ordering::SeqCst) {
                self.ahead.store(2, Ordering::SeqCst);
                let mut renewals = self.renewals.subscribe();
                let before = *renewals.borrow_and_update();
                // Both find that the fence is another.
                let _ = renewals.wait_for(|renewals| *renewals >= before + 2).await;
            }
            Ok(taken)
        })
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        Box::new(DelayedRenewer(self.inner.renewer(), self.renewals.clone(), Arc::clone(&self.ahead)))
    }
}

/// T15: a process that takes its own task again does not lose it to a renewal that comes before the answer: one run goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_does_not_lose_its_task_to_itself() {
    let store = Arc::new(Delayed {
        inner: MemoryTasks::new(),
        armed: AtomicBool::new(true),
        renewals: watch::Sender::new(0),
        ahead: Arc::new(AtomicUsize::new(1)),
    });
    let (runs, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let noted = (Arc::clone(&runs), Arc::clone(&go_on));
    let pays = move |ask: Ask| {
        let (runs, go_on) = noted.clone();
        async move {
            runs.fetch_add(1, Ordering::SeqCst);
            ask.remember("pay", async || go_on.notified().await).await?;
            Ok::<_, ToolError>("paid")
        }
    };
    let tasks = Tasks::new(Layered(Arc::clone(&store))).lease(Duration::from_millis(300));
    let pays = Tool::new("pays", pays).task(When::Required);
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(pays).tasks(tasks));
    let id = client.start("pays", json!({})).await;
    while store.armed.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let stored =
        async || store.inner().read(&super::key(&id), Millis(0)).await.expect("a store").expect("a task");
    // Renewed under the next fence.
    let before = *store.renewals.borrow();
    let _ = store.renewals.subscribe().wait_for(|renewals| *renewals > before + 3).await;
    go_on.notify_one();
    assert_eq!(super::text(&client.ended(&id).await), "paid");
    assert_eq!((runs.load(Ordering::SeqCst), stored().await.fence), (1, 2));
}

/// Tasks in memory that answer a release only after the task was taken again.
struct LateRelease {
    inner: MemoryTasks,
    taken: watch::Sender<usize>,
}

impl Layer for LateRelease {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        let is_release = change.is_live && change.due == Due::Never;
        Box::pin(async move {
            let written = self.inner.write(change, now).await;
            if is_release {
                let _ = self.taken.subscribe().wait_for(|taken| *taken > 0).await;
            }
            written
        })
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        Box::pin(async move {
            let taken = self.inner.take(request, now).await?;
            self.taken.send_modify(|all| *all += taken.len());
            Ok(taken)
        })
    }
}

/// T15: an answer that comes before the worker knows that its task is stored as asking is not left to the run that is over.
#[tokio::test(start_paused = true)]
async fn an_answer_ahead_of_the_news_of_a_release_runs_the_task() {
    let store = Arc::new(LateRelease { inner: MemoryTasks::new(), taken: watch::Sender::new(0) });
    let asks = |ask: Ask| async move { Ok::<_, ToolError>(ask.roots("roots").await?.len().to_string()) };
    let tasks = Tasks::new(Layered(Arc::clone(&store)));
    let asks = Tool::new("asks", asks).task(When::Required);
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(asks).tasks(tasks));
    let id = client.start("asks", json!({})).await;
    client.asks(&id).await;
    client.update(&id, json!({ "roots": { "roots": [] } })).await;
    // By the clock of this test: the lease, which lasts for half a minute, does not expire meanwhile.
    let ended = tokio::time::timeout(Duration::from_secs(20), client.ended(&id)).await;
    assert_eq!(super::text(&ended.expect("it runs on")), "0");
}
