//! Bounds and shares of tasks in memory.

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{Millis, StoredTask, TaskId, TaskOwner, TaskStore, TaskStoreError};
use roundtrip::{Ask, Form, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::json;

use super::{TaskClient, says, text};

const KIB: usize = 1024;

/// A task of a caller that a worker has.
fn task(caller: u8, number: u8, size: usize) -> StoredTask {
    StoredTask {
        id: TaskId::new([number; 16]),
        owner: TaskOwner::from_bytes([caller; Digest::LEN]),
        account: Digest::from_bytes([caller; Digest::LEN]),
        version: 0,
        fence: 1,
        is_live: true,
        due: Some(Millis(1)),
        expires: None,
        view: Bytes::new(),
        work: vec![0; size].into(),
    }
}

async fn is_full(store: &MemoryTasks, task: StoredTask) -> bool {
    match store.create(task, usize::MAX).await {
        Ok(()) => false,
        Err(TaskStoreError::Full) => true,
        Err(error) => panic!("{error}"),
    }
}

/// Z3: one caller gets half of a store in memory, and the next half of what is left.
#[tokio::test]
async fn a_caller_does_not_fill_the_tasks_in_memory_for_others() {
    let store = MemoryTasks::bounded(64 * KIB);
    let mut taken = 0;
    while !is_full(&store, task(1, taken, 4 * KIB)).await {
        taken += 1;
    }
    assert_eq!(taken, 7, "with what a task takes besides its bytes, half of 64 KiB");
    assert!(is_full(&store, task(2, 100, 17 * KIB)).await);
    assert!(!is_full(&store, task(2, 100, 15 * KIB)).await);
    assert!(!is_full(&store, task(3, 101, 4 * KIB)).await);
    store.remove(&TaskId::new([0; 16]), 0).await.expect("removed");
    assert!(is_full(&store, task(1, 102, 4 * KIB)).await, "others have taken what it would get");
}

/// Z3: a task that grows counts as large as it is, against its own caller first.
#[tokio::test]
async fn a_task_in_memory_counts_as_large_as_it_has_grown() {
    let store = MemoryTasks::bounded(64 * KIB);
    let small = task(1, 0, 0);
    assert!(!is_full(&store, small.clone()).await);
    let grown = StoredTask { work: vec![0; 40 * KIB].into(), ..small };
    assert!(store.write(grown.clone()).await.expect("a worker is never refused"));
    assert!(is_full(&store, task(1, 1, 0)).await);
    assert!(is_full(&store, task(2, 2, 16 * KIB)).await);
    assert!(!is_full(&store, task(2, 2, 8 * KIB)).await);
    let shrunk = StoredTask { version: 1, work: Bytes::new(), ..grown };
    assert!(store.write(shrunk).await.expect("room"));
    assert!(!is_full(&store, task(1, 1, 16 * KIB)).await);
}

/// Z3: answers to a task that waits for them count too, and are refused past the share. The task can still end.
#[tokio::test]
async fn answers_past_the_share_are_refused() {
    let store = MemoryTasks::bounded(64 * KIB);
    let parked = StoredTask { due: None, ..task(1, 0, KIB) };
    assert!(!is_full(&store, parked.clone()).await);
    let answered = |size, is_live| StoredTask { work: vec![0; size].into(), is_live, ..parked.clone() };
    let refused = store.write(answered(33 * KIB, true)).await;
    assert!(matches!(refused, Err(TaskStoreError::Full)), "{refused:?}");
    let other = StoredTask { version: 1, ..answered(33 * KIB, true) };
    assert!(!store.write(other).await.expect("a change to another version is none"));
    assert!(store.write(answered(33 * KIB, false)).await.expect("an end"));

    let (parked, full) = (StoredTask { due: None, ..task(2, 1, KIB) }, StoredTask { ..task(2, 2, 8 * KIB) });
    assert!(!is_full(&store, parked.clone()).await && !is_full(&store, full.clone()).await);
    assert!(store.write(StoredTask { work: vec![0; 20 * KIB].into(), ..full }).await.expect("a worker"));
    assert!(store.write(parked).await.expect("an answer no larger than its question needs no room"));
}

#[derive(Form)]
struct Name {
    name: String,
}

/// Z3: a client whose answer does not fit is told to come back (503), and its task takes a smaller one.
#[tokio::test]
async fn an_answer_that_does_not_fit_leaves_the_task_asking() {
    async fn hello(ask: Ask) -> Result<String, ToolError> {
        let Name { name } = ask.form("name", "Who are you?").await?;
        Ok(format!("Hello, {name}!"))
    }
    let tool = Tool::new("hello", hello).task(When::Required);
    let tasks = Tasks::new(MemoryTasks::bounded(16 * KIB));
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).tasks(tasks));
    let id = client.start("hello", json!({})).await;
    client.asks(&id).await;
    let large = json!({ "taskId": id, "inputResponses": { "name": says(&"x".repeat(12 * KIB)) } });
    assert_eq!(client.error("tasks/update", large).await.0, 503);
    assert_eq!(client.get(&id).await["status"], "input_required");
    client.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&client.ended(&id).await), "Hello, Ada!");
}

/// Z3: a page of one owner's tasks is read without those of others, from behind the last one on.
#[tokio::test]
async fn an_owners_tasks_are_listed_in_pages() {
    let store = MemoryTasks::new();
    for number in 0..9 {
        assert!(!is_full(&store, task(number % 2, number, 0)).await);
    }
    store.remove(&TaskId::new([4; 16]), 0).await.expect("removed");
    let (owner, id) = (TaskOwner::from_bytes([0; Digest::LEN]), |number| TaskId::new([number; 16]));
    let page = async |after: Option<u8>, most| {
        let after = after.map(id);
        let listed = store.list(&owner, after.as_ref(), most).await.expect("a page");
        listed.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    let mut own = [0, 2, 6, 8].map(id);
    own.sort();
    assert_eq!(page(None, 10).await, own);
    assert_eq!(page(None, 2).await, own[..2]);
    let second = [0, 2, 6, 8].into_iter().find(|number| id(*number) == own[1]);
    assert_eq!(page(second, 2).await, own[2..]);
    assert_eq!(page(Some(4), 10).await, own.into_iter().filter(|own| *own > id(4)).collect::<Vec<_>>());
    let stranger = TaskOwner::from_bytes([7; Digest::LEN]);
    assert_eq!(store.list(&stranger, None, 10).await.expect("a page"), []);
}
