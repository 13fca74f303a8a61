//! Places of tasks in a process, and room for their messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::server::Limits;
use roundtrip::{Args, Ask, MemoryTasks, Server, State, Tasks, Tool, ToolError, When};
use serde_json::json;
use tokio::sync::Notify;

use super::{TaskClient, text};

/// Time after which calls of the tools become tasks.
const AFTER: Duration = Duration::from_millis(20);

/// Handlers of a test, which wait until they are told to go on.
#[derive(Clone, Default)]
struct Handlers {
    running: Arc<AtomicUsize>,
    steps: Arc<AtomicUsize>,
    go_on: Arc<Notify>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Handlers {
    async fn run(&self) -> String {
        self.running.fetch_add(1, Ordering::SeqCst);
        let _running = Running(Arc::clone(&self.running));
        self.go_on.notified().await;
        "done".into()
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// A client of a server with one place for tasks.
    fn client(&self) -> TaskClient {
        async fn plain(State(handlers): State<Handlers>) -> String {
            handlers.run().await
        }
        async fn asking(_: Ask, State(handlers): State<Handlers>) -> String {
            handlers.run().await
        }
        async fn step(ask: Ask, State(handlers): State<Handlers>) -> Result<String, ToolError> {
            let counted = async || {
                tokio::time::sleep(10 * AFTER).await;
                handlers.steps.fetch_add(1, Ordering::SeqCst)
            };
            ask.remember("step", counted).await?;
            Ok(handlers.run().await)
        }
        let server = Server::new("tasks", "1.0.0")
            .tool(Tool::new("plain", plain).task(When::After(AFTER)))
            .tool(Tool::new("asking", asking).task(When::After(AFTER)))
            .tool(Tool::new("step", step).task(When::After(AFTER)));
        let tasks = Tasks::new(MemoryTasks::new()).at_once(1);
        TaskClient::of(server.state(self.clone()).tasks(tasks))
    }
}

/// T15, Z3: a call that takes long while there is no place for its task waits for one as a stored task: its handler does not run
/// meanwhile.
#[tokio::test(start_paused = true)]
async fn a_long_call_without_a_place_waits_for_a_worker() {
    let handlers = Handlers::default();
    let client = handlers.client();
    let first = client.start("asking", json!({})).await;
    let second = client.start("asking", json!({})).await;
    assert_eq!((handlers.running(), &client.get(&second).await["status"]), (1, &json!("working")));
    handlers.go_on.notify_one();
    assert_eq!(text(&client.ended(&first).await), "done");
    handlers.go_on.notify_one();
    assert_eq!(text(&client.ended(&second).await), "done");
}

/// T15: a step that runs when its call finds no place ends first, and is not repeated by the worker.
#[tokio::test(start_paused = true)]
async fn a_step_ends_before_its_call_waits_for_a_worker() {
    let handlers = Handlers::default();
    let client = handlers.client();
    let first = client.start("asking", json!({})).await;
    let second = client.start("step", json!({})).await;
    assert_eq!((handlers.running(), handlers.steps.load(Ordering::SeqCst)), (1, 1));
    client.cancel(&first).await;
    handlers.go_on.notify_one();
    assert_eq!(text(&client.ended(&second).await), "done");
    assert_eq!(handlers.steps.load(Ordering::SeqCst), 1);
}

/// T12, Z3: a handler that has no journal would begin anew: without a place for its task it goes on as a call.
#[tokio::test(start_paused = true)]
async fn a_long_call_without_a_place_or_a_journal_stays_a_call() {
    let handlers = Handlers::default();
    let client = handlers.client();
    client.start("asking", json!({})).await;
    let (other, call) = (client.clone(), json!({ "name": "plain" }));
    let call = tokio::spawn(async move { other.ask("tools/call", call).await });
    // With nothing else to do, the clock goes on by itself.
    tokio::time::sleep(10 * AFTER).await;
    assert!(!call.is_finished() && handlers.running() == 2, "it runs in the call");
    handlers.go_on.notify_waiters();
    let answer = call.await.expect("an answer");
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
}

/// Z3: the message of a call counts against the budget for as long as its task runs.
#[tokio::test(start_paused = true)]
async fn a_running_task_keeps_room_for_its_message() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Text {
        text: String,
    }
    async fn long(Args(Text { text }): Args<Text>, State(handlers): State<Handlers>) -> String {
        format!("{} {}", handlers.run().await, text.len())
    }
    for when in [When::Required, When::After(AFTER)] {
        let mut limits = Limits::default();
        // One caller has half of it.
        limits.call_bytes = 400_000;
        let handlers = Handlers::default();
        let server = Server::new("tasks", "1.0.0").tool(Tool::new("long", long).task(when));
        let tasks = Tasks::new(MemoryTasks::new());
        let client = TaskClient::of(server.limits(limits).state(handlers.clone()).tasks(tasks));
        let arguments = json!({ "text": "x".repeat(90_000) });
        let first = client.start("long", arguments.clone()).await;
        client.start("long", arguments.clone()).await;
        let call = json!({ "name": "long", "arguments": arguments });
        let (code, message) = client.error("tools/call", call.clone()).await;
        assert!(code == 503 && message.contains("busy"), "{when:?}: {code} {message}");
        client.cancel(&first).await;
        client.ended(&first).await;
        // The end is stored before the run gives its room back.
        let begun = async {
            while client.send("tools/call", call.clone()).await.get("error").is_some() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), begun).await.expect("room again");
    }
}
