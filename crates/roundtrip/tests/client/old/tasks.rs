//! Tasks of servers of 2025-11-25, which may misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::client::{ClientLimits, GaveUp, PeerMisbehaved, TaskError};
use roundtrip::wire::TaskStatus;
use roundtrip::{Client, Error, Started, Task};
use serde_json::{Value, json};

use super::asking::ada;
use super::server::{Old, Reply, Seen, form, greeting, json_reply, stream};
use crate::fixture::text;

fn shown(status: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "ttl": 60_000, "pollInterval": 10,
        "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z",
    })
}

/// A server with tasks, which looks at each request first.
async fn with_tasks(
    respond: impl Fn(&Arc<Old>, &Seen) -> Option<Reply> + Send + Sync + 'static,
) -> (Client, Arc<Old>) {
    let (client, old) = Old::start(move |old, seen| {
        respond(old, seen).or_else(|| {
            let result = match seen.method() {
                "initialize" => {
                    let mut greeting = greeting("2025-11-25");
                    greeting["capabilities"]["tasks"] =
                        json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
                    let mut reply = json_reply(200, &seen.result(&greeting));
                    reply.headers_mut().insert("mcp-session-id", "s-1".parse().expect("a header"));
                    return Some(reply);
                }
                "tools/list" => {
                    let tool = |name: &str, support: &str| {
                        json!({ "name": name, "inputSchema": {}, "execution": { "taskSupport": support } })
                    };
                    let plain = json!({ "name": "plain", "inputSchema": {} });
                    let tools = [plain, tool("no", "forbidden"), tool("may", "optional"), tool("must", "required")];
                    json!({ "tools": tools })
                }
                "tools/call" if seen.body["params"].get("task").is_some() => json!({ "task": shown("working") }),
                "tasks/get" => shown("completed"),
                "tasks/result" => json!({ "content": [{ "type": "text", "text": "trained" }] }),
                "tasks/cancel" => shown("cancelled"),
                _ => return None,
            };
            Some(json_reply(200, &seen.result(&result)))
        })
    })
    .await;
    (client.on_form(ada), old)
}

fn count(old: &Old, method: &str) -> usize {
    old.posted().iter().filter(|posted| *posted == method).count()
}

/// T27: `task` is sent for tools that have to be tasks, and for those that may be if the caller wants one; for no other, and to no
/// server that has none.
#[tokio::test]
async fn a_tool_says_whether_it_is_called_as_a_task() {
    let (client, old) = with_tasks(|_, _| None).await;
    let tasks = |old: &Old| -> Vec<bool> {
        let calls = old.seen().into_iter().filter(|seen| seen.method() == "tools/call");
        calls.map(|seen| seen.body["params"].get("task").is_some()).collect()
    };
    for (tool, result) in [("plain", "done"), ("no", "done"), ("may", "done"), ("must", "trained")] {
        assert_eq!(text(&client.call_tool(tool, ()).await.expect("a result")), result, "{tool}");
    }
    assert_eq!(tasks(&old), [false, false, false, true]);
    for tool in ["plain", "may"] {
        let call = client.call_tool(tool, ()).keep_for(Duration::from_secs(9)).into_task();
        let is_task = matches!(call.await.expect("a call"), Started::Task(_));
        assert_eq!(is_task, tool == "may");
    }
    assert_eq!(tasks(&old)[4..], [false, true]);
    let last = old.seen().into_iter().rfind(|seen| seen.method() == "tools/call").expect("a call");
    assert_eq!(last.body["params"]["task"], json!({ "ttl": 9000 }));
    assert_eq!(count(&old, "tools/list"), 1, "the tools are listed once");
    let plain = client.without_tasks();
    assert!(plain.call_tool("must", ()).await.is_ok());
    assert_eq!(tasks(&old).last(), Some(&false));
    let (client, old) = Old::start(|_, _| None).await;
    let started = client.call_tool("must", ()).into_task().await.expect("a call");
    assert!(matches!(started, Started::Done(_)), "{started:?}");
    assert_eq!((tasks(&old), count(&old, "tools/list")), (vec![false], 0));
}

/// Z2, T27: the tools that are listed to learn which may be tasks are a list like others: it has an end in pages, entries and bytes,
/// and no circles.
#[tokio::test]
async fn tools_that_are_listed_for_tasks_have_an_end() {
    let pages = AtomicUsize::new(0);
    let (client, old) = with_tasks(move |_, seen| {
        (seen.method() == "tools/list").then(|| {
            let tool = json!({ "name": "x".repeat(1000), "inputSchema": {} });
            let cursor = pages.fetch_add(1, Ordering::Relaxed).to_string();
            json_reply(200, &seen.result(&json!({ "tools": [tool], "nextCursor": cursor })))
        })
    })
    .await;
    let set: [(fn(&mut ClientLimits), _, _); 3] = [
        (|limits| limits.list_pages = 7, 7, "`list_pages`"),
        (|limits| limits.list_items = 5, 6, "`list_items`"),
        (|limits| limits.list_bytes = 9_500, 10, "`list_bytes`"),
    ];
    for (set, most, named) in set {
        let mut limits = ClientLimits::default();
        set(&mut limits);
        let before = count(&old, "tools/list");
        let error = client.clone().limits(limits).call_tool("may", ()).await.expect_err("no end");
        assert!(matches!(&error, Error::GaveUp(why) if why.to_string().contains(named)), "{error:?}");
        assert!(count(&old, "tools/list") - before <= most, "{named}");
    }
    let (client, old) = with_tasks(|_, seen| {
        let page = json!({ "tools": [], "nextCursor": "again" });
        (seen.method() == "tools/list").then(|| json_reply(200, &seen.result(&page)))
    })
    .await;
    let error = client.call_tool("may", ()).await.expect_err("a circle");
    let is_named = matches!(&error, Error::PeerMisbehaved(PeerMisbehaved::RepeatedCursor { .. }));
    assert!(is_named && count(&old, "tools/list") == 2, "{error:?}");
}

/// T27: questions come on the stream of `tasks/result`, which goes on after them; the request of the client names no answer
/// twice, and a log of what was posted shows one such stream.
#[tokio::test]
async fn questions_come_with_the_result() {
    let (client, old) = with_tasks(|old, seen| match seen.method() {
        "tasks/get" => {
            let answered = old.seen().iter().any(|seen| seen.method().is_empty() && seen.body["id"] == 8);
            let status = if answered { "completed" } else { "input_required" };
            Some(json_reply(200, &seen.result(&shown(status))))
        }
        "tasks/result" => {
            let (sender, reply) = stream();
            let (old, seen) = (Arc::clone(old), seen.clone());
            tokio::spawn(async move {
                for id in [7, 8] {
                    sender.message(&form(id, "Who are you?"));
                    old.response(&json!(id)).await;
                }
                sender.message(&seen.says("Hello"));
            });
            Some(reply)
        }
        _ => None,
    })
    .await;
    assert_eq!(text(&client.call_tool("must", ()).await.expect("a result")), "Hello");
    assert_eq!((count(&old, "tasks/result"), count(&old, "tools/call")), (1, 1));
}

/// T27: a question is found on the stream of `tasks/result` although the task is said to work: a server may take the answer to the
/// question before it for the end of its questions.
#[tokio::test]
async fn a_question_of_a_task_that_works_is_found() {
    let answered =
        |old: &Old, id: u64| old.seen().iter().any(|seen| seen.method().is_empty() && seen.body["id"] == id);
    let (client, old) = with_tasks(move |old, seen| match seen.method() {
        "tasks/get" => {
            let status = match (answered(old, 7), answered(old, 8)) {
                (false, _) => "input_required",
                (true, false) => "working",
                (true, true) => "completed",
            };
            Some(json_reply(200, &seen.result(&shown(status))))
        }
        "tasks/result" => {
            let (sender, reply) = stream();
            let (old, seen) = (Arc::clone(old), seen.clone());
            tokio::spawn(async move {
                for id in [7, 8] {
                    sender.message(&form(id, "Who are you?"));
                    old.response(&json!(id)).await;
                }
                sender.message(&seen.says("Hello"));
            });
            Some(reply)
        }
        _ => None,
    })
    .await;
    let call = client.call_tool("must", ()).into_future();
    let result = tokio::time::timeout(Duration::from_secs(10), call).await.expect("it does not hang");
    assert_eq!(text(&result.expect("a result")), "Hello");
    assert_eq!(count(&old, "tools/call"), 1);
}

/// T27: a stream of `tasks/result` on which the end of the task is missed is left for a new one.
#[tokio::test]
async fn a_result_that_is_missed_is_requested_again() {
    let (client, old) = with_tasks(move |old, seen| match seen.method() {
        "tasks/get" => {
            let answered = old.seen().iter().any(|seen| seen.method().is_empty() && seen.body["id"] == 7);
            let status = if answered { "completed" } else { "input_required" };
            Some(json_reply(200, &seen.result(&shown(status))))
        }
        "tasks/result" if count(old, "tasks/result") == 1 => {
            let (sender, reply) = stream();
            let old = Arc::clone(old);
            tokio::spawn(async move {
                sender.message(&form(7, "Who are you?"));
                old.response(&json!(7)).await;
                // It stays open, and silent.
                std::future::pending::<()>().await;
            });
            Some(reply)
        }
        "tasks/result" => Some(json_reply(200, &seen.says("Hello"))),
        _ => None,
    })
    .await;
    let call = client.call_tool("must", ()).into_future();
    let result = tokio::time::timeout(Duration::from_secs(10), call).await.expect("it does not hang");
    assert_eq!(text(&result.expect("a result")), "Hello");
    assert_eq!((count(&old, "tasks/result"), count(&old, "tools/call")), (2, 1));
}

/// T26, T27: a task that has failed has the error of `tasks/result`, or the result of a tool that failed; a forgotten one is named.
#[tokio::test]
async fn how_a_task_ended() {
    let (client, _old) = with_tasks(|_, seen| {
        let message = match seen.method() {
            "tasks/get" => seen.result(&shown("failed")),
            "tasks/result" => seen.error(7, "broken"),
            _ => return None,
        };
        Some(json_reply(200, &message))
    })
    .await;
    let error = client.call_tool("must", ()).await.expect_err("broken");
    assert!(matches!(&error, Error::Rejected(refusal) if refusal.error().code == 7), "{error:?}");
    let status = client.task(Task::new("must", "t-1")).status().await.expect("a status");
    assert_eq!((status.status, status.error.map(|error| error.code)), (TaskStatus::Failed, Some(7)));
    let (client, _old) = with_tasks(|_, seen| {
        let gone = seen.method() == "tasks/get";
        gone.then(|| json_reply(200, &seen.error(-32602, "Task not found")))
    })
    .await;
    let error = client.call_tool("must", ()).await.expect_err("forgotten");
    assert!(matches!(error, Error::Task(TaskError::Unknown { .. })), "{error:?}");
}

/// T26, Z2: rubbish is named; a task that says it asks and never does, and one that never ends, are given up.
#[tokio::test]
async fn servers_that_break_the_rules_are_named() {
    for look in [json!({}), json!({ "taskId": "t-2", "status": "working" }), {
        let mut other = shown("completed");
        other["taskId"] = json!("t-2");
        other
    }] {
        let (client, _old) = with_tasks(move |_, seen| {
            (seen.method() == "tasks/get").then(|| json_reply(200, &seen.result(&look)))
        })
        .await;
        let error = client.call_tool("must", ()).await.expect_err("rubbish");
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::MalformedResult(_))), "{error:?}");
    }
    let (client, old) = with_tasks(|_, seen| match seen.method() {
        "tasks/get" => Some(json_reply(200, &seen.result(&shown("input_required")))),
        "tasks/result" => Some(json_reply(200, &seen.error(-32602, "no"))),
        _ => None,
    })
    .await;
    let call = client.call_tool("must", ()).max_polling(Duration::from_millis(500));
    let error = call.await.expect_err("no end");
    assert!(matches!(error, Error::GaveUp(GaveUp::PolledTooLong { .. })), "{error:?}");
    assert!(count(&old, "tasks/get") < 50, "{}", count(&old, "tasks/get"));
}

/// T27: a session that is lost in the middle of a task is begun anew, and the task found in it.
#[tokio::test]
async fn a_task_outlives_its_session() {
    let looks = AtomicUsize::new(0);
    let (client, old) = with_tasks(move |_, seen| {
        let lost = seen.method() == "tasks/get" && looks.fetch_add(1, Ordering::SeqCst) == 1;
        if lost {
            return Some(json_reply(404, &seen.error(-32001, "Session not found")));
        }
        let working = seen.method() == "tasks/get" && looks.load(Ordering::SeqCst) == 1;
        working.then(|| json_reply(200, &seen.result(&shown("working"))))
    })
    .await;
    assert_eq!(text(&client.call_tool("must", ()).await.expect("a result")), "trained");
    assert_eq!((count(&old, "initialize"), count(&old, "tools/call")), (2, 1));
}
