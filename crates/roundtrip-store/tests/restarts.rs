//! Databases that are restarted in mid-call. Tests on the same servers would notice: these run while no other does (.config/nextest.toml).

#![cfg(all(unix, any(feature = "postgres", feature = "redis")))]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

#[expect(dead_code, unused_imports, unused_macros, reason = "most of it is for the tests without restarts")]
#[path = "stores/support/mod.rs"]
mod support;

use support::{Site, instance, key, later, record, replay, run};

/// K3, K4: a restart between claim and record loses nothing, and the next round runs.
async fn a_restart_in_mid_call_is_survived<S: Site>(site: &S, restart: impl AsyncFnOnce()) {
    let store = instance(site).await;
    record(&store, &key(1), "before").await;
    let guard = run(&store, &key(2)).await;
    restart().await;
    guard.record("during".into(), later()).await.expect("a record");
    record(&store, &key(3), "after").await;
    let other = instance(site).await;
    for (number, reply) in [(1, "before"), (2, "during"), (3, "after")] {
        assert_eq!(replay(&other, &key(number)).await, reply);
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_is_restarted_in_mid_call() {
    let Some(site) = support::PostgresSite::new().await else { return };
    let Some(file) = support::address("ROUNDTRIP_TEST_POSTGRES_PID_FILE") else { return };
    let started = async || {
        let started = sqlx::query_scalar::<_, String>("SELECT pg_postmaster_start_time()::text");
        started.fetch_one(&mut site.connect().await).await.expect("a time")
    };
    let restart = async || {
        let text = std::fs::read_to_string(&file).expect("the process id of the server");
        let id = text.lines().next().expect("a line");
        let asked = std::process::Command::new("kill").args(["-INT", id]).status().expect("`kill`");
        assert!(asked.success());
    };
    let before = started().await;
    a_restart_in_mid_call_is_survived(&site, restart).await;
    let between = started().await;
    assert_ne!(between, before, "it was restarted");
    a_restart_in_a_task_is_survived(&site, restart).await;
    assert_ne!(started().await, between, "it was restarted again");
}

/// K3, T7: a task goes on when its database was restarted while it ran, and a worker still hears of changes elsewhere: its lease has
/// an hour to go.
#[cfg(feature = "postgres")]
async fn a_restart_in_a_task_is_survived(site: &support::PostgresSite, restart: impl AsyncFnOnce()) {
    use std::sync::Arc;
    use std::time::Duration;

    use roundtrip::client::{Started, TaskError};
    use roundtrip::{Ask, Client, Error, Server, Tasks, Tool, ToolError, When};
    use tokio::sync::Notify;

    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let noted = (Arc::clone(&begun), Arc::clone(&go_on));
    let job = move |ask: Ask| {
        let (begun, go_on) = noted.clone();
        async move {
            begun.notify_one();
            go_on.notified().await;
            ask.remember("step", async || ()).await?;
            begun.notify_one();
            go_on.notified().await;
            Ok::<_, ToolError>("done")
        }
    };
    let server = async |at_once| {
        let tasks = Tasks::new(instance(site).await).at_once(at_once).lease(Duration::from_secs(3600));
        Server::new("jobs", "1").tool(Tool::new("job", job.clone()).task(When::Required)).tasks(tasks)
    };
    let _worker = server(1).await.build().expect("a worker");
    let client = Client::in_process(server(0).await).expect("a server");
    let start = async || match client.call_tool("job", ()).into_task().await.expect("a task") {
        Started::Task(task) => client.task(task),
        Started::Done(result) => panic!("a task, not {result:?}"),
    };
    let mut task = start().await;
    begun.notified().await;
    restart().await;
    go_on.notify_one();
    begun.notified().await;
    go_on.notify_one();
    assert_eq!(task.wait().await.expect("a result").text(), "done");
    let mut task = start().await;
    begun.notified().await;
    task.cancel().await.expect("heard");
    assert!(matches!(task.wait().await, Err(Error::Task(TaskError::Cancelled { .. }))));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn redis_is_restarted_in_mid_call() {
    let Some(site) = support::RedisSite::new() else { return };
    let run = async || {
        let info: String = redis::cmd("INFO").query_async(&mut site.connect().await).await.expect("a text");
        info.lines().find(|line| line.starts_with("run_id:")).expect("an id").to_owned()
    };
    let before = run().await;
    a_restart_in_mid_call_is_survived(&site, async || {
        let mut connection = site.connect().await;
        // The connection ends before an answer.
        let _: Result<(), _> = redis::cmd("SHUTDOWN").query_async(&mut connection).await;
    })
    .await;
    assert_ne!(run().await, before, "it was restarted");
}
