//! Questions of tasks, and calls that ask before they are tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::{Ask, Form, Question, Reply, Round, State, Tool, ToolError, When};
use serde_json::json;
use tokio::try_join;

use super::{TaskClient, keys, says, server, text};

#[derive(Form)]
struct Name {
    #[form(min_length = 2)]
    name: String,
}

async fn hello(ask: Ask) -> Result<String, ToolError> {
    let Name { name } = ask.form("name", "Who are you?").await?;
    Ok(format!("Hello, {name}!"))
}

/// T4: a task asks with the same handler: it is `input_required` until it is answered, then goes on.
#[tokio::test]
async fn a_task_asks() {
    let client = TaskClient::of(server([Tool::new("hello", hello).task(When::Required)]));
    let id = client.start("hello", json!({})).await;
    let asks = client.asks(&id).await;
    assert_eq!(keys(&asks), ["name"]);
    assert_eq!(asks["inputRequests"]["name"]["params"]["message"], "Who are you?");
    assert!(asks.get("requestState").is_none(), "T10: {asks}");
    let acknowledged = client.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(acknowledged, json!({ "resultType": "complete" }));
    assert_eq!(text(&client.ended(&id).await), "Hello, Ada!");
}

/// T4: answers may come one by one; those to unknown or settled keys are ignored.
#[tokio::test]
async fn answers_may_come_one_by_one() {
    async fn both(ask: Ask) -> Result<String, ToolError> {
        let (one, two) = try_join!(ask.form::<Name>("one", "One?"), ask.form::<Name>("two", "Two?"))?;
        Ok(format!("{} {}", one.name, two.name))
    }
    let client = TaskClient::of(server([Tool::new("both", both).task(When::Required)]));
    let id = client.start("both", json!({})).await;
    assert_eq!(keys(&client.asks(&id).await), ["one", "two"]);
    client.update(&id, json!({ "two": says("second"), "three": says("third") })).await;
    let left = client.until(&id, |task| task["inputRequests"].get("two").is_none()).await;
    assert_eq!((&left["status"], keys(&left)), (&json!("input_required"), vec!["one"]), "{left}");
    client.update(&id, json!({ "two": says("changed"), "one": says("first") })).await;
    assert_eq!(text(&client.ended(&id).await), "first second");
}

/// T4: an answer that does not fit leaves the task `input_required`, with the question anew under a key of its own: a client that
/// drops keys it has seen finishes.
#[tokio::test]
async fn a_question_that_is_asked_again_has_another_key() {
    let client = TaskClient::of(server([Tool::new("hello", hello).task(When::Required)]));
    let id = client.start("hello", json!({})).await;
    let mut seen = std::collections::BTreeSet::new();
    for answer in ["", "A", "Ada"] {
        let asks = client
            .until(&id, |task| {
                let new = |keys: Vec<&str>| keys.iter().any(|key| !seen.contains(*key));
                task["status"] == "input_required" && new(keys(task))
            })
            .await;
        let key = keys(&asks)[0].to_owned();
        client.update(&id, json!({ key.clone(): says(answer) })).await;
        seen.insert(key);
    }
    assert_eq!(text(&client.ended(&id).await), "Hello, Ada!");
    assert_eq!(Vec::from_iter(&seen), ["name", "name~2", "name~3"]);
}

/// T4: a declined question ends the handler as in a round.
#[tokio::test]
async fn a_question_can_be_declined() {
    let client = TaskClient::of(server([Tool::new("hello", hello).task(When::Required)]));
    let id = client.start("hello", json!({})).await;
    client.asks(&id).await;
    client.update(&id, json!({ "name": { "action": "decline" } })).await;
    let task = client.ended(&id).await;
    assert_eq!(task["result"]["isError"], true, "{task}");
}

/// T7, T17: a step whose result is stored runs once, however often the handler is replayed.
#[tokio::test]
async fn a_step_runs_once() {
    async fn order(ask: Ask, State(runs): State<Arc<AtomicUsize>>) -> Result<String, ToolError> {
        let price = ask.remember("price", async || 20 + runs.fetch_add(1, Ordering::SeqCst)).await?;
        let one: Name = ask.form("one", format!("For {price}?")).await?;
        let two: Name = ask.form("two", format!("{price}, {}?", one.name)).await?;
        Ok(format!("{price} {} {}", one.name, two.name))
    }
    let runs = Arc::new(AtomicUsize::new(0));
    let client =
        TaskClient::of(server([Tool::new("order", order).task(When::Required)]).state(Arc::clone(&runs)));
    let id = client.start("order", json!({})).await;
    client.asks(&id).await;
    client.update(&id, json!({ "one": says("Ada") })).await;
    let asks = client.until(&id, |task| task["inputRequests"].get("two").is_some()).await;
    assert_eq!(asks["inputRequests"]["two"]["params"]["message"], "20, Ada?");
    client.update(&id, json!({ "two": says("Bob") })).await;
    assert_eq!(text(&client.ended(&id).await), "20 Ada Bob");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// T13, M20: rounds first, then a task: what was answered in rounds is not asked again, and the task asks for itself.
#[tokio::test]
async fn rounds_come_first_then_a_task() {
    async fn export(ask: Ask) -> Result<String, ToolError> {
        let format: Name = ask.form("format", "Which format?").await?;
        ask.detach("collecting").await?;
        let place: Name = ask.form("place", "Where to?").await?;
        Ok(format!("{} to {}", format.name, place.name))
    }
    let tool = || Tool::new("export", export).task(When::After(Duration::MAX));
    let client = TaskClient::of(server([tool()]));
    let call = json!({ "name": "export" });
    let asks = client.result("tools/call", call.clone()).await;
    assert_eq!((&asks["resultType"], keys(&asks)), (&json!("input_required"), vec!["format"]));
    let mut retry = call.clone();
    retry["requestState"] = asks["requestState"].clone();
    retry["inputResponses"] = json!({ "format": says("csv") });
    let created = client.result("tools/call", retry.clone()).await;
    assert_eq!(created["resultType"], "task", "{created}");
    let id = created["taskId"].as_str().expect("an id");
    assert_eq!(keys(&client.asks(id).await), ["place"]);
    client.update(id, json!({ "place": says("the moon") })).await;
    assert_eq!(text(&client.ended(id).await), "csv to the moon");
    // Where no task can be, `detach` does nothing.
    let plain = TaskClient::of(server([tool()])).without_extension();
    let asks = plain.result("tools/call", call).await;
    retry["requestState"] = asks["requestState"].clone();
    let asks = plain.result("tools/call", retry).await;
    assert_eq!((&asks["resultType"], keys(&asks)), (&json!("input_required"), vec!["place"]), "{asks}");
}

/// T12: a call that takes longer than its tool allows becomes a task; the running handler goes on, nothing runs twice.
#[tokio::test]
async fn a_call_that_takes_long_becomes_a_task() {
    let (runs, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let noted = (Arc::clone(&runs), Arc::clone(&go_on));
    let slow = move |ask: Ask| {
        let (runs, go_on) = noted.clone();
        async move {
            runs.fetch_add(1, Ordering::SeqCst);
            go_on.notified().await;
            let Name { name } = ask.form("name", "Who?").await?;
            Ok::<_, ToolError>(name)
        }
    };
    let client =
        TaskClient::of(server([Tool::new("slow", slow).task(When::After(Duration::from_millis(20)))]));
    let id = client.start("slow", json!({})).await;
    assert_eq!(client.get(&id).await["status"], "working");
    go_on.notify_one();
    client.asks(&id).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1, "the handler that was running went on");
    go_on.notify_one();
    client.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&client.ended(&id).await), "Ada");
    // One that is quick stays a call.
    go_on.notify_one();
    let quick = client.result("tools/call", json!({ "name": "slow" })).await;
    assert_eq!(quick["resultType"], "input_required", "{quick}");
}

/// T12: for a client that does not declare the extension the call goes on past that time, and is answered when it ends.
#[tokio::test(start_paused = true)]
async fn a_call_of_another_client_takes_as_long_as_it_takes() {
    let (runs, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let noted = (Arc::clone(&runs), Arc::clone(&go_on));
    let slow = move || {
        let (runs, go_on) = noted.clone();
        async move {
            runs.fetch_add(1, Ordering::SeqCst);
            go_on.notified().await;
            "done"
        }
    };
    let after = Duration::from_millis(20);
    let client = TaskClient::of(server([Tool::new("slow", slow).task(When::After(after))]));
    let plain = client.clone().without_extension();
    let call = tokio::spawn(async move { plain.ask("tools/call", json!({ "name": "slow" })).await });
    // With nothing else to do, the clock goes on by itself.
    tokio::time::sleep(after * 10).await;
    assert!(!call.is_finished() && runs.load(Ordering::SeqCst) == 1, "it runs in the call");
    go_on.notify_one();
    let answer = call.await.expect("an answer");
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // One that declares it has a task after the same time.
    client.start("slow", json!({})).await;
}

/// T4: a handler that asks by hand runs as a task too: it is entered again with the answers, and its state is kept.
#[tokio::test]
async fn rounds_by_hand_run_as_a_task() {
    async fn by_hand(round: Round) -> Result<Reply, ToolError> {
        let seen: u32 = round.state()?.unwrap_or(0);
        round.set_state(&(seen + 1))?;
        match round.answer::<Name>("name")? {
            None => Ok(round.ask([Question::form::<Name>("name", "Who?")])),
            Some(Name { name }) => Ok(Reply::text(format!("{name}, after {seen}"))),
        }
    }
    let client = TaskClient::of(server([Tool::new("by_hand", by_hand).task(When::Required)]));
    let id = client.start("by_hand", json!({})).await;
    client.asks(&id).await;
    client.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&client.ended(&id).await), "Ada, after 1");
}

/// A task that waits for something outside looks again by itself.
#[tokio::test]
async fn a_task_waits_for_something_outside() {
    async fn wait(ask: Ask, State(looks): State<Arc<AtomicUsize>>) -> Result<String, ToolError> {
        let found = ask
            .until("found", async || {
                let looks = looks.fetch_add(1, Ordering::SeqCst);
                Ok::<_, ToolError>((looks > 0).then_some(looks))
            })
            .await?;
        Ok(format!("found at look {found}"))
    }
    let looks = Arc::new(AtomicUsize::new(0));
    let client = TaskClient::of(server([Tool::new("wait", wait).task(When::Required)]).state(looks));
    let id = client.start("wait", json!({})).await;
    assert_eq!(text(&client.ended(&id).await), "found at look 1");
}
