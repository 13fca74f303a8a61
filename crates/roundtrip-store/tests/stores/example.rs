//! The example runs, and does what it says.

/// M6: two instances that share a ledger pay once.
#[tokio::test]
async fn ledger_postgres_pays_once() {
    let Some(site) = crate::support::PostgresSite::new().await else { return };
    let mut program = std::env::current_exe().expect("our own path");
    program.pop();
    program.pop();
    let mut example = tokio::process::Command::new(program.join("examples/ledger-postgres"));
    let said = example.env("DATABASE_URL", &site.url).output().await.expect("an example that runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(String::from_utf8_lossy(&said.stdout), "paid\npaid\npaid\n1 payment\n");
}
