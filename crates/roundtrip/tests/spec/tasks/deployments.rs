//! Deployments: several versions of a tool on one store, and tasks that some processes cannot run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::task::TaskStore as _;
use roundtrip::{
    Ask, Extension, Form, MemoryTasks, Question, Reply, Round, Server, Tasks, Tool, ToolError, When,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{TaskClient, key, says, text};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Form)]
struct Name {
    name: String,
}

fn shared() -> Arc<MemoryTasks> {
    Arc::new(MemoryTasks::new())
}

/// An instance whose leases do not expire while a test runs: what it leaves is due only if it says so.
fn instance(store: &Arc<MemoryTasks>, tool: Tool) -> Server {
    let tasks = Tasks::new(Arc::clone(store)).at_once(1).lease(HOUR);
    Server::new("tasks", "1.0.0").tool(tool.task(When::Required)).tasks(tasks)
}

fn is_left(task: &Value) -> bool {
    task["statusMessage"].as_str().is_some_and(|text| text.contains("waiting for a worker that can run"))
}

async fn number(ask: Ask) -> Result<String, ToolError> {
    let n: u32 = ask.remember("n", async || 7).await?;
    let Name { name } = ask.form("name", "Who?").await?;
    Ok(format!("{name} {n}"))
}

/// The same with another type; counts its runs.
fn words(runs: &Arc<AtomicUsize>) -> Tool {
    let runs = Arc::clone(runs);
    let words = move |ask: Ask| {
        let runs = Arc::clone(&runs);
        async move {
            runs.fetch_add(1, Ordering::SeqCst);
            let n: String = ask.remember("n", async || "seven".to_owned()).await?;
            let Name { name } = ask.form("name", "Who?").await?;
            Ok::<_, ToolError>(format!("{name} {n}"))
        }
    };
    Tool::new("job", words)
}

/// A task of [`number`] that asks, on a store that no process works on.
async fn asking(store: &Arc<MemoryTasks>) -> String {
    let first = TaskClient::of(instance(store, Tool::new("job", number)));
    let id = first.start("job", json!({})).await;
    first.asks(&id).await;
    id
}

/// T4, T16: an answer that was acknowledged is there for the process that can use it, however many could not.
#[tokio::test]
async fn an_answer_outlives_processes_that_cannot_use_it() {
    let (store, runs) = (shared(), Arc::new(AtomicUsize::new(0)));
    let id = asking(&store).await;
    let second = TaskClient::of(instance(&store, words(&runs)));
    second.update(&id, json!({ "name": says("Ada") })).await;
    second.until(&id, is_left).await;
    // Another process of the same version finds it left already.
    let _third = instance(&store, words(&runs)).build().expect("a worker");
    while runs.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let back = TaskClient::of(instance(&store, Tool::new("job", number)));
    let task = back.until(&id, |task| task["status"] != "working").await;
    assert_eq!(text(&task), "Ada 7", "nothing is asked again");
}

/// T16: a task whose handler finds out in mid-run that it cannot go on is tried again after 30 s, then after twice the time; the
/// description does not quote what is stored.
#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_fit_is_tried_less_and_less_often() {
    let (store, runs) = (shared(), Arc::new(AtomicUsize::new(0)));
    let id = asking(&store).await;
    let second = TaskClient::of(instance(&store, words(&runs)));
    second.update(&id, json!({ "name": says("Ada") })).await;
    let task = second.until(&id, is_left).await;
    assert!(!task["statusMessage"].to_string().contains('7'), "{task}");
    for (seconds, expected) in [(25, 1), (10, 2), (50, 2), (20, 3), (100, 3), (40, 4)] {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert_eq!(runs.load(Ordering::SeqCst), expected, "{seconds} s later");
    }
}

/// T16, T17: a step whose key is a question now stays stored, and the version that began the task finishes it.
#[tokio::test]
async fn a_question_does_not_replace_a_stored_step() {
    async fn now_a_question(ask: Ask) -> Result<String, ToolError> {
        let Name { name: n } = ask.form("n", "Which?").await?;
        let Name { name } = ask.form("name", "Who?").await?;
        Ok(format!("{name} {n}"))
    }
    async fn by_hand(round: Round) -> Result<Reply, ToolError> {
        Ok(round.ask([Question::confirm("n", "Sure?")]))
    }
    for tool in [Tool::new("job", now_a_question), Tool::new("job", by_hand)] {
        let store = shared();
        let id = asking(&store).await;
        let second = TaskClient::of(instance(&store, tool));
        second.update(&id, json!({ "name": says("Ada") })).await;
        let task = second.until(&id, is_left).await;
        assert!(
            task["statusMessage"].as_str().is_some_and(|text| text.contains("`n` is a question")),
            "{task}"
        );
        drop(second);
        let back = TaskClient::of(instance(&store, Tool::new("job", number)));
        assert_eq!(text(&back.ended(&id).await), "Ada 7");
    }
}

/// T16: state of another type leaves the task to others.
#[tokio::test]
async fn state_of_another_type_leaves_the_task_to_others() {
    async fn before(round: Round) -> Result<Reply, ToolError> {
        if let Some(Name { name }) = round.answer::<Name>("name")? {
            let state: Option<u32> = round.state()?;
            return Ok(Reply::text(format!("{name} {state:?}")));
        }
        round.set_state(&7)?;
        Ok(round.ask([Question::form::<Name>("name", "Who?")]))
    }
    async fn after(round: Round) -> Result<Reply, ToolError> {
        let state: Option<Vec<String>> = round.state()?;
        Ok(Reply::text(format!("{state:?}")))
    }
    let store = shared();
    let first = TaskClient::of(instance(&store, Tool::new("job", before)));
    let id = first.start("job", json!({})).await;
    first.asks(&id).await;
    drop(first);
    let second = TaskClient::of(instance(&store, Tool::new("job", after)));
    second.update(&id, json!({ "name": says("Ada") })).await;
    second.until(&id, is_left).await;
    let back = TaskClient::of(instance(&store, Tool::new("job", before)));
    assert_eq!(text(&back.ended(&id).await), "Ada Some(7)");
}

/// T16: an extension that only new code takes leaves older tasks to older processes.
#[tokio::test]
async fn a_new_extension_leaves_older_tasks_to_others() {
    #[derive(Clone, Serialize, Deserialize)]
    struct Tenant(String);
    let before = || Tool::new("job", async || "done without");
    let after = async |Extension(Tenant(name)): Extension<Tenant>| format!("done for {name}");
    let store = shared();
    let front = Tasks::new(Arc::clone(&store)).at_once(0);
    let front =
        TaskClient::of(Server::new("tasks", "1.0.0").tool(before().task(When::Required)).tasks(front));
    let id = front.start("job", json!({})).await;
    let tasks = Tasks::new(Arc::clone(&store)).lease(HOUR).keep_extension::<Tenant>("tenant");
    let after = Tool::new("job", after).task(When::Required);
    let second = TaskClient::of(Server::new("tasks", "1.0.0").tool(after).tasks(tasks));
    let task = second.until(&id, is_left).await;
    assert!(task["statusMessage"].as_str().is_some_and(|text| text.contains("`tenant`")), "{task}");
    let _back = instance(&store, before()).build().expect("a worker");
    assert_eq!(text(&front.ended(&id).await), "done without");
}

/// T17: a handler that takes steps now keeps them, though its task began without a journal.
#[tokio::test]
async fn a_task_that_began_without_a_journal_keeps_its_steps() {
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let after = move |ask: Ask| {
        let counted = Arc::clone(&counted);
        async move {
            ask.remember("pay", async || counted.fetch_add(1, Ordering::SeqCst)).await?;
            let Name { name } = ask.form("name", "Who?").await?;
            Ok::<_, ToolError>(name)
        }
    };
    let store = shared();
    let front = Tasks::new(Arc::clone(&store)).at_once(0);
    let before = Tool::new("job", async || "done").task(When::Required);
    let front = TaskClient::of(Server::new("tasks", "1.0.0").tool(before).tasks(front));
    let id = front.start("job", json!({})).await;
    let worker = TaskClient::of(instance(&store, Tool::new("job", after)));
    worker.asks(&id).await;
    worker.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&worker.ended(&id).await), "Ada");
    assert_eq!(steps.load(Ordering::SeqCst), 1);
}

/// T8, T16: a task that is cancelled while nobody can run it ends.
#[tokio::test]
async fn a_task_that_nobody_can_run_is_cancelled() {
    let (store, runs) = (shared(), Arc::new(AtomicUsize::new(0)));
    let id = asking(&store).await;
    let second = TaskClient::of(instance(&store, words(&runs)));
    second.update(&id, json!({ "name": says("Ada") })).await;
    second.until(&id, is_left).await;
    second.cancel(&id).await;
    assert_eq!(second.ended(&id).await["status"], "cancelled");
}

/// T16, Z3: tasks that rest keep no slot from others, of the same caller or of another, however few slots there are.
#[tokio::test]
async fn tasks_that_cannot_be_run_keep_no_slot_from_others() {
    let (store, runs) = (shared(), Arc::new(AtomicUsize::new(0)));
    let mut stuck = Vec::new();
    for caller in ["ada", "bob", "cyd", "dan"] {
        let first = TaskClient::of(instance(&store, Tool::new("job", number))).by(caller);
        let id = first.start("job", json!({})).await;
        first.asks(&id).await;
        stuck.push((caller, id));
    }
    let quick = || Tool::new("quick", async || "done").task(When::Required);
    let worker = TaskClient::of(instance(&store, words(&runs)).tool(quick()));
    for (caller, id) in &stuck {
        let client = worker.clone().by(caller);
        client.update(id, json!({ "name": says("Ada") })).await;
        client.until(id, is_left).await;
    }
    // The worker has to find these: it has one slot, and all accounts have a task that rests.
    let front = Tasks::new(Arc::clone(&store)).at_once(0);
    let front = TaskClient::of(Server::new("tasks", "1.0.0").tool(quick()).tasks(front));
    for caller in ["ada", "eve", "dan", "bob"] {
        let client = front.clone().by(caller);
        let id = client.start("quick", json!({})).await;
        let ended = tokio::time::timeout(Duration::from_secs(10), client.ended(&id));
        assert_eq!(text(&ended.await.expect("a slot")), "done", "{caller}");
    }
}

/// M21: in a task, a round that asks again what an earlier one has asked counts, though it settles an answer.
#[tokio::test]
async fn a_task_that_asks_in_circles_ends() {
    async fn circles(round: Round) -> Result<Reply, ToolError> {
        let turn: u32 = round.state()?.unwrap_or_default();
        round.set_state(&(turn + 1))?;
        let _ = round.confirmed(if turn.is_multiple_of(2) { "details" } else { "menu" })?;
        let key = if turn.is_multiple_of(2) { "menu" } else { "details" };
        Ok(round.ask([Question::confirm(key, "Go on?")]))
    }
    let client = TaskClient::of(super::server([Tool::new("circles", circles).task(When::Required)]));
    let id = client.start("circles", json!({})).await;
    for _ in 0..40 {
        let task = client.until(&id, |task| task["status"] != "working").await;
        if task["status"] != "input_required" {
            assert!(task.to_string().contains("32 times without coming to an end"), "{task}");
            return;
        }
        let wire = super::keys(&task)[0].to_owned();
        client.update(&id, json!({ wire: { "action": "accept", "content": { "confirm": true } } })).await;
    }
    panic!("it asks for ever");
}

/// Z3: a task that keeps setting its state does not pile up what it has set before.
#[tokio::test]
async fn a_journal_holds_what_is_remembered() {
    async fn grows(round: Round) -> Result<Reply, ToolError> {
        let (turn, _): (u32, String) = round.state()?.unwrap_or_default();
        let _ = round.confirmed("next")?;
        if turn == 25 {
            return Ok(Reply::text("done"));
        }
        round.set_state(&(turn + 1, "x".repeat(200_000)))?;
        Ok(round.ask([Question::confirm("next", format!("Turn {turn}?"))]))
    }
    let store = shared();
    let client = TaskClient::of(instance(&store, Tool::new("grows", grows)).max_rounds(100));
    let id = client.start("grows", json!({})).await;
    for turn in 0..25 {
        let is_next = |task: &Value| task["inputRequests"].to_string().contains(&format!("Turn {turn}?"));
        let task = client.until(&id, is_next).await;
        let stored = store.load(&key(&id)).await.expect("a store").expect("a task");
        let bytes: usize = stored.journal.iter().map(bytes::Bytes::len).sum();
        assert!(bytes < 1_000_000, "{bytes} bytes for 200,000");
        let wire = super::keys(&task)[0].to_owned();
        client.update(&id, json!({ wire: { "action": "accept", "content": { "confirm": true } } })).await;
    }
    assert_eq!(text(&client.ended(&id).await), "done");
}
