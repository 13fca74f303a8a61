//! Tasks of an earlier release that a server passes over, or cannot adopt at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use roundtrip::task::{AdoptedTask, Millis, OrphanTask, TaskAnswer, TaskId, TaskOwner, TaskStoreError};
use roundtrip::{MemoryTasks, Server, Tasks, Tool, When};
use serde_json::json;

use super::layer::{Layer, Layered};

const HOUR: Duration = Duration::from_secs(3_600);

/// Tasks in memory, beside tasks of an earlier release.
#[derive(Default)]
struct WithOrphans {
    inner: MemoryTasks,
    orphans: Mutex<Vec<OrphanTask>>,
    /// Identifiers of orphans that were read.
    read: Mutex<Vec<TaskId>>,
    /// Identifiers of those that the store fails to give away.
    fails: Mutex<Vec<TaskId>>,
    lists: AtomicUsize,
    sweeps: AtomicUsize,
}

impl WithOrphans {
    fn orphans(&self) -> MutexGuard<'_, Vec<OrphanTask>> {
        self.orphans.lock().expect("no panic")
    }

    fn left(&self) -> Vec<TaskId> {
        self.orphans().iter().map(|orphan| orphan.id.clone()).collect()
    }

    fn reads_of(&self, number: u8) -> usize {
        self.read.lock().expect("no panic").iter().filter(|read| **read == id(number)).count()
    }
}

impl Layer for WithOrphans {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn orphans<'a>(&'a self, after: Option<&'a TaskId>, most: usize) -> TaskAnswer<'a, Vec<OrphanTask>> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        let orphans = self.orphans().clone().into_iter();
        let behind = orphans.filter(|orphan| after.is_none_or(|after| orphan.id > *after)).take(most);
        let listed = behind.map(|orphan| OrphanTask { view: "".into(), work: "".into(), ..orphan });
        Box::pin(std::future::ready(Ok(listed.collect())))
    }

    fn orphan<'a>(&'a self, _: &'a TaskOwner, id: &'a TaskId) -> TaskAnswer<'a, Option<OrphanTask>> {
        self.read.lock().expect("no panic").push(id.clone());
        let found = self.orphans().iter().find(|orphan| orphan.id == *id).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn remove_orphans(&self, _: Millis, _: usize) -> TaskAnswer<'_, usize> {
        self.sweeps.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(0)))
    }

    fn adopt(&self, task: AdoptedTask) -> TaskAnswer<'_, bool> {
        let adopted = if self.fails.lock().expect("no panic").contains(&task.key.id) {
            Err(TaskStoreError::Failed("it breaks a constraint".into()))
        } else {
            self.orphans().retain(|orphan| orphan.id != task.key.id);
            Ok(true)
        };
        Box::pin(std::future::ready(adopted))
    }
}

fn id(number: u8) -> TaskId {
    TaskId::new([number; 16])
}

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).expect("a length").to_be_bytes()[..], bytes].concat()
}

/// A task of a tool, as an earlier release has stored it.
fn orphan(number: u8, tool: &str) -> OrphanTask {
    let record = json!({
        "tool": tool, "status": "working", "message": null, "created": 1, "updated": 1, "ttl": null,
        "call": { "params": { "name": tool }, "principal": null }, "flow": vec![number; 16], "rounds": 0,
        "questions": [], "spent": [], "answers": {}, "cancelled": false, "result": null, "error": null,
    });
    let view = [&1_u64.to_be_bytes()[..], &prefixed(tool.as_bytes()), &prefixed(b"{}")].concat();
    let work = prefixed(record.to_string().as_bytes());
    OrphanTask {
        id: id(number),
        owner: TaskOwner::new(None),
        version: 0,
        view: view.into(),
        work: work.into(),
    }
}

fn job() -> Tool {
    Tool::new("job", async || "done").task(When::Required)
}

fn server(store: &Arc<WithOrphans>) -> Server {
    Server::new("tasks", "1").tool(job()).tasks(Tasks::new(Layered(Arc::clone(store))))
}

/// K5: an orphan that cannot be adopted now holds up no other, and is tried again.
#[tokio::test(start_paused = true)]
async fn an_orphan_that_cannot_be_adopted_holds_up_no_other() {
    let store = Arc::new(WithOrphans::default());
    store.orphans().extend((1..=20).map(|number| orphan(number, "job")));
    // More in a row than the store may fail for in one pass.
    store.fails.lock().expect("no panic").extend((1..=10).map(id));
    let _server = server(&store).build().expect("a server");
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(store.left(), (1..=10).map(id).collect::<Vec<_>>());
    store.fails.lock().expect("no panic").clear();
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert!(store.left().is_empty());
    let lists = store.lists.load(Ordering::SeqCst);
    tokio::time::sleep(3 * HOUR).await;
    assert_eq!(store.lists.load(Ordering::SeqCst), lists, "there are none any more");
}

/// K5: orphans of tools that a server has not are read once, looked for less and less often, and adopted once it has their tool.
#[tokio::test(start_paused = true)]
async fn orphans_of_other_tools_cost_next_to_nothing() {
    let store = Arc::new(WithOrphans::default());
    store.orphans().extend([orphan(1, "other"), orphan(2, "job"), orphan(3, "other")]);
    let server = server(&store).build().expect("a server");
    tokio::time::sleep(6 * HOUR).await;
    assert_eq!(store.left(), [id(1), id(3)]);
    assert_eq!((store.reads_of(1), store.reads_of(3)), (1, 1));
    let lists = store.lists.load(Ordering::SeqCst);
    assert!((12..40).contains(&lists), "{lists} lists in six hours");
    assert!(store.sweeps.load(Ordering::SeqCst) >= 6, "those that have expired are removed all the same");
    let other = Tool::new("other", async || "done").task(When::Required);
    server.catalog().add(other).expect("a new tool");
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(store.left().is_empty(), "it does not wait for an hour");
}
