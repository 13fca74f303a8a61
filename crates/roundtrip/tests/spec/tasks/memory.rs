//! Bounds and shares of tasks in memory.

use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{
    Chunk, Due, Millis, NewTask, TaskChange, TaskId, TaskKey, TaskOwner, TaskStore, TaskStoreError,
};
use roundtrip::{Ask, Form, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::json;

use super::{TaskClient, says, text};

const KIB: usize = 1024;

const NOW: Millis = Millis(1);

fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; Digest::LEN])
}

/// A task of a caller that a worker has.
fn task(caller: u8, number: u8, size: usize) -> NewTask {
    let owner = TaskOwner::from_bytes([caller; Digest::LEN]);
    NewTask {
        key: TaskKey { service: digest(0), owner, id: TaskId::new([number; 16]) },
        account: digest(caller),
        kind: digest(0),
        lease: Some(Duration::from_secs(60)),
        expires: None,
        call: Bytes::new(),
        view: Bytes::new(),
        work: vec![0; size].into(),
        journal: None,
    }
}

/// A change of a task that makes it as large as this.
fn grown(task: &NewTask, version: u64, size: usize) -> TaskChange {
    TaskChange {
        key: task.key.clone(),
        version,
        due: Due::AsBefore,
        is_live: true,
        expires: None,
        view: Bytes::new(),
        work: vec![0; size].into(),
        result: None,
        journal: Vec::new(),
        replaces_journal: false,
        parts: Vec::new(),
    }
}

async fn is_full(store: &MemoryTasks, task: NewTask) -> bool {
    match store.create(task, usize::MAX, NOW).await {
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
    store.remove(&digest(0), &[(TaskId::new([0; 16]), 0)]).await.expect("removed");
    assert!(is_full(&store, task(1, 102, 4 * KIB)).await, "others have taken what it would get");
}

/// Z3: a task that grows counts as large as it is, against its own caller first, and so does its journal.
#[tokio::test]
async fn a_task_in_memory_counts_as_large_as_it_has_grown() {
    let store = MemoryTasks::bounded(64 * KIB);
    let small = task(1, 0, 0);
    assert!(!is_full(&store, small.clone()).await);
    assert!(store.write(grown(&small, 0, 20 * KIB), NOW).await.expect("a worker is never refused"));
    let piece = Chunk { number: 0, bytes: vec![0; 20 * KIB].into() };
    assert!(store.append(&small.key, 1, &[piece]).await.expect("a worker is never refused"));
    assert!(is_full(&store, task(1, 1, 0)).await);
    assert!(is_full(&store, task(2, 2, 16 * KIB)).await);
    assert!(!is_full(&store, task(2, 2, 8 * KIB)).await);
    let ended = TaskChange { is_live: false, due: Due::Never, ..grown(&small, 1, 0) };
    assert!(store.write(ended, NOW).await.expect("room"));
    assert!(!is_full(&store, task(1, 1, 16 * KIB)).await);
}

/// Z3: answers to a task that waits for them count too, and are refused past the share. The task can still end.
#[tokio::test]
async fn answers_past_the_share_are_refused() {
    let store = MemoryTasks::bounded(64 * KIB);
    let parked = NewTask { lease: None, ..task(1, 0, KIB) };
    assert!(!is_full(&store, parked.clone()).await);
    let refused = store.write(grown(&parked, 0, 33 * KIB), NOW).await;
    assert!(matches!(refused, Err(TaskStoreError::Full)), "{refused:?}");
    assert!(
        !store.write(grown(&parked, 1, 33 * KIB), NOW).await.expect("a change to another version is none")
    );
    let ended = TaskChange { is_live: false, ..grown(&parked, 0, 33 * KIB) };
    assert!(store.write(ended, NOW).await.expect("an end"));

    let (parked, full) = (NewTask { lease: None, ..task(2, 1, KIB) }, task(2, 2, 8 * KIB));
    assert!(!is_full(&store, parked.clone()).await && !is_full(&store, full.clone()).await);
    assert!(store.write(grown(&full, 0, 20 * KIB), NOW).await.expect("a worker"));
    let answered = store.write(grown(&parked, 0, KIB), NOW).await;
    assert!(answered.expect("an answer no larger than its question needs no room"));
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
    store.remove(&digest(0), &[(TaskId::new([4; 16]), 0)]).await.expect("removed");
    let (owner, id) = (TaskOwner::from_bytes([0; Digest::LEN]), |number| TaskId::new([number; 16]));
    let page = async |after: Option<u8>, most| {
        let after = after.map(id);
        let listed = store.list(&digest(0), &owner, after.as_ref(), most).await.expect("a page");
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
    assert_eq!(store.list(&digest(0), &stranger, None, 10).await.expect("a page"), []);
    assert_eq!(store.list(&digest(1), &owner, None, 10).await.expect("a page"), [], "another service");
}
