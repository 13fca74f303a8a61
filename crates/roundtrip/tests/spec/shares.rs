//! Calls at once, shared by callers.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use roundtrip::server::{Endpoint, Limits};
use roundtrip::{MemoryTasks, Server, Tasks, Tool, When};
use serde_json::{Value, json};

use crate::tasks::TaskClient;

/// Calls that run, each waiting.
type Waiting<'c> = Vec<Pin<Box<dyn Future<Output = Value> + Send + 'c>>>;

/// Begins a call again and again, until one is refused. Returns those that wait.
async fn all_that_can_wait<'c>(client: &'c TaskClient, method: &'static str, params: &Value) -> Waiting<'c> {
    let mut waiting: Waiting<'c> = Vec::new();
    loop {
        let mut call: Pin<Box<dyn Future<Output = Value> + Send + 'c>> =
            Box::pin(client.ask(method, params.clone()));
        match poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            Poll::Pending => waiting.push(call),
            Poll::Ready(refused) => {
                assert_eq!(refused["error"]["code"], 503, "{refused}");
                return waiting;
            }
        }
    }
}

fn endpoint(concurrent_calls: usize) -> Endpoint {
    let mut limits = Limits::default();
    limits.concurrent_calls = concurrent_calls;
    let tools = [
        Tool::new("wait", async || pending::<&str>().await),
        Tool::new("job", async || pending::<&str>().await).task(When::Offered),
        Tool::new("quick", async || "done"),
    ];
    let tasks = Tasks::new(MemoryTasks::new()).sep_2322();
    let server = tools.into_iter().fold(Server::new("s", "1"), Server::tool);
    server.limits(limits).tasks(tasks).build().expect("a server")
}

/// Z3: one caller has the calls that began below a quarter of the limit, and half of what the others leave of the rest. The
/// next one is served however long the first ones wait.
#[tokio::test]
async fn one_caller_does_not_take_all_calls() {
    let endpoint = endpoint(60);
    let [eve, bob, ann] = ["eve", "bob", "ann"].map(|who| TaskClient::at(&endpoint).sep_2322().by(who));
    let wait = json!({ "name": "wait" });
    for _ in 0..2 {
        let of_eve = all_that_can_wait(&eve, "tools/call", &wait).await;
        assert_eq!(of_eve.len(), 15 + 23, "a quarter of 60, and half of the rest");
        let done = bob.result("tools/call", json!({ "name": "quick" })).await;
        assert_eq!(done["content"][0]["text"], "done", "{done}");
        let of_bob = all_that_can_wait(&bob, "tools/call", &wait).await;
        assert_eq!(of_bob.len(), 11, "half of what eve leaves");
        let of_ann = all_that_can_wait(&ann, "tools/call", &wait).await;
        assert_eq!(of_ann.len(), 6);
        // All is given back.
        drop((of_eve, of_bob, of_ann));
        assert_eq!(endpoint.running_calls(), 0);
    }
}

/// Z3: requests that wait for the result of a task are calls, and are shared as these.
#[tokio::test]
async fn one_caller_does_not_take_all_calls_by_waiting_for_results() {
    let endpoint = endpoint(60);
    let [eve, bob] = ["eve", "bob"].map(|who| TaskClient::at(&endpoint).sep_2322().by(who));
    let created = eve.result("tools/call", json!({ "name": "job", "task": {} })).await;
    let about = json!({ "taskId": created["task"]["taskId"] });
    let waiting = all_that_can_wait(&eve, "tasks/result", &about).await;
    assert!((30..=38).contains(&waiting.len()), "{}", waiting.len());
    for _ in 0..20 {
        let done = bob.result("tools/call", json!({ "name": "quick" })).await;
        assert_eq!(done["content"][0]["text"], "done", "{done}");
    }
}

/// Z3: callers without a principal are told apart by their addresses, and a limit of a few calls is one of a few calls.
#[tokio::test]
async fn callers_without_a_name_share_calls_too() {
    for (limit, one, next) in [(1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 3, 1), (8, 5, 2), (100, 63, 19)] {
        let endpoint = endpoint(limit);
        let [eve, bob] =
            ["192.0.2.1", "192.0.2.2"].map(|from| TaskClient::at(&endpoint).sep_2322().from(from));
        let wait = json!({ "name": "wait" });
        let of_eve = all_that_can_wait(&eve, "tools/call", &wait).await;
        let of_bob = all_that_can_wait(&bob, "tools/call", &wait).await;
        assert_eq!((of_eve.len(), of_bob.len()), (one, next), "{limit}");
    }
}
