//! Tasks of our own server, in process and over HTTP.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::client::{ServerRejection, TaskError};
use roundtrip::wire::TaskStatus;
use roundtrip::{
    Ask, Client, Error, Form, FormRequest, MemoryTasks, Principal, Server, Started, Status, Task, Tasks,
    Tool, ToolError, When,
};
use serde_json::json;

use super::{completed, created};
use crate::fixture::{serve, text};
use crate::peer::{next, peer};

#[derive(Form)]
struct Party {
    people: u8,
}

async fn book(ask: Ask, status: Status) -> Result<String, ToolError> {
    status.set("looking for a table");
    let party: Party = ask.form("party", "How many people?").await?;
    let again: Party = ask.form("again", "Are you sure?").await?;
    Ok(format!("{} and {}", party.people, again.people))
}

async fn rounds_first(ask: Ask) -> Result<String, ToolError> {
    let party: Party = ask.form("party", "How many people?").await?;
    ask.detach("booking").await?;
    let again: Party = ask.form("again", "Are you sure?").await?;
    Ok(format!("{} and {}", party.people, again.people))
}

async fn never() -> String {
    pending().await
}

async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("no table"))
}

fn server() -> Server {
    Server::new("bookings", "1.0.0")
        .tool(Tool::new("book", book).task(When::Offered))
        .tool(Tool::new("rounds_first", rounds_first).task(When::After(Duration::from_secs(60))))
        .tool(Tool::new("never", never).task(When::Required))
        .tool(Tool::new("fail", fail).task(When::Required))
        .tasks(Tasks::new(MemoryTasks::new()))
}

fn answering(client: Client) -> Client {
    client.on_form(async |form: FormRequest| match &*form.message {
        "How many people?" => form.accept(json!({ "people": 2 })),
        _ => form.accept(json!({ "people": 3 })),
    })
}

async fn started(client: &Client, tool: &str) -> Task {
    match client.call_tool(tool, ()).into_task().await.expect("a task") {
        Started::Task(task) => task,
        Started::Done(result) => panic!("a task, not {result:?}"),
    }
}

async fn plays(client: Client) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&told);
    let client = answering(client);
    let call = client.call_tool("book", ()).on_status(move |task| {
        keep.lock().expect("a list").push(task.status);
    });
    assert_eq!(text(&call.await.expect("a result")), "2 and 3");
    let told = told.lock().expect("a list").clone();
    assert!(
        told.starts_with(&[TaskStatus::Working]) && told.contains(&TaskStatus::InputRequired),
        "{told:?}"
    );
    let failed = client.call_tool("fail", ()).await.expect("a result");
    assert_eq!((failed.is_error, text(&failed)), (Some(true), "no table".to_owned()));

    let mut task = client.task(started(&client, "never").await);
    assert_eq!(task.status().await.expect("a status").status, TaskStatus::Working);
    task.cancel().await.expect("heard");
    let error = task.wait().await.expect_err("cancelled");
    assert!(matches!(error, Error::Task(TaskError::Cancelled { .. })), "{error:?}");
    let error = client.task(Task::new("book", "0".repeat(32))).wait().await.expect_err("none");
    assert!(matches!(error, Error::Task(TaskError::Unknown { .. })), "{error:?}");
}

/// C14, T26: tasks of our own server end as calls do, in process.
#[tokio::test]
async fn tasks_in_process() {
    plays(Client::in_process(server()).expect("a sound server")).await;
}

/// C14, T26, T11: and over HTTP, where every request names the task in `Mcp-Name`.
#[tokio::test]
async fn tasks_over_http() {
    let (client, _stop) = serve(server()).await;
    plays(client).await;
}

/// T13, C14: rounds come first, and a task after them, with one call and the same handlers.
#[tokio::test]
async fn rounds_first_and_then_a_task() {
    let client = answering(Client::in_process(server()).expect("a sound server"));
    let started = client.call_tool("rounds_first", ()).into_task().await.expect("a task");
    let Started::Task(task) = started else { panic!("a task, not {started:?}") };
    assert_eq!(text(&client.task(task).wait().await.expect("a result")), "2 and 3");
}

/// C14: another client answers a task, and a third one has its result.
#[tokio::test]
async fn any_client_looks_after_a_task() {
    let (first, _stop) = serve(server()).await;
    let stored =
        serde_json::to_string(&started(&answering(first.clone()), "book").await).expect("serialises");
    let task: Task = serde_json::from_str(&stored).expect("what was stored");
    let mut task = first.task(task);
    for key in ["party", "again"] {
        let roundtrip::Turn::Asked(pending) = task.turn().await.expect("a turn") else { panic!("it asks") };
        assert_eq!(pending.open().map(|question| question.key()).collect::<Vec<_>>(), [key]);
        task.answer(key, json!({ "people": 5 })).await.expect("an answer");
    }
    let stored = serde_json::to_string(task.task()).expect("serialises");
    let task: Task = serde_json::from_str(&stored).expect("what was stored");
    assert_eq!(text(&first.task(task).wait().await.expect("a result")), "5 and 5");
}

/// T5: another's task is unknown.
#[tokio::test]
async fn anothers_task_is_unknown() {
    let client = Client::in_process(server()).expect("a sound server");
    let ada = client.clone().principal(Principal::new("ada"));
    let task = started(&ada, "never").await;
    let bob = client.principal(Principal::new("bob"));
    let error = bob.task(task.clone()).status().await.expect_err("not his");
    assert!(matches!(error, Error::Task(TaskError::Unknown { .. })), "{error:?}");
    ada.task(task).status().await.expect("hers");
}

/// T26: a client without tasks has tools run in their calls, and is refused those that cannot.
#[tokio::test]
async fn a_client_without_tasks_has_its_tools_run_in_the_call() {
    let client = answering(Client::in_process(server()).expect("a sound server")).without_tasks();
    let call = client.call_tool("book", ()).on_status(|_| panic!("no task"));
    assert_eq!(text(&call.await.expect("a result")), "2 and 3");
    let error = client.call_tool("never", ()).await.expect_err("refused");
    assert!(matches!(error, Error::Rejected(ServerRejection::MissingCapability(_))), "{error:?}");
}

/// T26, T27: at 2025-11-25 the client decides, and tools that may be tasks run in their calls unless a task is wanted.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn no_task_is_made_of_a_call_in_the_handshake_eras() {
    let (client, _stop) = serve(server()).await;
    let client = answering(client).protocol(roundtrip::wire::ProtocolVersion::V2025_11_25);
    let call = client.call_tool("book", ()).on_status(|_| panic!("no task"));
    assert_eq!(text(&call.await.expect("a result")), "2 and 3");
}

/// T11: `Mcp-Name` of requests about a task is its identifier.
#[tokio::test]
async fn requests_name_the_task_in_a_header() {
    let (client, mut seen) = peer(|number, request| match number {
        0 => {
            let mut created = created();
            created["pollIntervalMs"] = json!(50);
            request.result(&created)
        }
        _ => request.result(&completed()),
    })
    .await;
    client.call_tool("book", ()).await.expect("a result");
    let call = next(&mut seen).await;
    assert_eq!((call.header("mcp-method"), call.header("mcp-name")), (Some("tools/call"), Some("book")));
    let look = next(&mut seen).await;
    assert_eq!((look.header("mcp-method"), look.header("mcp-name")), (Some("tasks/get"), Some("t-1")));
}
