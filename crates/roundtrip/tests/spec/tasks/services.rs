//! Several services on one store, and what callers share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::server::Limits;
use roundtrip::{Args, Ask, Form, MemoryTasks, Question, Reply, Round, Server, Tasks, Tool, ToolError, When};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use super::{TaskClient, keys, says, text};

#[derive(Form)]
struct Name {
    name: String,
}

/// A server of this name whose reports say who has run them.
fn reporting(name: &'static str, store: &Arc<MemoryTasks>) -> Server {
    let report = move |ask: Ask| async move {
        let Name { name: caller } = ask.form("name", "Who?").await?;
        Ok::<_, ToolError>(format!("{caller} at {name}"))
    };
    let tasks = Tasks::new(Arc::clone(store)).at_once(2).per_caller(20);
    Server::new(name, "1.0.0").tool(Tool::new("report", report).task(When::Required)).tasks(tasks)
}

/// S11: servers with other names on one store run nothing of each other, show nothing of each other, and count their own.
#[tokio::test]
async fn services_on_one_store_do_not_run_or_show_each_others_tasks() {
    let store = Arc::new(MemoryTasks::new());
    let [shop, reports] = ["shop", "reports"].map(|name| TaskClient::of(reporting(name, &store)));
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(shop.start("report", json!({})).await);
    }
    for id in &ids {
        shop.asks(id).await;
        assert_eq!(reports.error("tasks/get", json!({ "taskId": id })).await.0, -32602);
        let answers = json!({ "taskId": id, "inputResponses": { "name": says("Eve") } });
        assert_eq!(reports.error("tasks/update", answers).await.0, -32602);
        shop.update(id, json!({ "name": says("Ada") })).await;
    }
    // The account has twenty live tasks at the other service.
    reports.asks(&reports.start("report", json!({})).await).await;
    for id in &ids {
        assert_eq!(text(&shop.ended(id).await), "Ada at shop");
    }
}

/// Z3: one caller's tasks do not take all slots: a free one goes to the caller with the fewest, and the last eighth to others.
#[tokio::test]
async fn a_caller_does_not_take_all_slots_for_tasks() {
    let go_on = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&go_on);
    let slow = move |ask: Ask| {
        let held = Arc::clone(&held);
        async move {
            drop(held.acquire().await);
            let Name { name } = ask.form("name", "Who?").await?;
            Ok::<_, ToolError>(name)
        }
    };
    let server = Server::new("tasks", "1.0.0")
        .tool(Tool::new("slow", slow).task(When::Required))
        .tool(Tool::new("quick", async || "done").task(When::Required))
        .tasks(Tasks::new(MemoryTasks::new()).at_once(8));
    let ada = TaskClient::of(server).by("ada");
    for _ in 0..80 {
        ada.start("slow", json!({})).await;
    }
    let bob = TaskClient::at(&ada.endpoint).by("bob");
    assert_eq!(text(&bob.ended(&bob.start("quick", json!({})).await).await), "done");
    go_on.add_permits(1_000);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Large {
    #[serde(rename = "text")]
    _text: String,
}

/// Z3: messages of tasks that a worker takes count as those of calls do: no more run at once than there is room for, and all run.
#[tokio::test]
async fn tasks_that_a_worker_takes_have_room_for_their_messages() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let tool = || {
        let signals = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&reached), Arc::clone(&go_on));
        let large = move |_: Args<Large>| {
            let (running, most, reached, go_on) = signals.clone();
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                reached.notify_one();
                drop(go_on.acquire().await);
                running.fetch_sub(1, Ordering::SeqCst);
                "done"
            }
        };
        Tool::new("large", large).task(When::Required)
    };
    let store = Arc::new(MemoryTasks::new());
    let server = |at_once| {
        let mut limits = Limits::default();
        limits.call_bytes = 4 << 20;
        let tasks = Tasks::new(Arc::clone(&store)).at_once(at_once);
        Server::new("tasks", "1.0.0").tool(tool()).limits(limits).tasks(tasks)
    };
    let front = TaskClient::of(server(0));
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(front.start("large", json!({ "text": "x".repeat(700 << 10) })).await);
    }
    let _worker = server(64).build().expect("a worker");
    reached.notified().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    go_on.add_permits(1_000);
    for id in &ids {
        let ended = tokio::time::timeout(Duration::from_secs(30), async {
            while front.get(id).await["status"] != "completed" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        ended.await.expect("each is run");
    }
    assert_eq!(most.load(Ordering::SeqCst), 2, "half of 4 MiB is one caller's, and has room for two");
}

/// M21, T4: a task that is answered question by question comes to its end: an answer is progress, and asks nothing new.
#[tokio::test]
async fn a_task_may_be_answered_question_by_question() {
    async fn many(round: Round) -> Result<Reply, ToolError> {
        let mut open = Vec::new();
        for question in (0..40).map(|n| Question::confirm(format!("q{n}"), "Yes?")) {
            if round.confirmed(&question.key)?.is_none() {
                open.push(question);
            }
        }
        Ok(if open.is_empty() { Reply::text("40 answers") } else { round.ask(open) })
    }
    let client = TaskClient::of(super::server([Tool::new("many", many).task(When::Required)]));
    let id = client.start("many", json!({})).await;
    let mut answered = HashSet::new();
    for left in (1..=40).rev() {
        let task = client
            .until(&id, |task| task["inputRequests"].as_object().is_some_and(|all| all.len() == left))
            .await;
        let key = keys(&task)[0].to_owned();
        client.update(&id, json!({ &key: { "action": "accept", "content": { "confirm": true } } })).await;
        assert!(answered.insert(key), "no key is asked twice");
    }
    assert_eq!(text(&client.ended(&id).await), "40 answers");
}

/// T17: steps of a task are bounded, as its questions are: a client's list may be long.
#[tokio::test]
async fn steps_of_a_task_are_bounded() {
    let steps = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&steps);
    let endless = move |ask: Ask| {
        let counted = Arc::clone(&counted);
        async move {
            for number in 0.. {
                ask.remember(format!("step {number}"), async || *counted.lock().expect("a count") += 1)
                    .await?;
            }
            Ok::<_, ToolError>("never")
        }
    };
    let client = TaskClient::of(super::server([Tool::new("endless", endless).task(When::Required)]));
    let task = client.ended(&client.start("endless", json!({})).await).await;
    assert!(task.to_string().contains("more than 10000 steps in one task"), "{task}");
    assert_eq!(*steps.lock().expect("a count"), 10_000);
}
