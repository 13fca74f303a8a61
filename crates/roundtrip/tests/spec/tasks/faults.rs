//! Requests about tasks that are wrong, too many, or at the wrong moment.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::{Ask, MemoryTasks, Server, Status, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::clocked::Clocked;
use super::{TaskClient, server, text};

/// A tool that waits for the test.
fn waiting(go_on: &Arc<Notify>) -> Tool {
    let go_on = Arc::clone(go_on);
    let waits = move || {
        let go_on = Arc::clone(&go_on);
        async move {
            go_on.notified().await;
            "done"
        }
    };
    Tool::new("waits", waits).task(When::Required)
}

/// T2: whatever is sent in place of an id, or of answers, is -32602, and quoted shortly.
#[tokio::test]
async fn ids_and_answers_that_are_none_are_refused() {
    let client = TaskClient::of(server([waiting(&Arc::default())]));
    let id = client.start("waits", json!({})).await;
    let ids = [
        json!(null),
        json!(5),
        json!([id]),
        json!({ "id": id }),
        json!(""),
        json!(id.to_uppercase().replace(char::is_numeric, "A")),
        json!(format!("{id}0")),
        json!(format!("{id}\u{0}")),
        json!("../../etc/passwd"),
        json!("\u{1f600}".repeat(8)),
        json!("f".repeat(1 << 20)),
    ];
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for wrong in &ids {
            let params = json!({ "taskId": wrong, "inputResponses": {} });
            let (code, message) = client.error(method, params).await;
            assert!(code == -32602 && message.len() < 300, "{method} {wrong}: {code} {message}");
        }
        assert_eq!(client.error(method, json!({ "inputResponses": {} })).await.0, -32602, "{method}");
    }
    for answers in [json!(null), json!(5), json!([]), json!("{}")] {
        let params = json!({ "taskId": id, "inputResponses": answers });
        assert_eq!(client.error("tasks/update", params).await.0, -32602, "{answers}");
    }
    assert_eq!(client.error("tasks/update", json!({ "taskId": id })).await.0, -32602);
    assert_eq!(client.get(&id).await["status"], "working");
}

/// T10: in the extension `task` means nothing, whatever it is: the time to live is the server's.
#[tokio::test]
async fn the_extension_ignores_task() {
    let tasks = Tasks::new(MemoryTasks::new()).sep_2322().keep_for(Duration::from_secs(3600));
    let tool = Tool::new("greet", async || "hello").task(When::Offered);
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).tasks(tasks));
    let ttl = |ttl: f64| json!({ "ttl": ttl });
    let wishes =
        [ttl(0.0), ttl(-1.0), ttl(0.5), ttl(1e300), ttl(60_000.0), json!({ "ttl": null }), json!({})];
    for task in wishes.into_iter().chain([json!(true), json!([]), json!("x"), json!(null)]) {
        let created = client.result("tools/call", json!({ "name": "greet", "task": task })).await;
        assert_eq!(
            (&created["resultType"], &created["ttlMs"]),
            (&json!("task"), &json!(3_600_000)),
            "{task}"
        );
    }
}

/// T6: a client that polls without a pause costs the store a read each time, and its task nothing.
#[tokio::test]
async fn a_client_that_polls_all_the_time_changes_nothing() {
    let (store, go_on) = (Clocked::default(), Arc::new(Notify::new()));
    let tasks = Tasks::new(store.store()).lease(Duration::from_secs(3600));
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(waiting(&go_on)).tasks(tasks));
    let id = client.start("waits", json!({})).await;
    let (views, writes) = (store.views(), store.writes());
    for _ in 0..2_000 {
        let task = client.get(&id).await;
        assert!(task["pollIntervalMs"].as_u64() >= Some(100), "{task}");
    }
    assert_eq!((store.views() - views, store.writes() - writes), (2_000, 0));
    go_on.notify_one();
    assert_eq!(text(&client.ended(&id).await), "done");
}

/// T14: a million descriptions are a handful of writes.
#[tokio::test(start_paused = true)]
async fn a_million_descriptions_are_a_few_writes() {
    async fn chatty(status: Status) -> &'static str {
        for n in 0..1_000_000 {
            status.set(n.to_string());
            if n % 1_000 == 0 {
                tokio::task::yield_now().await;
            }
        }
        "done"
    }
    let store = Clocked::default();
    let tool = Tool::new("chatty", chatty).task(When::Required);
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).tasks(Tasks::new(store.store())));
    let task = client.ended(&client.start("chatty", json!({})).await).await;
    assert_eq!((text(&task), &task["statusMessage"]), ("done", &json!("999999")));
    // Time stands still while the handler is busy: one description at once, the last one, and the end.
    assert!(store.writes() <= 4, "{}", store.writes());
}

/// T3: of a cancellation and a completion at the same moment one counts, for everybody and for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancellation_meets_a_completion() {
    let go_on = Arc::new(Notify::new());
    let tasks = Tasks::new(MemoryTasks::new()).sep_2322();
    let server = Server::new("tasks", "1.0.0").tool(waiting(&go_on)).tasks(tasks);
    let extension = TaskClient::of(server);
    let second = TaskClient::at(&extension.endpoint).sep_2322();
    for round in 0..100 {
        let id = extension.start("waits", json!({})).await;
        let cancelling = tokio::spawn({
            let (client, id) = (second.clone(), id.clone());
            async move { client.send("tasks/cancel", json!({ "taskId": id })).await }
        });
        // A permit that a cancelled handler has not used is the next one's.
        go_on.notify_one();
        let told = cancelling.await.expect("an answer");
        let task = extension.ended(&id).await;
        match &task["status"] {
            Value::String(status) if status == "cancelled" => {
                assert_eq!(told["result"]["status"], "cancelled", "{round}: {told}");
                assert!(task.get("result").is_none(), "{task}");
            }
            _ => {
                assert_eq!(told["error"]["code"], -32602, "{round}: {told}");
                assert_eq!(text(&task), "done");
            }
        }
        assert_eq!(extension.get(&id).await, task, "the end is final");
    }
}

/// T17: a step that is running when its task is cancelled has 30 seconds to end; then it is dropped, and the task is cancelled.
#[tokio::test(start_paused = true)]
async fn a_step_that_does_not_end_is_dropped() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let noted = (Arc::clone(&begun), Arc::clone(&dropped));
    let stuck = move |ask: Ask| {
        let (begun, dropped) = noted.clone();
        async move {
            ask.remember("stuck", async || {
                let _dropped = Dropped(dropped);
                begun.notify_one();
                std::future::pending::<u32>().await
            })
            .await?;
            Ok::<_, ToolError>("never")
        }
    };
    let client = TaskClient::of(server([Tool::new("stuck", stuck).task(When::Required)]));
    let id = client.start("stuck", json!({})).await;
    begun.notified().await;
    client.cancel(&id).await;
    let cancelled = Instant::now();
    dropped.notified().await;
    let took = cancelled.elapsed();
    assert!((29..=31).contains(&took.as_secs()), "{took:?}");
    assert_eq!(client.ended(&id).await["status"], "cancelled");
}
