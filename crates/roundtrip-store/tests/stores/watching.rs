//! Tasks that are watched at one instance while another works on them.

use std::time::Duration;

use roundtrip::server::{Event, InFlight, Peer};
use roundtrip::wire::Message;
use roundtrip::{Ask, Client, FormRequest, Server, Started, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::{TaskSite, instance};

on_each_store_of_tasks! {
    changes_at_another_instance_are_announced
    a_task_is_found_though_nothing_announced_it
}

/// Returns the next message on a subscription.
async fn told(subscription: &mut InFlight) -> Value {
    match tokio::time::timeout(Duration::from_secs(30), subscription.event()).await.expect("in time") {
        Event::Notification(bytes) => serde_json::from_slice(&bytes).expect("JSON"),
        Event::Response(outcome) => panic!("the subscription has ended: {outcome:?}"),
    }
}

/// Returns the task of the first notification with a status.
async fn told_of(subscription: &mut InFlight, status: &str) -> Value {
    loop {
        let told = told(subscription).await;
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        if told["params"]["status"] == status {
            return told["params"].clone();
        }
    }
}

/// T9, K3: who watches a task at one instance is told of what another does with it, each time with the whole task. Leases have an
/// hour to go, so that nothing but the announcement of a change can tell.
async fn changes_at_another_instance_are_announced(site: &impl TaskSite) {
    let (begin, begun) = watch::channel(false);
    let job = move |ask: Ask| {
        let mut begun = begun.clone();
        async move {
            let _ = begun.wait_for(|begun| *begun).await;
            let sure = ask.confirm("sure", "Go on?").await?;
            Ok::<_, ToolError>(format!("done: {sure}"))
        }
    };
    let server = async |at_once| {
        let tasks = Tasks::new(instance(site).await).at_once(at_once).lease(Duration::from_secs(3600));
        Server::new("jobs", "1.0.0").tool(Tool::new("job", job.clone()).task(When::Required)).tasks(tasks)
    };
    let _worker = server(1).await.build().expect("a worker");
    let client = Client::in_process(server(0).await).expect("a server");
    let client = client.on_form(async |form: FormRequest| form.accept(json!({ "confirm": true })));
    let Started::Task(task) = client.call_tool("job", ()).into_task().await.expect("a task") else {
        panic!("a task, not a result");
    };
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": { "taskIds": [task.id(), "0123456789abcdef0123456789abcdef"] },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "watcher", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        },
    } });
    let request = request.to_string();
    let Ok(Message::Request(request)) = Message::decode(request.as_bytes()) else { panic!("not a request") };
    let front = server(0).await.build().expect("another instance");
    let decoded = front.decode(&request).expect("a request");
    let mut subscription = front.begin(request.id, &decoded, &Peer::default());
    let acknowledged = told(&mut subscription).await;
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([task.id()]), "{acknowledged}");

    begin.send_replace(true);
    let asks = told_of(&mut subscription, "input_required").await;
    assert_eq!(asks["taskId"], task.id());
    assert_eq!(asks["inputRequests"]["sure"]["params"]["message"], "Go on?", "{asks}");
    let answering = client.clone();
    let answered = tokio::spawn(async move { answering.task(task).wait().await });
    let done = told_of(&mut subscription, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "done: true", "{done}");
    assert_eq!(answered.await.expect("no panic").expect("a result").text(), "done: true");
}

/// K3: a worker looks for tasks that are due, even if it is not told of any: here one becomes due behind the store's back.
async fn a_task_is_found_though_nothing_announced_it(site: &impl TaskSite) {
    let server = async |at_once| {
        let tasks = Tasks::new(instance(site).await).at_once(at_once);
        Server::new("jobs", "1.0.0").tool(Tool::new("job", async || "done").task(When::Required)).tasks(tasks)
    };
    let client = Client::in_process(server(0).await).expect("a server");
    let Started::Task(hidden) = client.call_tool("job", ()).into_task().await.expect("a task") else {
        panic!("a task, not a result");
    };
    site.execute("UPDATE roundtrip_task SET due = NULL").await;
    let _worker = server(1).await.build().expect("a worker");
    assert_eq!(client.call_tool("job", ()).await.expect("the worker works").text(), "done");
    site.execute("UPDATE roundtrip_task SET due = 1 WHERE due IS NULL AND fence = 0").await;
    let found = tokio::time::timeout(Duration::from_secs(30), async { client.task(hidden).wait().await });
    assert_eq!(found.await.expect("in time").expect("a result").text(), "done");
}
