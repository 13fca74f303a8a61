//! Databases that go away for a while, and connections that break.

use std::time::{Duration, Instant};

use roundtrip_store::StoreError;

use crate::support::{Proxy, Site, cause, claim, instance, key, later, record, replay, run};

through_a_proxy! {
    a_round_costs_one_exchange_before_and_one_after
    a_database_that_comes_back_is_waited_for
    a_lost_answer_changes_nothing
    a_reply_is_recorded_once_the_database_is_back
}

/// M6: a claim is one exchange, a record is one, and a replay is one.
async fn a_round_costs_one_exchange_before_and_one_after<S: Site>(_: &S, through: &S, proxy: &Proxy) {
    let store = instance(through).await;
    // The first time, the database learns the statements.
    record(&store, &key(1), "first").await;
    replay(&store, &key(1)).await;
    let before = proxy.exchanges();
    let guard = run(&store, &key(2)).await;
    assert_eq!(proxy.exchanges() - before, 1, "the claim");
    guard.record("reply".into(), later()).await.expect("a record");
    assert_eq!(proxy.exchanges() - before, 2, "the record");
    replay(&store, &key(2)).await;
    assert_eq!(proxy.exchanges() - before, 3, "the replay");
}

/// K3: a database that is away for a moment costs time, and nothing else: before a claim, and between claim and record.
async fn a_database_that_comes_back_is_waited_for<S: Site>(site: &S, through: &S, proxy: &Proxy) {
    let store = instance(through).await;
    let away_for = async |time| {
        proxy.go_away().await;
        let proxy = proxy.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            proxy.come_back();
        });
    };
    away_for(Duration::from_millis(700)).await;
    let guard = run(&store, &key(1)).await;
    away_for(Duration::from_millis(700)).await;
    guard.record("reply".into(), later()).await.expect("a record");
    assert_eq!(replay(&instance(site).await, &key(1)).await, "reply");
}

/// K3: a statement whose answer was lost is sent again, and has happened once.
async fn a_lost_answer_changes_nothing<S: Site>(site: &S, through: &S, proxy: &Proxy) {
    let (store, other) = (instance(through).await, instance(site).await);
    record(&store, &key(1), "warm").await;
    proxy.lose_an_answer();
    let guard = run(&store, &key(2)).await;
    assert!(proxy.has_lost_it());
    proxy.lose_an_answer();
    guard.record("reply".into(), later()).await.expect("a record");
    assert!(proxy.has_lost_it());
    assert_eq!(replay(&other, &key(2)).await, "reply");
    let usage = S::usage(&other).await;
    let bytes = site.replies().await.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!((usage.records, usage.bytes), (2, bytes), "counted once");
}

/// K3: past a bound a claim fails by name, and a reply that could not be recorded is recorded when the database is back.
async fn a_reply_is_recorded_once_the_database_is_back<S: Site>(site: &S, through: &S, proxy: &Proxy) {
    let store = instance(through).await;
    let guard = run(&store, &key(1)).await;
    proxy.go_away().await;
    let begun = Instant::now();
    let other = key(2);
    let (recorded, claimed) = tokio::join!(guard.record("reply".into(), later()), claim(&store, &other));
    for error in [recorded.expect_err("it is away"), claimed.expect_err("it is away")] {
        let away = matches!(cause(&error), StoreError::Unavailable(_) | StoreError::TimedOut);
        assert!(away, "{error:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    proxy.come_back();
    // The claim stands until the reply is there: another instance waits for it, and does not run the round.
    assert_eq!(replay(&instance(site).await, &key(1)).await, "reply");
}

/// K3: of tasks, too, a statement whose answer was lost is sent again: a task that was added is there once and counted once, and a
/// K3: a change of a task whose answer was lost is made once, and a piece that is appended again is there once.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_changes_no_task() {
    use crate::support::TaskSite as _;
    use crate::support::tasks::{HOUR, change, key, task};
    use roundtrip::task::{Chunk, Millis, NewTask, TaskStore as _};

    let Some(site) = crate::support::PostgresSite::new().await else { return };
    let (proxy, url) = Proxy::before(&site.url).await;
    let store = instance(&crate::support::PostgresSite { url }).await;
    for number in 1..=6 {
        // The first time, the database learns the statements.
        let held = NewTask { lease: Some(HOUR), ..task(number) };
        store.create(held, 6, Millis(1)).await.expect("a task");
        assert!(proxy.has_lost_it());
        proxy.lose_an_answer();
    }
    for number in 1..=6 {
        store.write(change(number, 0), Millis(1)).await.expect("an answer");
        assert!(proxy.has_lost_it());
        let stored = store.read(&key(number), Millis(1)).await.expect("a task").expect("a task");
        assert_eq!(stored.version, 1, "changed once");
        proxy.lose_an_answer();
    }
    for number in 1..=6 {
        let pieces = [Chunk { number: 1, bytes: "piece".into() }];
        assert!(store.append(&key(number), 1, &pieces).await.expect("an answer"), "it is held");
        assert!(proxy.has_lost_it());
        let work = store.load(&key(number)).await.expect("a task").expect("a task");
        assert_eq!(work.journal.len(), 2, "appended once");
        proxy.lose_an_answer();
    }
    assert_eq!(
        site.bytes("SELECT account FROM roundtrip_task_live WHERE live = 6").await.len(),
        1,
        "counted once"
    );
}
