//! Tasks of our own server in the dialects beside the extension: SEP-2322's, and that of 2025-11-25.

use std::future::pending;
use std::time::Duration;

use roundtrip::client::{TaskDialect, TaskError};
use roundtrip::wire::{ErrorObject, TaskStatus};
use roundtrip::{
    Ask, Client, Error, Form, FormRequest, MemoryTasks, Pending, Principal, Question, Reply, Round, Server,
    Started, Task, Tasks, Tool, ToolError, Turn, When,
};
use serde_json::json;

use crate::fixture::{serve, text};

#[derive(Form)]
struct Party {
    #[form(min = 1, max = 12)]
    people: u8,
}

async fn book(ask: Ask) -> Result<String, ToolError> {
    let party: Party = ask.form("party", "How many people?").await?;
    let again: Party = ask.form("again", "Are you sure?").await?;
    Ok(format!("{} and {}", party.people, again.people))
}

async fn both(ask: Ask) -> Result<String, ToolError> {
    let (one, two) = tokio::try_join!(
        ask.form::<Party>("one", "One?").into_future(),
        ask.form::<Party>("two", "Two?").into_future()
    )?;
    Ok(format!("{} and {}", one.people, two.people))
}

async fn twice(ask: Ask) -> Result<String, ToolError> {
    let one: Party = ask.form("one", "How many people?").await?;
    let two: Party = ask.form("two", "How many people?").await?;
    Ok(format!("{} and {}", one.people, two.people))
}

async fn rounds_first(ask: Ask) -> Result<String, ToolError> {
    let party: Party = ask.form("party", "How many people?").await?;
    ask.detach("booking").await?;
    let again: Party = ask.form("again", "Are you sure?").await?;
    Ok(format!("{} and {}", party.people, again.people))
}

async fn by_hand(round: Round) -> Result<Reply, ToolError> {
    let seen: u32 = round.state()?.unwrap_or(0);
    round.set_state(&(seen + 1))?;
    match round.answer::<Party>("party")? {
        None => Ok(round.ask([Question::form::<Party>("party", "How many people?")])),
        Some(Party { people }) => Ok(Reply::text(format!("{people}, after {seen}"))),
    }
}

async fn never() -> String {
    pending().await
}

async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("no table"))
}

async fn broken() -> Result<String, ErrorObject> {
    Err(ErrorObject::new(7, "broken"))
}

fn server() -> Server {
    Server::new("bookings", "1.0.0")
        .tool(Tool::new("book", book).task(When::Offered))
        .tool(Tool::new("both", both).task(When::Offered))
        .tool(Tool::new("twice", twice).task(When::Offered))
        .tool(Tool::new("rounds_first", rounds_first).task(When::After(Duration::from_secs(60))))
        .tool(Tool::new("by_hand", by_hand).task(When::Offered))
        .tool(Tool::new("train", book).task(When::Required))
        .tool(Tool::new("never", never).task(When::Required))
        .tool(Tool::new("fail", fail).task(When::Required))
        .tool(Tool::new("broken", broken).task(When::Required))
        .tool(Tool::new("plain", async || "done"))
        .tasks(Tasks::new(MemoryTasks::new()).sep_2322())
}

fn answering(client: Client) -> Client {
    client.on_form(async |form: FormRequest| match &*form.message {
        "Are you sure?" => form.accept(json!({ "people": 3 })),
        _ => form.accept(json!({ "people": 2 })),
    })
}

async fn started(client: &Client, tool: &str) -> Task {
    match client.call_tool(tool, ()).into_task().await.expect("a task") {
        Started::Task(task) => task,
        Started::Done(result) => panic!("a task, not {result:?}"),
    }
}

/// A task by way of storage.
fn stored(task: &Task) -> Task {
    serde_json::from_str(&serde_json::to_string(task).expect("serialises")).expect("what was stored")
}

/// Everything that a caller can do with a task, whatever its dialect. `other` is a client of another process.
async fn plays(client: Client, other: Client) {
    let client = answering(client);
    assert_eq!(text(&client.call_tool("train", ()).await.expect("a result")), "2 and 3");
    let failed = client.call_tool("fail", ()).await.expect("a result");
    assert_eq!((failed.is_error, text(&failed)), (Some(true), "no table".to_owned()));
    let error = client.call_tool("broken", ()).await.expect_err("broken");
    assert!(matches!(&error, Error::Rejected(refusal) if refusal.error().code == 7), "{error:?}");
    let done = client.call_tool("plain", ()).into_task().await.expect("a result");
    assert!(matches!(done, Started::Done(result) if text(&result) == "done"));

    // Handed over, looked at and answered by another process, one question at a time.
    let mut task = other.task(stored(&started(&client, "book").await));
    for people in [4, 5] {
        let Turn::Asked(pending) = task.turn().await.expect("a turn") else { panic!("it asks") };
        let key = pending.open().next().expect("a question").key().to_owned();
        let status = task.status().await.expect("a status");
        assert_eq!(status.status, TaskStatus::InputRequired);
        assert_eq!(status.input_requests.keys().collect::<Vec<_>>(), [&key]);
        task.answer(&key, json!({ "people": people })).await.expect("an answer");
    }
    assert_eq!(text(&task.wait().await.expect("a result")), "4 and 5");
    assert!(task.status().await.expect("a status").result.is_some());

    let mut task = other.task(started(&client, "never").await);
    assert_eq!(task.status().await.expect("a status").status, TaskStatus::Working);
    task.cancel().await.expect("heard");
    task.cancel().await.expect("it has ended already");
    let error = task.wait().await.expect_err("cancelled");
    assert!(matches!(error, Error::Task(TaskError::Cancelled { .. })), "{error:?}");
    let mut none = other.task(Task::new("book", "0".repeat(32)));
    for outcome in [none.status().await.map(drop), none.cancel().await, none.wait().await.map(drop)] {
        let error = outcome.expect_err("no task");
        assert!(matches!(error, Error::Task(TaskError::Unknown { .. })), "{error:?}");
    }
}

/// A stored question is answered in another process, in part; the rest is asked again.
async fn answers_in_part(client: Client, other: Client) {
    let mut task = client.task(started(&client, "both").await);
    let Turn::Asked(pending) = task.turn().await.expect("a turn") else { panic!("it asks") };
    let keys: Vec<String> = pending.open().map(|question| question.key().to_owned()).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    let kept = serde_json::to_string(&pending).expect("serialises");
    let pending: Pending = serde_json::from_str(&kept).expect("what was stored");
    let one = pending.answer(&keys[0], json!({ "people": 7 })).expect("fits");
    let Turn::Task(task) = other.resume(one).await.expect("a turn") else { panic!("it goes on") };
    let rest = answering(other);
    let result = text(&rest.task(stored(&task)).wait().await.expect("a result"));
    assert!(result == "7 and 2" || result == "2 and 7", "{result}");
}

fn sep_2322(client: Client) -> Client {
    client.tasks(TaskDialect::Sep2322)
}

/// C14, T26: SEP-2322's dialect, in process and over HTTP.
#[tokio::test]
async fn tasks_of_sep_2322() {
    let client = sep_2322(Client::in_process(server()).expect("a sound server"));
    plays(client.clone(), client.clone()).await;
    answers_in_part(answering(client.clone()), client.clone()).await;
    let result = answering(client).call_tool("by_hand", ()).await.expect("a result");
    assert_eq!(text(&result), "2, after 1", "the state has come back");
    let (client, _stop) = serve(server()).await;
    plays(sep_2322(client.clone()), sep_2322(client)).await;
}

/// M20, T26: in SEP-2322's dialect, too, rounds come first and a task after them.
#[tokio::test]
async fn rounds_first_and_then_a_task() {
    let client = answering(sep_2322(Client::in_process(server()).expect("a sound server")));
    assert_eq!(text(&client.call_tool("rounds_first", ()).await.expect("a result")), "2 and 3");
    let task = started(&client, "rounds_first").await;
    assert_eq!(text(&client.task(stored(&task)).wait().await.expect("a result")), "2 and 3");
}

/// T24, T26: the tasks of a caller are listed where the dialect has a list, and found again by their identifiers.
#[tokio::test]
async fn tasks_are_listed() {
    let client = answering(sep_2322(Client::in_process(server()).expect("a sound server")));
    let ada = client.clone().principal(Principal::new("ada"));
    started(&ada, "never").await;
    let kept = ada.call_tool("book", ()).keep_for(Duration::from_secs(60)).into_task().await;
    let Started::Task(book) = kept.expect("a task") else { panic!("a task") };
    let listed = ada.list_tasks().await.expect("a list");
    assert_eq!(listed.len(), 2);
    let entry = listed.iter().find(|entry| entry.task_id == book.id()).expect("listed");
    assert_eq!(entry.ttl, Some(60_000));
    let found = ada.task(Task::new("book", &entry.task_id)).turn().await.expect("a turn");
    assert!(matches!(found, Turn::Asked(_)), "{found:?}");
    assert!(client.principal(Principal::new("bob")).list_tasks().await.expect("a list").is_empty());
    let error = ada.tasks(TaskDialect::Extension).list_tasks().await.expect_err("the extension has none");
    assert!(matches!(&error, Error::Rejected(refusal) if refusal.error().code == -32601), "{error:?}");
}

#[cfg(feature = "legacy")]
mod experimental {
    use roundtrip::wire::ProtocolVersion;

    use super::*;

    /// Two clients of one server, each with a session of its own.
    async fn clients(server: Server) -> (Client, Client, tokio::sync::oneshot::Sender<()>) {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let bound = server.into_http().expect("a sound server").bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", bound.local_addr().expect("an address"));
        tokio::spawn(bound.until(async { drop(stopped.await) }).into_future());
        let client = || Client::http(&url).expect("a client").protocol(ProtocolVersion::V2025_11_25);
        (client(), client(), stop)
    }

    /// C14, T26, T27: the same at 2025-11-25.
    #[tokio::test]
    async fn tasks_of_2025_11_25() {
        let (client, other, _stop) = clients(server()).await;
        plays(client, answering(other)).await;
    }

    /// T26, T27: a question of 2025-11-25 that was stored is answered in another session.
    #[tokio::test]
    async fn a_stored_question_is_answered_in_another_session() {
        let (client, other, _stop) = clients(server()).await;
        answers_in_part(answering(client), answering(other)).await;
    }

    /// T4, T27: a question that says the same as one that was answered is another one, with a key of its own.
    #[tokio::test]
    async fn a_question_may_say_the_same_again() {
        let (client, _, _stop) = clients(server()).await;
        let client = answering(client);
        let mut task = client.task(started(&client, "twice").await);
        let mut keys = Vec::new();
        for people in [4, 5] {
            let Turn::Asked(pending) = task.turn().await.expect("a turn") else { panic!("it asks") };
            let key = pending.open().next().expect("a question").key().to_owned();
            task.answer(&key, json!({ "people": people })).await.expect("an answer");
            keys.push(key);
        }
        assert_eq!(text(&task.wait().await.expect("a result")), "4 and 5");
        assert_ne!(keys[0], keys[1]);
    }

    #[cfg(unix)]
    const SERVER: &str = "ROUNDTRIP_TEST_TASKS";

    /// Not a test of its own: the server that the next one starts.
    #[cfg(unix)]
    #[tokio::test]
    async fn serves_when_started_as_a_child() {
        if std::env::var(SERVER).is_ok() {
            server().serve_stdio().await.expect("served");
        }
    }

    /// T27: on a pipe, which all calls share, a question goes to the task that it names, though another asks the same. There the
    /// tasks are listed.
    #[cfg(unix)]
    #[tokio::test]
    async fn questions_find_their_task_on_a_pipe() {
        let child = "tasks::own_dialects::experimental::serves_when_started_as_a_child";
        let mut command = tokio::process::Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--quiet", "--nocapture", "--exact", child]).env(SERVER, "1");
        let client = Client::stdio(command).protocol(ProtocolVersion::V2025_11_25);
        let client = client.on_form(async |form: FormRequest| {
            let people = if form.origin.target.as_deref() == Some("train") { 7 } else { 2 };
            form.accept(json!({ "people": people }))
        });
        let book = async { client.task(started(&client, "book").await).wait().await };
        let (book, train) = tokio::join!(book, client.call_tool("train", ()).into_future());
        assert_eq!(text(&book.expect("a result")), "2 and 2");
        assert_eq!(text(&train.expect("a result")), "7 and 7");
        assert_eq!(client.list_tasks().await.expect("a list").len(), 2);
        client.close().await;
    }
}
