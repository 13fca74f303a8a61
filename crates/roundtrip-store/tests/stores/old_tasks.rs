//! Tasks that the release before has stored, which knew no services (K5).

use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::{Keyring, RecordLabel};
use roundtrip::task::{AdoptedTask, Millis, OrphanTask, TaskId, TaskKey, TaskOwner, TaskStore};
use roundtrip::{Ask, Client, FormRequest, Server, Task, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};

use crate::support::tasks::{HOUR, ada, digest, id, pair, ring, sealed, shop, take};
use crate::support::{OldTask, TaskSite, instance};

on_each_store_of_tasks! {
    orphans_are_opened_and_adopted
    an_orphan_is_adopted_once
    orphans_that_cannot_be_opened_hide_no_other
    a_server_adopts_the_tasks_of_its_tools
    an_instance_of_before_can_do_nothing
    rows_that_are_no_tasks_are_left_out
}

/// Seals as the release before did: bound to the owner and the identifier.
fn sealed_before(key: u8, owner: &TaskOwner, id: &TaskId, kind: &str, content: &[u8]) -> Vec<u8> {
    let place = [&owner.as_bytes()[..], id.as_str().as_bytes()].concat();
    let label = RecordLabel { kind, id: &place };
    Keyring::from(ring(&[key])).seal_record(label, content, [7; 24]).expect("a record")
}

/// A task as the release before has stored it.
fn old_task(key: u8, number: u8, owner: TaskOwner, (view, work): (&[u8], &[u8])) -> OldTask {
    let id = id(number);
    OldTask {
        view: sealed_before(key, &owner, &id, "task view", view),
        work: sealed_before(key, &owner, &id, "task work", work),
        id: id.as_str().to_owned(),
        owner: owner.as_bytes().to_vec(),
        account: pair(1).account.as_bytes().to_vec(),
        live: true,
        due: Some(1),
    }
}

/// Three tasks of Ada's: one that waits for an answer, one that is due, and one that has ended.
async fn three(site: &impl TaskSite) {
    let task =
        |number, view: &str, work: &str| old_task(1, number, ada(), (view.as_bytes(), work.as_bytes()));
    let waits = OldTask { due: None, ..task(1, "view 1", "work 1") };
    let ended = OldTask { due: None, live: false, ..task(3, "view 3", "work 3") };
    site.old_release(&[waits, task(2, "view 2", "work 2"), ended]).await;
}

fn adopted(orphan: &OrphanTask, is_live: bool) -> AdoptedTask {
    let piece = |text: &'static str| Bytes::from_static(text.as_bytes());
    AdoptedTask {
        key: TaskKey { service: shop(), owner: orphan.owner, id: orphan.id.clone() },
        version: orphan.version,
        kind: pair(1).kind,
        call: if is_live { piece("call") } else { Bytes::new() },
        view: piece("new view"),
        work: piece("new work"),
        result: (!is_live).then(|| piece("result")),
        journal: is_live.then(|| piece("journal")),
        parts: (!is_live).then(|| piece("parts")),
    }
}

/// K5: tasks of the release before are found and opened; a service that adopts them works on them, counts them, and shows them.
async fn orphans_are_opened_and_adopted(site: &impl TaskSite) {
    three(site).await;
    let store = sealed(site, &[2, 1]).await;
    let orphans = store.orphans(None, 2).await.expect("orphans");
    let texts = |orphans: &[OrphanTask]| {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        orphans
            .iter()
            .map(|orphan| format!("{} {}", text(&orphan.view), text(&orphan.work)))
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&orphans), ["view 1 work 1", "view 2 work 2"]);
    let rest = store.orphans(Some(&orphans[1].id), 2).await.expect("orphans");
    assert_eq!(texts(&rest), ["view 3 work 3"]);
    assert!(store.orphans(Some(&rest[0].id), 2).await.expect("none").is_empty());
    assert!(take(&store, 9, HOUR).await.is_empty(), "nobody works on them yet");
    assert!(site.bytes("SELECT account FROM roundtrip_task_live").await.is_empty(), "nor are they counted");

    for (orphan, is_live) in orphans.iter().chain(&rest).zip([true, true, false]) {
        assert!(store.adopt(adopted(orphan, is_live)).await.expect("an answer"));
    }
    assert!(store.orphans(None, 9).await.expect("none").is_empty());
    assert_eq!(site.bytes("SELECT account FROM roundtrip_task_live WHERE live = 2").await.len(), 1);
    let new = sealed(site, &[2]).await;
    let key = |number| TaskKey { service: shop(), owner: ada(), id: id(number) };
    let taken = take(&new, 9, HOUR).await;
    assert_eq!(taken.iter().map(|task| &task.key).collect::<Vec<_>>(), [&key(2)], "the one that was due");
    let work = new.load(&key(2)).await.expect("work").expect("work");
    assert_eq!((&work.call[..], &work.journal[..]), (&b"call"[..], &["journal".into()][..]));
    let ended = new.view(&key(3), true, Millis(9)).await.expect("a view").expect("a view");
    assert_eq!(
        (ended.view, ended.result, ended.is_waiting),
        ("new view".into(), Some("result".into()), false)
    );
    assert_eq!(new.parts(&key(3), 0, 9).await.expect("parts")[0].bytes, "parts");
    assert!(new.load(&key(3)).await.expect("an answer").is_none());
    assert_eq!(new.list(&shop(), &ada(), None, 9).await.expect("tasks").len(), 3);
}

/// K5: of services that adopt a task at once, one has it; an owner finds only its own.
async fn an_orphan_is_adopted_once(site: &impl TaskSite) {
    three(site).await;
    let store = sealed(site, &[1]).await;
    assert!(store.orphan(&TaskOwner::new(Some("eve")), &id(2)).await.expect("an answer").is_none());
    let orphan = store.orphan(&ada(), &id(2)).await.expect("an answer").expect("an orphan");
    let other = AdoptedTask {
        key: TaskKey { service: digest(9), owner: ada(), id: id(2) },
        ..adopted(&orphan, true)
    };
    assert!(store.adopt(adopted(&orphan, true)).await.expect("an answer"));
    assert!(!store.adopt(other).await.expect("an answer"), "another has it");
    assert!(!store.adopt(adopted(&orphan, true)).await.expect("an answer"), "it is not an orphan any more");
    assert!(store.orphan(&ada(), &id(2)).await.expect("an answer").is_none());
    let work = store.load(&TaskKey { service: shop(), owner: ada(), id: id(2) }).await.expect("work");
    assert_eq!(work.expect("work").journal.len(), 1);
}

/// K5, K6: orphans whose key is gone, even a whole page of them, keep no other from being found, and stay.
async fn orphans_that_cannot_be_opened_hide_no_other(site: &impl TaskSite) {
    let old = |key, number| old_task(key, number, ada(), (b"view", b"work"));
    site.old_release(&[old(9, 1), old(9, 2), old(1, 3), old(9, 4)]).await;
    let store = sealed(site, &[1]).await;
    let found = store.orphans(None, 2).await.expect("orphans");
    assert_eq!(found.iter().map(|orphan| &orphan.id).collect::<Vec<_>>(), [&id(3)]);
    let error = store.orphan(&ada(), &id(1)).await.expect_err("its key is gone");
    assert!(matches!(error, roundtrip::task::TaskStoreError::Unreadable(_)), "{error:?}");
    assert_eq!(sealed(site, &[1, 9]).await.orphans(None, 9).await.expect("orphans").len(), 4, "none is lost");
}

/// Bytes behind their length.
fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).expect("a length").to_be_bytes()[..], bytes].concat()
}

/// View and work of a task of the tool `job`, as the release before wrote them.
fn old_bytes(number: u8, status: &str, more: &Value, parts: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (now, flow) = (1_790_000_000_000_u64, [number; 16]);
    let mut record = json!({
        "tool": "job", "status": status, "message": null, "created": now, "updated": now, "ttl": null,
        "call": { "params": { "name": "job", "arguments": {} }, "principal": null },
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
    (view, prefixed(record.to_string().as_bytes()))
}

/// K5: a server adopts the tasks of its tools that the release before has stored: it runs those that are due, asks what was asked,
/// and shows the results of those that have ended.
async fn a_server_adopts_the_tasks_of_its_tools(site: &impl TaskSite) {
    let question = json!([{ "wire": "sure", "key": "sure", "request": { "method": "elicitation/create", "params": {
        "mode": "form", "message": "Go on?", "requestedSchema": {
            "type": "object", "properties": { "confirm": { "type": "boolean" } }, "required": ["confirm"] } } } }]);
    let result = json!({ "content": [{ "type": "text", "text": "was done" }] });
    let parts = prefixed(br#"{"type":"text","text":"a part"}"#);
    let tasks = [
        (1, "working", json!({}), &[][..], Some(1), true),
        (2, "completed", json!({ "result": result, "call": null }), &parts, None, false),
        (3, "input_required", json!({ "questions": question, "rounds": 1 }), &[], None, true),
    ];
    let tasks = tasks.map(|(number, status, more, parts, due, live)| {
        let (view, work) = old_bytes(number, status, &more, parts);
        OldTask { due, live, ..old_task(1, number, TaskOwner::new(None), (&view, &work)) }
    });
    site.old_release(&tasks).await;
    let job = async |ask: Ask| {
        let sure = ask.confirm("sure", "Go on?").await?;
        Ok::<_, ToolError>(format!("done: {sure}"))
    };
    let tasks = Tasks::new(sealed(site, &[1]).await);
    let server = Server::new("jobs", "1.0.0").tool(Tool::new("job", job).task(When::Required)).tasks(tasks);
    let client = Client::in_process(server).expect("a server");
    let client = client.on_form(async |form: FormRequest| form.accept(json!({ "confirm": true })));
    for (number, expected) in [(2, "was done"), (1, "done: true"), (3, "done: true")] {
        let task = Task::new("job", id(number).as_str());
        let mut task = client.task(task);
        let waiting = tokio::time::timeout(Duration::from_secs(30), task.wait());
        let result = waiting.await.expect("in time").expect("a result");
        assert_eq!(result.text(), expected, "{number}");
    }
}

/// K5: statements of the release before fail once the tables have changed: an instance that still runs takes nothing and writes
/// nothing.
async fn an_instance_of_before_can_do_nothing(site: &impl TaskSite) {
    three(site).await;
    assert!(
        site.is_refused("SELECT id FROM roundtrip_tasks WHERE due <= 9 ORDER BY due LIMIT 9").await.is_none()
    );
    drop(instance(site).await);
    for statement in [
        "SELECT id FROM roundtrip_tasks WHERE due <= 9 ORDER BY due LIMIT 9",
        "UPDATE roundtrip_tasks SET due = 9, version = version + 1, fence = fence + 1",
        "UPDATE roundtrip_tasks SET version = version + 1, fence = 1, due = NULL",
        "INSERT INTO roundtrip_tasks_live (account, live) VALUES ('', 1)",
        "DELETE FROM roundtrip_tasks",
    ] {
        let refused = site.is_refused(statement).await.expect(statement);
        assert!(refused.contains("roundtrip_tasks"), "{refused}");
    }
    assert_eq!(
        site.bytes("SELECT view FROM roundtrip_task WHERE version = 0").await.len(),
        3,
        "all are as they were"
    );
}

/// K5: rows that are no tasks do not stop the move to the new tables, and are not there afterwards.
async fn rows_that_are_no_tasks_are_left_out(site: &impl TaskSite) {
    let good = || old_task(1, 1, ada(), (b"view", b"work"));
    let bad = [
        OldTask { id: "not hexadecimal".to_owned(), ..good() },
        OldTask { id: id(2).as_str().to_uppercase() + "Z", ..good() },
        OldTask { id: id(3).as_str().to_owned(), owner: b"short".to_vec(), ..good() },
        OldTask { id: id(4).as_str().to_owned(), account: Vec::new(), ..good() },
        good(),
    ];
    site.old_release(&bad).await;
    let store = sealed(site, &[1]).await;
    assert_eq!(store.orphans(None, 9).await.expect("orphans").len(), 1);
    assert_eq!(site.bytes("SELECT view FROM roundtrip_task").await.len(), 1);
}

/// K5: statements that an instance of before has prepared on a connection fail too.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn prepared_statements_of_before_fail_on_postgres() {
    let Some(site) = crate::support::PostgresSite::new().await else { return };
    three(&site).await;
    let mut before = site.connect().await;
    let take = "UPDATE roundtrip_tasks SET fence = fence + 1 WHERE due <= 9 RETURNING id";
    assert_eq!(sqlx::query(take).fetch_all(&mut before).await.expect("prepared").len(), 1);
    drop(instance(&site).await);
    let refused = sqlx::query(take).fetch_all(&mut before).await.expect_err("the table is gone");
    assert!(refused.to_string().contains("roundtrip_tasks"), "{refused}");
}

/// K5: statements that an instance of before has prepared on a connection fail too.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn prepared_statements_of_before_fail_on_sqlite() {
    let site = crate::support::SqliteSite::new();
    three(&site).await;
    let before = site.connect();
    let mut take =
        before.prepare("UPDATE roundtrip_tasks SET fence = fence + 1 WHERE due <= 9").expect("prepared");
    assert_eq!(take.execute(()).expect("a task"), 1);
    drop(instance(&site).await);
    let refused = take.execute(()).expect_err("the table is gone");
    assert!(refused.to_string().contains("roundtrip_tasks"), "{refused}");
}
