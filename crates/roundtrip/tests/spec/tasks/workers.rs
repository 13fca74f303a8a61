//! Workers: leases, replacement, and instances that share a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::task::Millis;
use roundtrip::{
    Args, Ask, Form, MemoryTasks, Question, Reply, Round, Server, State, Tasks, Tool, ToolError, When,
};
use serde_json::json;
use tokio::sync::Notify;

use super::clocked::Clocked;
use super::{TaskClient, says, take_all, text};

#[derive(Form)]
struct Name {
    name: String,
}

const HOUR: Duration = Duration::from_secs(3600);

/// A store that several servers share.
fn shared() -> Arc<MemoryTasks> {
    Arc::new(MemoryTasks::new())
}

fn instance(store: &Arc<MemoryTasks>, at_once: usize, tool: Tool) -> Server {
    let tasks = Tasks::new(Arc::clone(store)).at_once(at_once).lease(Duration::from_millis(300));
    Server::new("tasks", "1.0.0").tool(tool).tasks(tasks)
}

fn hello() -> Tool {
    async fn hello(ask: Ask) -> Result<String, ToolError> {
        let Name { name } = ask.form("name", "Who?").await?;
        Ok(format!("Hello, {name}!"))
    }
    Tool::new("hello", hello).task(When::Required)
}

/// T15: a process that works on no tasks creates them, and a process that serves nobody works on them.
#[tokio::test]
async fn a_worker_may_be_another_process() {
    let store = shared();
    let front = TaskClient::of(instance(&store, 0, hello()));
    let id = front.start("hello", json!({})).await;
    assert_eq!(front.get(&id).await["status"], "working", "nobody works on it");
    let _worker = instance(&store, 1, hello()).build().expect("a worker");
    front.asks(&id).await;
    front.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&front.ended(&id).await), "Hello, Ada!");
}

/// T7, T15: a worker that dies is replaced once its lease is over: a step it has stored does not run again, one that it had begun
/// runs again under the same idempotency key.
#[tokio::test]
async fn a_worker_that_dies_is_replaced() {
    #[derive(Clone, Default)]
    struct Effects {
        first: Arc<AtomicUsize>,
        keys: Arc<std::sync::Mutex<Vec<String>>>,
        begun: Arc<Notify>,
    }
    async fn job(ask: Ask, State(effects): State<Effects>) -> Result<String, ToolError> {
        ask.remember("first", async || effects.first.fetch_add(1, Ordering::SeqCst)).await?;
        let ran = ask
            .once("second", async |step| {
                let runs = {
                    let mut keys = effects.keys.lock().expect("keys");
                    keys.push(step.idempotency_key().to_owned());
                    keys.len()
                };
                effects.begun.notify_one();
                if runs == 1 {
                    std::future::pending::<()>().await;
                }
                Ok::<_, ToolError>(runs)
            })
            .await?;
        Ok(format!("run {ran}"))
    }
    let tool = || Tool::new("job", job).task(When::Required);
    let (store, effects) = (shared(), Effects::default());
    let front = TaskClient::of(instance(&store, 0, tool()).state(effects.clone()));
    // A runtime of its own is the process that dies: with it end its worker and the renewal of its lease.
    let dies = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let guard = dies.enter();
    let first = instance(&store, 1, tool()).state(effects.clone()).build().expect("a worker");
    drop(guard);
    let id = front.start("job", json!({})).await;
    effects.begun.notified().await;
    dies.shutdown_background();
    let second = instance(&store, 1, tool()).state(effects.clone()).build().expect("another worker");
    assert_eq!(text(&front.ended(&id).await), "run 2");
    assert_eq!(effects.first.load(Ordering::SeqCst), 1, "its result was stored");
    let keys = effects.keys.lock().expect("keys").clone();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    drop((first, second));
}

/// T8: a cancellation reaches a handler that runs on another instance.
#[tokio::test]
async fn a_cancellation_reaches_another_instance() {
    let begun = Arc::new(Notify::new());
    let noted = Arc::clone(&begun);
    let held = move || {
        let noted = Arc::clone(&noted);
        let held = move || {
            let noted = Arc::clone(&noted);
            async move {
                noted.notify_one();
                std::future::pending::<String>().await
            }
        };
        Tool::new("held", held).task(When::Required)
    };
    let store = shared();
    let front = TaskClient::of(instance(&store, 0, held()));
    let _worker = instance(&store, 1, held()).build().expect("a worker");
    let id = front.start("held", json!({})).await;
    begun.notified().await;
    front.cancel(&id).await;
    assert_eq!(front.ended(&id).await["status"], "cancelled");
}

/// A step that is running when its task is cancelled ends first, and is stored.
#[tokio::test]
async fn a_step_ends_before_its_task_is_cancelled() {
    let (begun, go_on, done) =
        (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let noted = (Arc::clone(&begun), Arc::clone(&go_on), Arc::clone(&done));
    let pays = move |ask: Ask| {
        let (begun, go_on, done) = noted.clone();
        async move {
            ask.remember("pay", async || {
                begun.notify_one();
                go_on.notified().await;
                done.fetch_add(1, Ordering::SeqCst)
            })
            .await?;
            std::future::pending::<()>().await;
            Ok::<_, ToolError>("paid")
        }
    };
    let client = TaskClient::of(super::server([Tool::new("pays", pays).task(When::Required)]));
    let id = client.start("pays", json!({})).await;
    begun.notified().await;
    client.cancel(&id).await;
    assert_eq!(client.get(&id).await["status"], "working", "the step is running");
    go_on.notify_one();
    assert_eq!(client.ended(&id).await["status"], "cancelled");
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A tool whose only step ends when it is told to, and signals of its begin, its end and the handler's.
fn pays() -> (Tool, [Arc<Notify>; 3]) {
    let signals = std::array::from_fn(|_| Arc::new(Notify::new()));
    let noted: [Arc<Notify>; 3] = signals.clone();
    let pays = move |ask: Ask| {
        let [begun, go_on, dropped] = noted.clone();
        async move {
            let _dropped = Dropped(dropped);
            ask.remember("pay", async || {
                begun.notify_one();
                go_on.notified().await;
            })
            .await?;
            std::future::pending::<()>().await;
            Ok::<_, ToolError>("paid")
        }
    };
    (Tool::new("pays", pays).task(When::Required), signals)
}

/// T15: the lease of a cancelled task is renewed while its step ends, so that no other worker takes it in mid-step.
#[tokio::test]
async fn a_cancelled_task_keeps_its_lease_for_its_step() {
    let (store, (tool, [begun, go_on, _])) = (Clocked::default(), pays());
    let tasks = Tasks::new(store.store()).lease(Duration::from_millis(300));
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).tasks(tasks));
    let id = client.start("pays", json!({})).await;
    begun.notified().await;
    client.cancel(&id).await;
    // One renewal may have begun before the worker heard of it.
    let before = store.renewals();
    let renewed = async {
        while store.renewals() < before + 6 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), renewed).await.expect("renewals");
    assert!(store.stored(&id).await.is_held, "its lease would have expired twice");
    assert_eq!(client.get(&id).await["status"], "working", "the step is running");
    go_on.notify_one();
    assert_eq!(client.ended(&id).await["status"], "cancelled");
}

/// T15: a cancelled task that another worker has taken is the other's: the handler is dropped in its step, and nothing is written.
#[tokio::test]
async fn a_late_owner_cannot_cancel() {
    let (store, (tool, [begun, _, dropped])) = (shared(), pays());
    let client = TaskClient::of(instance(&store, 1, tool));
    let id = client.start("pays", json!({})).await;
    begun.notified().await;
    client.cancel(&id).await;
    assert_eq!(take_all(&*store, Millis(u64::MAX / 2), HOUR).await.len(), 1);
    dropped.notified().await;
    assert_eq!(client.get(&id).await["status"], "working", "it is the other's now");
}

/// T15: a worker that lost its lease writes nothing any more, and its handler is dropped.
#[tokio::test]
async fn a_late_owner_cannot_write() {
    let store = shared();
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let noted = (Arc::clone(&begun), Arc::clone(&dropped));
    let held = move || {
        let (begun, dropped) = noted.clone();
        async move {
            let _dropped = Dropped(dropped);
            begun.notify_one();
            std::future::pending::<String>().await
        }
    };
    let client = TaskClient::of(instance(&store, 1, Tool::new("held", held).task(When::Required)));
    let id = client.start("held", json!({})).await;
    begun.notified().await;
    // Another worker takes it, as if the lease had run out.
    assert_eq!(take_all(&*store, Millis(u64::MAX / 2), HOUR).await.len(), 1);
    dropped.notified().await;
    assert_eq!(client.get(&id).await["status"], "working", "it is the other's now");
}

/// T18: a worker that is asked to stop gives its task back at its next step, at once and not when its lease is over.
#[tokio::test]
async fn a_worker_that_drains_gives_its_task_back() {
    #[derive(Clone, Default)]
    struct Signals {
        first: Arc<Notify>,
        go_on: Arc<Notify>,
        steps: Arc<AtomicUsize>,
    }
    async fn job(ask: Ask, State(signals): State<Signals>) -> Result<String, ToolError> {
        ask.remember("first", async || signals.steps.fetch_add(1, Ordering::SeqCst)).await?;
        signals.first.notify_one();
        signals.go_on.notified().await;
        let steps = ask.remember("second", async || signals.steps.fetch_add(1, Ordering::SeqCst)).await?;
        Ok(format!("after {steps} step"))
    }
    let (store, signals) = (shared(), Signals::default());
    let server = || {
        let tasks = Tasks::new(Arc::clone(&store)).lease(Duration::from_secs(600));
        let tool = Tool::new("job", job).task(When::Required);
        Server::new("tasks", "1.0.0").tool(tool).state(signals.clone()).tasks(tasks)
    };
    let drains = TaskClient::of(server());
    let id = drains.start("job", json!({})).await;
    signals.first.notified().await;
    drains.endpoint.drain();
    let other = TaskClient::of(server());
    signals.go_on.notify_one();
    // The other begins anew, and finds the first step done.
    signals.first.notified().await;
    signals.go_on.notify_one();
    assert_eq!(text(&other.ended(&id).await), "after 1 step");
}

/// The task, once it says what it waits for.
async fn left(client: &TaskClient, id: &str) -> String {
    let is_left = |task: &serde_json::Value| {
        task["statusMessage"]
            .as_str()
            .is_some_and(|text| text.contains("waiting for a worker that can run this task"))
    };
    let task = client.until(id, is_left).await;
    assert_eq!(task["status"], "working", "{task}");
    task["statusMessage"].as_str().expect("a description").to_owned()
}

/// T16: a process whose handler does not fit a task's journal leaves the task to others, which finish it; it does not fail.
#[tokio::test]
async fn a_handler_that_changed_leaves_its_task_to_others() {
    async fn now_a_step(ask: Ask) -> Result<String, ToolError> {
        let sure = ask.confirm("sure", "Sure?").await?;
        let name = ask.remember("name", async || "Ada".to_owned()).await?;
        Ok(format!("{name} {sure}"))
    }
    async fn was_a_question(ask: Ask) -> Result<String, ToolError> {
        let Name { name } = ask.form("name", "Who?").await?;
        let sure = ask.confirm("sure", "Sure?").await?;
        Ok(format!("{name} {sure}"))
    }
    let store = shared();
    let before = || instance(&store, 1, Tool::new("job", was_a_question).task(When::Required));
    let first = TaskClient::of(before());
    let id = first.start("job", json!({})).await;
    first.asks(&id).await;
    first.update(&id, json!({ "name": says("Bob") })).await;
    first.until(&id, |task| task["inputRequests"].get("sure").is_some()).await;
    drop(first);
    let after = TaskClient::of(instance(&store, 1, Tool::new("job", now_a_step).task(When::Required)));
    after.update(&id, json!({ "sure": { "action": "accept", "content": { "confirm": true } } })).await;
    assert!(left(&after, &id).await.contains("`name`"));
    let back = TaskClient::of(before());
    assert_eq!(text(&back.ended(&id).await), "Bob true");
}

/// T16: a step of another type leaves the task to others, and what was stored stands.
#[tokio::test]
async fn a_step_of_another_type_leaves_its_task_to_others() {
    async fn number(ask: Ask) -> Result<String, ToolError> {
        let n: u32 = ask.remember("n", async || 7).await?;
        let Name { name } = ask.form("name", "Who?").await?;
        Ok(format!("{name} {n}"))
    }
    async fn words(ask: Ask) -> Result<String, ToolError> {
        let n: String = ask.remember("n", async || "seven".to_owned()).await?;
        let Name { name } = ask.form("name", "Who?").await?;
        Ok(format!("{name} {n}"))
    }
    let store = shared();
    let before = || instance(&store, 1, Tool::new("job", number).task(When::Required));
    let first = TaskClient::of(before());
    let id = first.start("job", json!({})).await;
    first.asks(&id).await;
    drop(first);
    let after = TaskClient::of(instance(&store, 1, Tool::new("job", words).task(When::Required)));
    after.update(&id, json!({ "name": says("Ada") })).await;
    assert!(left(&after, &id).await.contains("remembered result of `n`"));
    let back = TaskClient::of(before());
    assert_eq!(text(&back.ended(&id).await), "Ada 7");
}

/// T16: arguments that a later deployment does not take leave the task to others.
#[tokio::test]
async fn other_arguments_leave_the_task_to_others() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Named {
        name: String,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Numbered {
        number: u32,
    }
    let store = shared();
    let before = || {
        let job = async |Args(Named { name }): Args<Named>| format!("Hello, {name}!");
        Tool::new("job", job).task(When::Required)
    };
    let front = TaskClient::of(instance(&store, 0, before()));
    let id = front.start("job", json!({ "name": "Ada" })).await;
    let after = async |Args(Numbered { number }): Args<Numbered>| number.to_string();
    let after = TaskClient::of(instance(&store, 1, Tool::new("job", after).task(When::Required)));
    assert!(left(&after, &id).await.contains("invalid arguments"));
    let _back = instance(&store, 1, before()).build().expect("a worker");
    assert_eq!(text(&front.ended(&id).await), "Hello, Ada!");
}

/// T16: a process that has no such tool leaves its tasks alone, and says what they wait for to those who ask.
#[tokio::test]
async fn a_tool_that_is_gone_leaves_its_tasks_to_others() {
    let store = shared();
    let front = TaskClient::of(instance(&store, 0, hello()));
    let id = front.start("hello", json!({})).await;
    let other =
        TaskClient::of(instance(&store, 1, Tool::new("other", async || "other").task(When::Required)));
    assert!(left(&other, &id).await.contains("the tool `hello`"));
    // The other has looked for tasks: it runs its own.
    other.ended(&other.start("other", json!({})).await).await;
    assert_eq!(front.get(&id).await["status"], "working");
    let _worker = instance(&store, 1, hello()).build().expect("a worker");
    front.asks(&id).await;
    front.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&front.ended(&id).await), "Hello, Ada!");
}

/// T16: new code that must not run old tasks has another version; a tool that names the old one runs them too.
#[tokio::test]
async fn versions_say_who_runs_a_task() {
    let store = shared();
    let tool = |text: &'static str| Tool::new("job", move || async move { text }).task(When::Required);
    let front = TaskClient::of(instance(&store, 0, tool("1")));
    let id = front.start("job", json!({})).await;
    let second = TaskClient::of(instance(&store, 1, tool("2").version("2")));
    assert!(left(&second, &id).await.contains("in the version that began it"));
    assert_eq!(text(&second.ended(&second.start("job", json!({})).await).await), "2");
    assert_eq!(front.get(&id).await["status"], "working");
    let _third =
        instance(&store, 1, tool("3").version("3").runs_versions(["", "2"])).build().expect("a worker");
    assert_eq!(text(&front.ended(&id).await), "3");
}

/// Z1: a parameter that panics when a worker takes a task up fails that task, and no other.
#[tokio::test]
async fn a_parameter_that_panics_fails_its_task_alone() {
    struct Fragile;
    impl roundtrip::server::FromCall for Fragile {
        fn from_call(call: &mut roundtrip::server::Call<'_>) -> Result<Self, roundtrip::server::Rejection> {
            // Only in a worker is the call without an address.
            assert!(call.peer().address.is_some(), "a bug");
            Ok(Self)
        }
    }
    let tools = |server: Server| {
        let fragile = Tool::new("fragile", async |_: Fragile| "whole").task(When::Required);
        server.tool(fragile)
    };
    let store = shared();
    let front = TaskClient::of(tools(instance(&store, 0, hello()))).from("127.0.0.1");
    let broken = front.start("fragile", json!({})).await;
    let whole = front.start("hello", json!({})).await;
    let _worker = tools(instance(&store, 1, hello())).build().expect("a worker");
    let task = front.ended(&broken).await;
    assert_eq!((&task["status"], &task["error"]["code"]), (&json!("failed"), &json!(-32603)), "{task}");
    front.asks(&whole).await;
}

/// Z3: answers that wait for a worker are bounded in bytes, and so is the work of many of them.
#[tokio::test]
async fn answers_to_a_task_are_bounded() {
    async fn many(round: Round) -> Result<Reply, ToolError> {
        let mut open = Vec::new();
        for question in (0..2_000).map(|n| Question::confirm(format!("q{n}"), "Yes?")) {
            if round.confirmed(&question.key)?.is_none() {
                open.push(question);
            }
        }
        Ok(if open.is_empty() { Reply::text("2000 answers") } else { round.ask(open) })
    }
    let client = TaskClient::of(super::server([Tool::new("many", many).task(When::Required)]));
    let id = client.start("many", json!({})).await;
    client.asks(&id).await;
    let large = json!({ "q0": { "action": "accept", "content": { "confirm": "x".repeat(5 << 20) } } });
    let (code, message) =
        client.error("tasks/update", json!({ "taskId": id, "inputResponses": large })).await;
    assert!(code == -32602 && message.contains("a task may remember"), "{code} {message}");
    // Twice answers that do not fit, then those that do, among as many that were not asked for.
    for content in [json!({}), json!({}), json!({ "confirm": true })] {
        let seen = client.asks(&id).await;
        let mut answers: serde_json::Map<_, _> = (0..50_000).map(|n| (format!("x{n}"), json!({}))).collect();
        for key in super::keys(&seen) {
            answers.insert(key.to_owned(), json!({ "action": "accept", "content": content }));
        }
        client.update(&id, answers.into()).await;
        let before: Vec<String> = super::keys(&seen).into_iter().map(str::to_owned).collect();
        client
            .until(&id, |task| {
                let asks = task["inputRequests"].as_object();
                task["status"] == "completed" || asks.is_some_and(|asks| !asks.contains_key(&before[0]))
            })
            .await;
    }
    assert_eq!(text(&client.ended(&id).await), "2000 answers");
}
