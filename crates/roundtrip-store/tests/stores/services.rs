//! Services that share a database, and rows that are not tasks.

use std::time::Duration;

use roundtrip::seal::Digest;
use roundtrip::task::{Millis, NewTask, TaskId, TaskKey, TaskStore, Waiting};
use roundtrip::{Client, Server, Started, Tasks, Tool, When};

use crate::support::tasks::{HOUR, ada, digest, id, key, pair, shop, take, task};
use crate::support::{TaskSite, instance};

on_each_store_of_tasks! {
    services_do_not_run_each_others_tasks
    services_do_not_see_each_others_tasks
    a_row_that_is_no_task_is_refused
    many_accounts_are_found
}

/// T5: servers that share a database run, show and count their own tasks, though they have a tool of the same name and the same ring.
async fn services_do_not_run_each_others_tasks(site: &impl TaskSite) {
    let server = async |name: &'static str, at_once| {
        let tasks = Tasks::new(instance(site).await).at_once(at_once);
        let report = Tool::new("report", move || async move { name }).task(When::Required);
        Server::new(name, "1.0.0").tool(report).tasks(tasks)
    };
    let billing = Client::in_process(server("billing", 1).await).expect("a server");
    let payroll = Client::in_process(server("payroll", 16).await).expect("a server");
    let mut tasks = Vec::new();
    for _ in 0..30 {
        let Started::Task(task) = billing.call_tool("report", ()).into_task().await.expect("a task") else {
            panic!("a task, not a result");
        };
        tasks.push(task);
    }
    for task in tasks {
        let id = task.id().to_owned();
        let stolen = payroll.task(roundtrip::Task::new("report", &*id)).status().await;
        assert!(stolen.is_err(), "{stolen:?}");
        let mut task = billing.task(task);
        let waiting = tokio::time::timeout(Duration::from_secs(30), task.wait());
        assert_eq!(waiting.await.expect("in time").expect("a result").text(), "billing");
    }
}

/// T5: a task store finds, counts, lists, takes and removes by service.
async fn services_do_not_see_each_others_tasks(site: &impl TaskSite) {
    let (store, other) = (instance(site).await, digest(9));
    store.create(NewTask { expires: Some(Millis(1)), ..task(1) }, 1, Millis(1)).await.expect("a task");
    let theirs = TaskKey { service: other, ..key(2) };
    let new = NewTask { key: theirs.clone(), expires: Some(Millis(1)), ..task(2) };
    store.create(new, 1, Millis(1)).await.expect("accounts are counted by service");
    for (service, own) in [(shop(), key(1)), (other, theirs)] {
        let listed = store.list(&service, &ada(), None, 9).await.expect("tasks");
        assert_eq!(listed.iter().map(|(id, _)| id).collect::<Vec<_>>(), [&own.id]);
        let expired = store.expired(&service, Millis(9), 9).await.expect("tasks");
        assert_eq!(expired.iter().map(|task| &task.key).collect::<Vec<_>>(), [&own]);
        let waiting = store.waiting(&service, &[pair(1).kind], None, 9, Millis(9)).await.expect("accounts");
        assert_eq!(waiting, [pair(1)]);
    }
    assert_eq!(take(&store, 9, HOUR).await.iter().map(|task| &task.key).collect::<Vec<_>>(), [&key(1)]);
    store.remove(&other, &[(id(1), 1), (id(2), 0)]).await.expect("an answer");
    assert!(store.read(&key(1), Millis(9)).await.expect("an answer").is_some(), "it is not theirs");
    // PostgreSQL keeps a count of none until a task of the account that has ended is removed.
    assert_eq!(
        site.bytes("SELECT service FROM roundtrip_task_live WHERE live > 0").await,
        [shop().as_bytes().to_vec()]
    );
}

/// K7: a row that is not a task's is refused by the database, so that it can stop no worker.
async fn a_row_that_is_no_task_is_refused(site: &impl TaskSite) {
    let store = instance(site).await;
    // As it is stored, its work is not as long as a digest.
    let work = "work of another length than a digest".into();
    store.create(NewTask { work, ..task(1) }, 1, Millis(1)).await.expect("a task");
    for change in [
        "UPDATE roundtrip_task SET id = 'not hexadecimal'",
        "UPDATE roundtrip_task SET id = upper(replace(id, '0', 'a'))",
        "UPDATE roundtrip_task SET id = id || '0'",
        "UPDATE roundtrip_task SET owner = work",
        "UPDATE roundtrip_task SET account = work",
        "UPDATE roundtrip_task SET service = work",
        "UPDATE roundtrip_task SET kind = work",
        "UPDATE roundtrip_task SET kind = NULL",
        "UPDATE roundtrip_task SET service = NULL",
        "UPDATE roundtrip_task_chunks SET stream = 3",
        "UPDATE roundtrip_task_chunks SET number = -1",
    ] {
        assert!(site.is_refused(change).await.is_some(), "{change}");
    }
    assert_eq!(take(&store, 9, HOUR).await.len(), 1);
}

/// K7: accounts are found in order, and those whose tasks are not due hide none, though they are more than one exchange looks at.
async fn many_accounts_are_found(site: &impl TaskSite) {
    let store = instance(site).await;
    let account = |number: u128| Digest::from_bytes(number.to_be_bytes());
    for number in 0..600_u128 {
        let id = TaskId::new(number.to_be_bytes());
        // Every hundredth is free, and every hundredth had a worker that is gone.
        let lease = match number % 100 {
            99 => None,
            49 => Some(Duration::ZERO),
            _ => Some(HOUR),
        };
        let new = NewTask { key: TaskKey { id, ..key(1) }, account: account(number), lease, ..task(1) };
        store.create(new, 1, Millis(1)).await.expect("a task");
    }
    let due = |numbers: &[u128]| -> Vec<Waiting> {
        numbers.iter().map(|number| Waiting { account: account(*number), ..pair(1) }).collect()
    };
    let find = async |after, most| {
        store.waiting(&shop(), &[pair(1).kind], after, most, Millis(9)).await.expect("accounts")
    };
    let all = find(None, 99).await;
    assert_eq!(all, due(&[49, 99, 149, 199, 249, 299, 349, 399, 449, 499, 549, 599]));
    assert_eq!(find(Some(all[3]), 2).await, due(&[249, 299]));
    assert_eq!(find(Some(all[11]), 2).await, []);
}
