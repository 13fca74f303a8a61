//! Servers that adopt tasks of the release before (K5).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::seal::TokenLimits;
use roundtrip::task::TaskOwner;
use roundtrip::{
    Ask, Client, FormRequest, Server, Task, TaskHandle, Tasks, Tool, ToolError, Turn, When, inspect,
};
use serde_json::{Value, json};

use crate::old_tasks::{in_millis, old_task};
use crate::support::tasks::{id, ring, sealed};
use crate::support::{OldTask, TaskSite};

on_each_store_of_tasks! {
    a_server_adopts_the_tasks_of_its_tools
    an_adopted_task_repeats_no_step_and_no_question
    an_adopted_task_is_taken_when_its_lease_ends
}

/// Bytes behind their length.
fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).expect("a length").to_be_bytes()[..], bytes].concat()
}

/// View and work of a task of the tool `job`, as the release before wrote them.
fn old_bytes(number: u8, status: &str, more: &Value, parts: &[u8], journal: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (now, flow) = (1_790_000_000_000_u64, [number; 16]);
    let params = json!({ "name": "job", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } } } });
    let mut record = json!({
        "tool": "job", "status": status, "message": null, "created": now, "updated": now, "ttl": null,
        "call": { "params": params, "principal": null },
        "flow": flow, "rounds": 0, "questions": [], "spent": [], "answers": {}, "cancelled": false,
        "result": null, "error": null,
    });
    let mut task = json!({ "taskId": id(number).as_str(), "status": status,
        "createdAt": "2026-09-21T13:33:20.000Z", "lastUpdatedAt": "2026-09-21T13:33:20.000Z", "ttlMs": null });
    for (name, value) in more.as_object().expect("an object") {
        record[name] = value.clone();
        if name == "result" {
            task[name] = value.clone();
        }
    }
    let tool = prefixed(b"job");
    let view = [&now.to_be_bytes()[..], &tool, &prefixed(task.to_string().as_bytes()), parts].concat();
    (view, [&prefixed(record.to_string().as_bytes()), journal].concat())
}

fn of_nobody(number: u8, (view, work): (Vec<u8>, Vec<u8>)) -> OldTask {
    old_task(1, number, TaskOwner::new(None), (&view, &work))
}

/// Questions of a record that waits for an answer.
fn asked() -> Value {
    let question = json!([{ "wire": "sure", "key": "sure", "request": { "method": "elicitation/create", "params": {
        "mode": "form", "message": "Go on?", "requestedSchema": {
            "type": "object", "properties": { "confirm": { "type": "boolean" } }, "required": ["confirm"] } } } }]);
    json!({ "questions": question, "rounds": 1 })
}

/// Steps and questions so far, and when the last run began.
#[derive(Clone, Default)]
struct Seen {
    steps: Arc<AtomicUsize>,
    questions: Arc<AtomicUsize>,
    begun: Arc<AtomicI64>,
}

impl Seen {
    /// A tool that takes a step, and then asks.
    fn job(&self) -> Tool {
        let seen = self.clone();
        Tool::new("job", move |ask: Ask| {
            let seen = seen.clone();
            async move {
                seen.begun.store(in_millis(0), Ordering::SeqCst);
                let step =
                    ask.remember("step", async || seen.steps.fetch_add(1, Ordering::SeqCst) + 1).await?;
                let sure = ask.confirm("sure", "Go on?").await?;
                Ok::<_, ToolError>(format!("step {step}, {sure}"))
            }
        })
    }

    /// A client of a server, which says yes.
    fn client(&self, server: Server) -> Client {
        let questions = Arc::clone(&self.questions);
        Client::in_process(server).expect("a server").on_form(move |form: FormRequest| {
            questions.fetch_add(1, Ordering::SeqCst);
            async move { form.accept(json!({ "confirm": true })) }
        })
    }

    /// A client of a server that has tasks in this store.
    async fn client_of(&self, site: &impl TaskSite) -> Client {
        let tasks = Tasks::new(sealed(site, &[1]).await);
        self.client(Server::new("jobs", "1.0.0").tool(self.job().task(When::Required)).tasks(tasks))
    }

    /// The journal of a call that has taken its step and waits for an answer, as the release before kept it with its tasks: the
    /// same as in `requestState`.
    async fn journal(&self) -> Vec<u8> {
        let client = self.client(Server::new("jobs", "1.0.0").tool(self.job()).seal(ring(&[7])));
        let turn = client.call_tool("job", ()).one_round().await.expect("a turn");
        let Turn::Asked(pending) = turn else { panic!("a question, not {turn:?}") };
        let pending = serde_json::to_value(&pending).expect("JSON");
        let state = pending["state"].as_str().expect("a state");
        let flow = inspect::flow(&ring(&[7]).into(), state, &TokenLimits::default()).expect("a flow");
        let entries: Vec<_> = flow.entries.iter().map(|entry| (entry.kind, &*entry.key)).collect();
        assert_eq!(entries, [("step", "step"), ("open", "sure")]);
        flow.token.payload
    }
}

fn handle(client: &Client, number: u8) -> TaskHandle {
    client.task(Task::new("job", id(number).as_str()))
}

async fn text_of(mut task: TaskHandle) -> String {
    let waiting = tokio::time::timeout(Duration::from_secs(30), task.wait());
    waiting.await.expect("in time").expect("a result").text()
}

/// K5: a server adopts the tasks of its tools that the release before has stored: it runs those that are due, asks what was asked,
/// and shows the results of those that have ended.
async fn a_server_adopts_the_tasks_of_its_tools(site: &impl TaskSite) {
    let result = json!({ "content": [{ "type": "text", "text": "was done" }] });
    let parts = prefixed(br#"{"type":"text","text":"a part"}"#);
    let working = of_nobody(1, old_bytes(1, "working", &json!({}), &[], &[]));
    let ended = old_bytes(2, "completed", &json!({ "result": result, "call": null }), &parts, &[]);
    let ended = OldTask { due: None, live: false, ..of_nobody(2, ended) };
    let waits = OldTask { due: None, ..of_nobody(3, old_bytes(3, "input_required", &asked(), &[], &[])) };
    site.old_release(&[working, ended, waits]).await;
    let seen = Seen::default();
    let client = seen.client_of(site).await;
    assert_eq!(text_of(handle(&client, 2)).await, "was done");
    assert_eq!(text_of(handle(&client, 1)).await, "step 1, true");
    assert_eq!(text_of(handle(&client, 3)).await, "step 2, true");
    assert_eq!(seen.steps.load(Ordering::SeqCst), 2, "what was not stored before is stored now");
}

/// K5: an adopted task continues from its journal: a step that was stored does not run again, and a question is asked once.
async fn an_adopted_task_repeats_no_step_and_no_question(site: &impl TaskSite) {
    let seen = Seen::default();
    let journal = seen.journal().await;
    let waits = old_bytes(1, "input_required", &asked(), &[], &journal);
    site.old_release(&[OldTask { due: None, ..of_nobody(1, waits) }]).await;
    let client = seen.client_of(site).await;
    assert_eq!(text_of(handle(&client, 1)).await, "step 1, true");
    assert_eq!(seen.steps.load(Ordering::SeqCst), 1, "the step is that of the journal");
    assert_eq!(seen.questions.load(Ordering::SeqCst), 1);
}

/// K5: a task that a worker of the release before had when it was stopped is taken when the lease ends, and not before.
async fn an_adopted_task_is_taken_when_its_lease_ends(site: &impl TaskSite) {
    let lease = in_millis(2_000);
    let held = of_nobody(1, old_bytes(1, "working", &json!({}), &[], &[]));
    site.old_release(&[OldTask { due: Some(lease), ..held }]).await;
    let seen = Seen::default();
    let client = seen.client_of(site).await;
    assert_eq!(text_of(handle(&client, 1)).await, "step 1, true");
    assert!(seen.begun.load(Ordering::SeqCst) >= lease);
}
