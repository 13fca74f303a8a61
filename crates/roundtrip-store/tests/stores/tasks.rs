//! Stores keep the contract of tasks, and what they promise beyond it.

use bytes::Bytes;
use roundtrip::Keyring;
use roundtrip::seal::Digest;
use roundtrip::task::{Millis, StoredTask, TaskId, TaskOwner, TaskStore, TaskStoreError};
use roundtrip::testing::stores;
use roundtrip_store::StoreError;

use crate::support::{Site, TaskSite, instance};

on_each_store_of_tasks! {
    a_store_keeps_the_contract_of_tasks
    tasks_outlive_their_instances
    a_ledger_and_tasks_share_a_store
    tasks_are_sealed_at_rest
    a_task_opens_for_its_owner_alone
    a_task_is_sealed_anew_with_the_first_key
    a_task_without_its_key_is_not_lost
    an_expired_task_without_its_key_is_found
    a_task_without_its_key_hides_no_other
    no_account_is_counted_for_ever
}

fn ring(keys: &[u8]) -> Keyring {
    let keys: Vec<String> = keys.iter().map(|key| format!("{key:02x}").repeat(32)).collect();
    keys.join("\n").parse().expect("keys")
}

async fn sealed<S: Site>(site: &S, keys: &[u8]) -> S::Store {
    site.open(|opening| opening.sealed_by(ring(keys))).await.expect("a store")
}

fn ada() -> TaskOwner {
    TaskOwner::new(Some("ada"))
}

fn id(number: u8) -> TaskId {
    TaskId::new([number; 16])
}

/// A task that is due, and has secrets.
fn task(number: u8) -> StoredTask {
    StoredTask {
        id: id(number),
        owner: ada(),
        account: Digest::of("account", &[b"ada"]),
        version: 0,
        fence: 0,
        is_live: true,
        due: Some(Millis(1)),
        expires: Some(Millis(1)),
        view: Bytes::from_static(b"the secret view"),
        work: Bytes::from_static(b"the secret work"),
    }
}

fn cause(error: &TaskStoreError) -> &StoreError {
    std::error::Error::source(error).and_then(|cause| cause.downcast_ref()).expect("an error of the store")
}

async fn work_of(store: &impl TaskStore, number: u8) -> Result<Bytes, TaskStoreError> {
    Ok(store.read(&ada(), &id(number)).await?.expect("a task").work)
}

const STORED: &str = "SELECT view FROM roundtrip_tasks UNION ALL SELECT work FROM roundtrip_tasks";

/// K1, K3: the contract of stores of tasks.
async fn a_store_keeps_the_contract_of_tasks(site: &impl TaskSite) {
    let (one, other) = (instance(site).await, instance(site).await);
    stores::tasks(one, other).await.expect("the contract");
    stores::tasks(sealed(site, &[1]).await, sealed(site, &[1]).await).await.expect("the contract, sealed");
}

/// K2, K3: what was stored is there when every instance has gone and another comes.
async fn tasks_outlive_their_instances(site: &impl TaskSite) {
    let first = instance(site).await;
    first.create(task(1), 1).await.expect("a task");
    drop(first);
    assert_eq!(work_of(&instance(site).await, 1).await.expect("a task"), "the secret work");
}

/// K1: one store is the ledger and has the tasks.
async fn a_ledger_and_tasks_share_a_store(site: &impl TaskSite) {
    let store = instance(site).await;
    crate::support::record(&store, &crate::support::key(1), "reply").await;
    store.create(task(1), 1).await.expect("a task");
    assert_eq!(crate::support::replay(&store, &crate::support::key(1)).await, "reply");
    assert_eq!(work_of(&store, 1).await.expect("a task"), "the secret work");
}

/// K6: nothing of a task can be read without the ring, or planted.
async fn tasks_are_sealed_at_rest(site: &impl TaskSite) {
    let store = sealed(site, &[1]).await;
    store.create(task(1), 1).await.expect("a task");
    let stored = site.bytes(STORED).await;
    assert_eq!(stored.len(), 2);
    for bytes in stored {
        assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
    }
    assert_eq!(work_of(&sealed(site, &[1]).await, 1).await.expect("a task"), "the secret work");
    let error = work_of(&instance(site).await, 1).await.expect_err("it has no ring");
    assert!(matches!(cause(&error), StoreError::Sealed), "{error:?}");
    instance(site).await.create(task(2), 2).await.expect("a task");
    let error = work_of(&store, 2).await.expect_err("it is not sealed");
    assert!(matches!(cause(&error), StoreError::NotSealed), "{error:?}");
}

/// K6, T5: bytes that were moved to another task, another column or another owner do not open.
async fn a_task_opens_for_its_owner_alone(site: &impl TaskSite) {
    let store = sealed(site, &[1]).await;
    for number in 1..=2 {
        store.create(task(number), 2).await.expect("a task");
    }
    site.execute(
        "UPDATE roundtrip_tasks SET work = (SELECT o.work FROM roundtrip_tasks o WHERE o.id <> roundtrip_tasks.id)",
    )
    .await;
    let error = work_of(&store, 1).await.expect_err("it is another's work");
    assert!(matches!(cause(&error), StoreError::Record(_)), "{error:?}");
    site.execute("UPDATE roundtrip_tasks SET view = work").await;
    let error = store.view(&ada(), &id(1)).await.expect_err("it is not a view");
    assert!(matches!(cause(&error), StoreError::Record(_)), "{error:?}");

    let (eve, evil) = (TaskOwner::new(Some("eve")), task(3));
    store.create(evil, 3).await.expect("a task");
    store.create(StoredTask { owner: eve, ..task(4) }, 4).await.expect("a task");
    site.execute(
        "UPDATE roundtrip_tasks SET owner = \
         (SELECT o.owner FROM roundtrip_tasks o WHERE o.id = '04040404040404040404040404040404')",
    )
    .await;
    let error = store.view(&eve, &id(3)).await.expect_err("it is not eve's");
    assert!(matches!(cause(&error), StoreError::Record(_)), "{error:?}");
}

/// K6: a task that is read with an old key is sealed anew with the first one.
async fn a_task_is_sealed_anew_with_the_first_key(site: &impl TaskSite) {
    let old = sealed(site, &[1]).await;
    old.create(task(1), 1).await.expect("a task");
    let before = site.bytes(STORED).await;
    let rotating = sealed(site, &[2, 1]).await;
    assert_eq!(work_of(&rotating, 1).await.expect("a task"), "the secret work");
    while site.bytes(STORED).await.iter().any(|bytes| before.contains(bytes)) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let new = sealed(site, &[2]).await;
    assert_eq!(work_of(&new, 1).await.expect("it was sealed anew"), "the secret work");
    assert_eq!(new.view(&ada(), &id(1)).await.expect("a view").expect("a task"), "the secret view");
}

/// K6: a key that was retired too early is named; its tasks keep no others from being worked on, and are there when it is back.
async fn a_task_without_its_key_is_not_lost(site: &impl TaskSite) {
    let old = sealed(site, &[1]).await;
    old.create(task(1), 2).await.expect("a task");
    let new = sealed(site, &[2]).await;
    new.create(StoredTask { due: Some(Millis(2)), ..task(2) }, 2).await.expect("a task");
    let error = work_of(&new, 1).await.expect_err("its key is gone");
    assert!(matches!(cause(&error), StoreError::KeyRetired { .. }), "{error:?}");
    let taken = new.take(Millis(5), Millis(10), 2).await.expect("tasks");
    assert_eq!(taken.iter().map(|task| task.id.clone()).collect::<Vec<_>>(), [id(2)]);
    assert!(old.take(Millis(9), Millis(20), 2).await.expect("tasks").is_empty(), "its lease");
    let back = sealed(site, &[2, 1]).await.take(Millis(10), Millis(20), 2).await.expect("tasks");
    assert_eq!(back.len(), 2, "nothing is lost");
}

/// K6, K7: tasks that have expired and cannot be opened are found, so that they can be removed.
async fn an_expired_task_without_its_key_is_found(site: &impl TaskSite) {
    sealed(site, &[1]).await.create(task(1), 1).await.expect("a task");
    let new = sealed(site, &[2]).await;
    let expired = new.expired(Millis(5), 1).await.expect("tasks");
    assert_eq!((expired.len(), expired[0].work.len(), expired[0].view.len()), (1, 0, 0));
    new.remove(&id(1), expired[0].version).await.expect("it goes");
    assert!(new.expired(Millis(5), 1).await.expect("tasks").is_empty());
}

/// K6: a task whose key was retired too early is listed without its view, in its place, and hides no other.
async fn a_task_without_its_key_hides_no_other(site: &impl TaskSite) {
    let (old, new) = (sealed(site, &[1]).await, sealed(site, &[2]).await);
    new.create(task(1), 3).await.expect("a task");
    old.create(task(2), 3).await.expect("a task");
    new.create(task(3), 3).await.expect("a task");
    let view = Bytes::from_static(b"the secret view");
    let listed = new.list(&ada(), None, 3).await.expect("tasks");
    assert_eq!(listed, [(id(1), view.clone()), (id(2), Bytes::new()), (id(3), view)]);
}

/// K7: the count of an account goes with its tasks.
async fn no_account_is_counted_for_ever(site: &impl TaskSite) {
    let store = instance(site).await;
    store.create(task(1), 1).await.expect("a task");
    assert_eq!(site.bytes("SELECT account FROM roundtrip_tasks_live").await.len(), 1);
    assert!(store.write(StoredTask { is_live: false, ..task(1) }).await.expect("a change"));
    store.remove(&id(1), 1).await.expect("it goes");
    assert!(site.bytes("SELECT account FROM roundtrip_tasks_live").await.is_empty());
}

/// K7: PostgreSQL finds what a statement needs by an index, beside thousands of tasks.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_finds_tasks_by_an_index() {
    use sqlx::{AssertSqlSafe, Row as _};
    let Some(site) = crate::support::PostgresSite::new().await else { return };
    drop(instance(&site).await);
    let mut database = site.connect().await;
    let fill = "INSERT INTO roundtrip_tasks SELECT md5(n::text), decode(md5((n % 1000)::text), 'hex'), '', 0, 0, true, \
                n::bigint * 1000, n::bigint * 1000, '', '' FROM generate_series(1, 20000) n; \
                ANALYZE roundtrip_tasks; SET plan_cache_mode = force_generic_plan";
    sqlx::raw_sql(fill).execute(&mut database).await.expect("tasks");
    for (name, statement, arguments) in [
        (
            "create_",
            include_str!("../../src/postgres/sql/task-create.sql"),
            "'', '', '', 0, 0, true, 1, 1, '', '', 1",
        ),
        ("write", include_str!("../../src/postgres/sql/task-write.sql"), "'', 0, 0, true, 1, 1, '', ''"),
        ("take", include_str!("../../src/postgres/sql/task-take.sql"), "1, 1, 16"),
        ("remove", include_str!("../../src/postgres/sql/task-remove.sql"), "'', 0"),
        ("expired", "SELECT id FROM roundtrip_tasks WHERE expires <= $1 ORDER BY expires LIMIT $2", "1, 100"),
        (
            "list",
            "SELECT id FROM roundtrip_tasks WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3",
            "'', '', 10",
        ),
    ] {
        let prepare = AssertSqlSafe(format!("PREPARE {name} AS {statement}"));
        sqlx::raw_sql(prepare).execute(&mut database).await.expect("a statement");
        let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE {name}({arguments})"));
        let plan = sqlx::raw_sql(explain).fetch_all(&mut database).await.expect("a plan");
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains("roundtrip_tasks_"), "{plan}");
        assert!(!plan.contains("Seq Scan on roundtrip_tasks "), "{plan}");
    }
}
