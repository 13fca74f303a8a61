//! Cancellation of a task whose handler takes steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::{Ask, Server, Tasks, Tool, ToolError, When};
use serde_json::json;
use tokio::sync::Notify;

use super::TaskClient;
use super::clocked::Clocked;

/// T17: a step that is running when its task is cancelled ends, and is stored; the next does not begin, and nothing behind it runs.
#[tokio::test]
async fn no_step_begins_in_a_cancelled_task() {
    let (store, begun, go_on) = (Clocked::default(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let behind = Arc::new(AtomicUsize::new(0));
    let noted = (Arc::clone(&begun), Arc::clone(&go_on), Arc::clone(&behind));
    let pays = move |ask: Ask| {
        let (begun, go_on, behind) = noted.clone();
        async move {
            ask.remember("pay", async || {
                begun.notify_one();
                go_on.notified().await;
                "the receipt".to_owned()
            })
            .await?;
            behind.fetch_add(1, Ordering::SeqCst);
            ask.remember("ship", async || behind.fetch_add(1, Ordering::SeqCst)).await?;
            Ok::<_, ToolError>("shipped")
        }
    };
    let tool = Tool::new("pays", pays).task(When::Required);
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).tasks(Tasks::new(store.store())));
    let id = client.start("pays", json!({})).await;
    begun.notified().await;
    client.cancel(&id).await;
    let kept = store.hold_answer();
    go_on.notify_one();
    kept.reached.notified().await;
    let journal = store.journal(&id).await.concat();
    assert!(String::from_utf8_lossy(&journal).contains("the receipt"), "the step is stored");
    kept.release.notify_one();
    assert_eq!(client.ended(&id).await["status"], "cancelled");
    assert_eq!(behind.load(Ordering::SeqCst), 0);
}

/// T17: of steps side by side, one that has not begun when its task is cancelled never does; the others end.
#[tokio::test]
async fn a_step_that_is_about_to_begin_does_not() {
    let (store, begun, go_on) = (Clocked::default(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (paid, shipped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let noted = (Arc::clone(&begun), Arc::clone(&go_on), Arc::clone(&paid), Arc::clone(&shipped));
    let pays = move |ask: Ask| {
        let (begun, go_on, paid, shipped) = noted.clone();
        async move {
            let pay = ask.remember("pay", async || {
                begun.notify_one();
                go_on.notified().await;
                paid.fetch_add(1, Ordering::SeqCst)
            });
            let ship = async {
                go_on.notified().await;
                ask.remember("ship", async || shipped.fetch_add(1, Ordering::SeqCst)).await
            };
            tokio::try_join!(pay, ship)?;
            Ok::<_, ToolError>("shipped")
        }
    };
    let tool = Tool::new("pays", pays).task(When::Required);
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).tasks(Tasks::new(store.store())));
    let id = client.start("pays", json!({})).await;
    begun.notified().await;
    client.cancel(&id).await;
    go_on.notify_waiters();
    assert_eq!(client.ended(&id).await["status"], "cancelled");
    assert_eq!((paid.load(Ordering::SeqCst), shipped.load(Ordering::SeqCst)), (1, 0));
}
