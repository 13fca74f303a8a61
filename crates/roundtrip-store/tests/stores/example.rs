//! The examples run, and do what they say.

use tokio::process::Command;

/// The command that runs an example.
fn example(name: &str) -> Command {
    let mut program = std::env::current_exe().expect("our own path");
    program.pop();
    program.pop();
    Command::new(program.join("examples").join(name))
}

/// T15: a process that serves nothing works on the tasks of one that does not work.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn worker_works_for_another_process() {
    let site = crate::support::SqliteSite::new();
    let mut worker = example("worker");
    let _worker = worker.arg("work").arg(site.file()).kill_on_drop(true).spawn().expect("a worker");
    let said = example("worker").arg("call").arg(site.file()).output().await.expect("an example that runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(String::from_utf8_lossy(&said.stdout), "42 rows\n");
}

/// M6: two instances that share a ledger pay once.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn ledger_postgres_pays_once() {
    let Some(site) = crate::support::PostgresSite::new().await else { return };
    let said = example("ledger-postgres")
        .env("DATABASE_URL", &site.url)
        .output()
        .await
        .expect("an example that runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(String::from_utf8_lossy(&said.stdout), "paid\npaid\npaid\n1 payment\n");
}
