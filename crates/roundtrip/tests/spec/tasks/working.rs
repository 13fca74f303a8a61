//! Tasks that work while they ask: questions are shown beside running steps, and answers reach the living handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use roundtrip::task::{Millis, TaskAnswer, TaskChange, TaskStore as _};
use roundtrip::{Ask, Form, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::json;
use tokio::sync::Notify;

use super::layer::{Layer, Layered};
use super::{Dropped, TaskClient, keys, says, server, text};

#[derive(Form)]
struct Name {
    #[form(max_length = 8)]
    name: String,
}

/// A machine that boots while its user picks a name.
#[derive(Clone, Default)]
pub(crate) struct Machine {
    boots: Arc<AtomicU32>,
    runs: Arc<AtomicU32>,
    pub(crate) booting: Arc<Notify>,
    pub(crate) booted: Arc<Notify>,
    pub(crate) named: Arc<Notify>,
    pub(crate) dropped: Arc<Notify>,
}

impl Machine {
    pub(crate) fn tool(&self) -> Tool {
        let machine = self.clone();
        Tool::new("boot", move |ask: Ask| machine.clone().boot(ask)).task(When::Required)
    }

    async fn boot(self, ask: Ask) -> Result<String, ToolError> {
        let _dropped = Dropped(Arc::clone(&self.dropped));
        self.runs.fetch_add(1, Ordering::SeqCst);
        let address = ask.once("boot", |_| async {
            self.boots.fetch_add(1, Ordering::SeqCst);
            self.booting.notify_one();
            self.booted.notified().await;
            Ok::<_, ToolError>("10.0.0.7".to_owned())
        });
        let name = async {
            let name: Name = ask.form("name", "Which name?").await?;
            self.named.notify_one();
            Ok::<_, ToolError>(name.name)
        };
        let (address, name) = tokio::try_join!(address, name)?;
        Ok(format!("{name} is at {address}"))
    }

    fn count(&self) -> (u32, u32) {
        (self.runs.load(Ordering::SeqCst), self.boots.load(Ordering::SeqCst))
    }
}

/// T4: a question beside a running step is shown at once, its answer reaches the living handler, and the task is `working` again
/// before the step has ended.
#[tokio::test]
async fn a_task_works_while_it_asks() {
    let machine = Machine::default();
    let client = TaskClient::of(server([machine.tool()]));
    let id = client.start("boot", json!({})).await;
    let asked = client.asks(&id).await;
    assert_eq!(keys(&asked), ["name"]);
    machine.booting.notified().await;
    client.update(&id, json!({ "name": says("web") })).await;
    machine.named.notified().await;
    let task = client.get(&id).await;
    assert!(task["status"] == "working" && task.get("inputRequests").is_none(), "{task}");
    machine.booted.notify_one();
    assert_eq!(text(&client.ended(&id).await), "web is at 10.0.0.7");
    assert_eq!(machine.count(), (1, 1), "the handler was never dropped");
}

/// T4: any instance stores an answer, and the instance that works hears of it.
#[tokio::test]
async fn another_instance_takes_the_answer() {
    let (machine, store) = (Machine::default(), Arc::new(MemoryTasks::new()));
    let instance = |tasks: Tasks| Server::new("tasks", "1.0.0").tool(machine.tool()).tasks(tasks);
    let worker = TaskClient::of(instance(Tasks::new(Arc::clone(&store))));
    let other = TaskClient::of(instance(Tasks::new(Arc::clone(&store)).at_once(0)));
    let id = worker.start("boot", json!({})).await;
    assert_eq!(keys(&other.asks(&id).await), ["name"]);
    other.update(&id, json!({ "name": says("web") })).await;
    machine.named.notified().await;
    machine.booted.notify_one();
    assert_eq!(text(&other.ended(&id).await), "web is at 10.0.0.7");
    assert_eq!(machine.count(), (1, 1));
}

/// T4: if the step ends first, the handler is parked, and the question keeps its key.
#[tokio::test]
async fn a_shown_question_keeps_its_key_when_its_task_parks() {
    let machine = Machine::default();
    let client = TaskClient::of(server([machine.tool()]));
    let id = client.start("boot", json!({})).await;
    let shown = client.asks(&id).await;
    machine.booted.notify_one();
    machine.dropped.notified().await;
    assert_eq!(client.get(&id).await["inputRequests"], shown["inputRequests"]);
    client.update(&id, json!({ "name": says("web") })).await;
    assert_eq!(text(&client.ended(&id).await), "web is at 10.0.0.7");
    assert_eq!(machine.count(), (2, 1), "the step is not repeated");
}

/// T4: an answer that does not fit is asked again beside the step, under a new key and with what was wrong.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_again_beside_the_step() {
    let machine = Machine::default();
    let client = TaskClient::of(server([machine.tool()]));
    let id = client.start("boot", json!({})).await;
    client.asks(&id).await;
    client.update(&id, json!({ "name": says("much too long") })).await;
    let again = client.until(&id, |task| task["inputRequests"].get("name~2").is_some()).await;
    let message = again["inputRequests"]["name~2"]["params"]["message"].as_str().expect("a message");
    assert!(message.starts_with("Which name?") && message != "Which name?", "{message}");
    client.update(&id, json!({ "name": says("late"), "name~2": says("web") })).await;
    machine.named.notified().await;
    machine.booted.notify_one();
    assert_eq!(text(&client.ended(&id).await), "web is at 10.0.0.7");
    assert_eq!(machine.count(), (1, 1));
}

/// T4: a question whose future is dropped leaves the task, its key is spent, and a late answer is acknowledged and ignored.
#[tokio::test]
async fn a_dropped_question_leaves_the_task() {
    let (late, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (own_late, own_go) = (Arc::clone(&late), Arc::clone(&go));
    let picks = Tool::new("pick", move |ask: Ask| {
        let (late, go) = (Arc::clone(&own_late), Arc::clone(&own_go));
        async move {
            let work = ask.once("work", |_| async {
                go.notified().await;
                Ok::<_, ToolError>(())
            });
            let asks = async {
                tokio::select! {
                    name = ask.form::<Name>("name", "Which name?") => return Ok::<_, ToolError>(name?.name),
                    () = late.notified() => {}
                }
                Ok(ask.form::<Name>("name", "Which name, then?").await?.name)
            };
            let ((), name) = tokio::try_join!(work, asks)?;
            Ok::<_, ToolError>(name)
        }
    });
    let client = TaskClient::of(server([picks.task(When::Required)]));
    let id = client.start("pick", json!({})).await;
    assert_eq!(keys(&client.asks(&id).await), ["name"]);
    late.notify_one();
    let again = client.until(&id, |task| task["inputRequests"].get("name~2").is_some()).await;
    assert_eq!(keys(&again), ["name~2"]);
    client.update(&id, json!({ "name": says("late") })).await;
    client.update(&id, json!({ "name~2": says("web") })).await;
    go.notify_one();
    assert_eq!(text(&client.ended(&id).await), "web");
}

/// T4: a step may wait for an answer through a channel: in a task the question is not held back until the step has ended.
#[tokio::test(start_paused = true)]
async fn a_step_may_wait_for_an_answer_in_a_task() {
    async fn handler(ask: Ask) -> Result<String, ToolError> {
        let (send, receive) = tokio::sync::oneshot::channel();
        let work = ask.once("work", |_| async {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            receive.await.map_err(|_| ToolError::new("nobody answers"))
        });
        let asks = async {
            let name: Name = ask.form("name", "Which name?").await?;
            let _ = send.send(name.name);
            Ok::<_, ToolError>(())
        };
        let (name, ()) = tokio::try_join!(work, asks)?;
        Ok(name)
    }
    let client = TaskClient::of(server([Tool::new("wait", handler).task(When::Required)]));
    let id = client.start("wait", json!({})).await;
    client.asks(&id).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    client.update(&id, json!({ "name": says("web") })).await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(text(&client.ended(&id).await), "web");
}

/// T3, T8: a task is cancelled while it asks and works: its step ends, its question is gone.
#[tokio::test]
async fn a_task_that_asks_and_works_can_be_cancelled() {
    let machine = Machine::default();
    let client = TaskClient::of(server([machine.tool()]));
    let id = client.start("boot", json!({})).await;
    client.asks(&id).await;
    client.cancel(&id).await;
    client.update(&id, json!({ "name": says("late") })).await;
    machine.booted.notify_one();
    let task = client.ended(&id).await;
    assert!(task["status"] == "cancelled" && task.get("inputRequests").is_none(), "{task}");
    assert_eq!(machine.count(), (1, 1));
}

/// M21: in a task the cap counts the times that questions are shown, also beside a step that never ends.
#[tokio::test]
async fn a_task_that_asks_without_end_beside_a_step_is_ended() {
    async fn handler(ask: Ask) -> Result<String, ToolError> {
        let works = ask.once("work", |_| std::future::pending::<Result<(), ToolError>>());
        let asks = async {
            for number in 0.. {
                ask.form::<Name>(format!("name {number}"), "Which name?").await?;
            }
            Ok::<_, ToolError>(())
        };
        tokio::try_join!(works, asks)?;
        Ok(String::new())
    }
    let server = server([Tool::new("ask", handler).task(When::Required)]).max_rounds(3);
    let client = TaskClient::of(server);
    let id = client.start("ask", json!({})).await;
    for number in 0..3 {
        let key = format!("name {number}");
        client.until(&id, |task| task["inputRequests"].get(&key).is_some()).await;
        client.update(&id, json!({ key: says("web") })).await;
    }
    let task = client.ended(&id).await;
    assert_eq!(task["result"]["isError"], true, "{task}");
    assert_eq!(text(&task), "this call has asked 3 times without coming to an end");
}

/// Tasks in memory whose next write waits until the test lets it go on.
struct Gated {
    inner: Arc<MemoryTasks>,
    is_closed: AtomicBool,
    reached: Notify,
    go: Notify,
}

impl Layer for Gated {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        Box::pin(async move {
            if self.is_closed.swap(false, Ordering::SeqCst) {
                self.reached.notify_one();
                self.go.notified().await;
            }
            self.inner.write(change, now).await
        })
    }
}

/// A worker behind a gate, and a client of another instance.
fn gated(tool: impl Fn() -> Tool) -> (Arc<Gated>, TaskClient, TaskClient) {
    let inner = Arc::new(MemoryTasks::new());
    let gate = Arc::new(Gated {
        inner: Arc::clone(&inner),
        is_closed: AtomicBool::new(false),
        reached: Notify::new(),
        go: Notify::new(),
    });
    let instance = |tasks: Tasks| TaskClient::of(Server::new("tasks", "1.0.0").tool(tool()).tasks(tasks));
    let worker = instance(Tasks::new(Layered(Arc::clone(&gate))));
    (gate, worker, instance(Tasks::new(inner).at_once(0)))
}

/// T4: an answer that is stored while the worker stores another one reaches the handler, too, though no other news of it comes.
#[tokio::test]
async fn an_answer_that_meets_a_write_reaches_the_handler() {
    let heard = Arc::new(Notify::new());
    let tool = || {
        let heard = Arc::clone(&heard);
        Tool::new("ask", move |ask: Ask| {
            let heard = Arc::clone(&heard);
            async move {
                let work = ask.once("work", |_| std::future::pending::<Result<(), ToolError>>());
                let one = ask.form::<Name>("one", "One?");
                let two = ask.form::<Name>("two", "Two?");
                let both = async {
                    tokio::try_join!(one, two)?;
                    heard.notify_one();
                    Ok::<_, ToolError>(())
                };
                tokio::try_join!(work, both)?;
                Ok::<_, ToolError>("done")
            }
        })
        .task(When::Required)
    };
    let (gate, worker, other) = gated(tool);
    let id = worker.start("ask", json!({})).await;
    other.asks(&id).await;
    gate.is_closed.store(true, Ordering::SeqCst);
    other.update(&id, json!({ "one": says("web") })).await;
    gate.reached.notified().await;
    other.update(&id, json!({ "two": says("web") })).await;
    gate.go.notify_one();
    tokio::time::timeout(Duration::from_secs(10), heard.notified()).await.expect("both answers");
}

/// T4: an answer that is being stored when its question is dropped does not count for another question under the same key.
#[tokio::test]
async fn an_answer_does_not_count_for_another_question_under_its_key() {
    let (late, asked) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool = || {
        let (late, asked) = (Arc::clone(&late), Arc::clone(&asked));
        Tool::new("pick", move |ask: Ask| {
            let (late, asked) = (Arc::clone(&late), Arc::clone(&asked));
            async move {
                let work = ask.once("work", |_| std::future::pending::<Result<(), ToolError>>());
                let asks = async {
                    tokio::select! {
                        name = ask.form::<Name>("name", "First?") => return Err(ToolError::new(name?.name)),
                        () = late.notified() => asked.notify_one(),
                    }
                    Err::<(), _>(ToolError::new(ask.form::<Name>("name", "Second?").await?.name))
                };
                tokio::try_join!(work, asks)?;
                Ok::<_, ToolError>("done")
            }
        })
        .task(When::Required)
    };
    let (gate, worker, other) = gated(tool);
    let id = worker.start("pick", json!({})).await;
    other.asks(&id).await;
    gate.is_closed.store(true, Ordering::SeqCst);
    other.update(&id, json!({ "name": says("first") })).await;
    gate.reached.notified().await;
    late.notify_one();
    asked.notified().await;
    gate.go.notify_one();
    let again = other.until(&id, |task| task["inputRequests"].get("name~2").is_some()).await;
    assert_eq!(again["inputRequests"]["name~2"]["params"]["message"], "Second?");
    other.update(&id, json!({ "name~2": says("second") })).await;
    assert_eq!(text(&other.ended(&id).await), "second");
}
