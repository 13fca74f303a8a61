//! Tasks that the release before has stored, which knew no services (K5).

use std::time::SystemTime;

use bytes::Bytes;
use roundtrip::seal::{Keyring, RecordLabel};
use roundtrip::task::{AdoptedTask, Millis, OrphanTask, TaskId, TaskKey, TaskOwner, TaskStore};

use crate::support::tasks::{HOUR, ada, digest, id, pair, ring, sealed, shop, take};
use crate::support::{Log, OldTask, TaskSite, instance};

on_each_store_of_tasks! {
    orphans_are_opened_and_adopted
    an_orphan_is_adopted_once
    orphans_that_cannot_be_opened_hide_no_other
    orphans_that_have_expired_are_removed
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
pub(crate) fn old_task(key: u8, number: u8, owner: TaskOwner, (view, work): (&[u8], &[u8])) -> OldTask {
    let id = id(number);
    OldTask {
        view: sealed_before(key, &owner, &id, "task view", view),
        work: sealed_before(key, &owner, &id, "task work", work),
        id: id.as_str().to_owned(),
        owner: owner.as_bytes().to_vec(),
        account: pair(1).account.as_bytes().to_vec(),
        live: true,
        due: Some(1),
        expires: None,
    }
}

/// Returns the time in so many milliseconds.
pub(crate) fn in_millis(millis: i64) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_millis();
    i64::try_from(now).expect("a time") + millis
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
    let rest = store.orphans(Some(&orphans[1].id), 2).await.expect("orphans");
    for (number, orphan) in (1..).zip(orphans.iter().chain(&rest)) {
        assert_eq!((&orphan.id, orphan.owner), (&id(number), ada()));
        assert!(orphan.view.is_empty() && orphan.work.is_empty(), "a list reads no bytes");
        let read = store.orphan(&orphan.owner, &orphan.id).await.expect("an answer").expect("an orphan");
        assert_eq!(
            (read.view, read.work),
            (format!("view {number}").into(), format!("work {number}").into())
        );
    }
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

/// K5, K6: orphans whose key is gone keep no other from being found, and stay.
async fn orphans_that_cannot_be_opened_hide_no_other(site: &impl TaskSite) {
    let old = |key, number| old_task(key, number, ada(), (b"view", b"work"));
    site.old_release(&[old(9, 1), old(9, 2), old(1, 3), old(9, 4)]).await;
    let store = sealed(site, &[1]).await;
    assert_eq!(store.orphans(None, 9).await.expect("orphans").len(), 4);
    assert!(store.orphan(&ada(), &id(3)).await.expect("an answer").is_some());
    let error = store.orphan(&ada(), &id(1)).await.expect_err("its key is gone");
    assert!(matches!(error, roundtrip::task::TaskStoreError::Unreadable(_)), "{error:?}");
    assert!(sealed(site, &[1, 9]).await.orphan(&ada(), &id(1)).await.expect("an answer").is_some());
}

/// K5: orphans that nobody adopts go at the end of their time: at once if they have ended, else a minute later.
async fn orphans_that_have_expired_are_removed(site: &impl TaskSite) {
    let old = |number, live, expires| OldTask {
        live,
        expires,
        due: None,
        ..old_task(1, number, ada(), (b"view", b"work"))
    };
    let (past, just, later) = (Some(in_millis(-70_000)), Some(in_millis(-10_000)), Some(in_millis(100_000)));
    site.old_release(&[
        old(1, false, past),
        old(2, false, just),
        old(3, false, later),
        old(4, true, past),
        old(5, true, just),
        old(6, true, later),
        old(7, false, None),
        old(8, true, None),
    ])
    .await;
    let (store, now) = (sealed(site, &[1]).await, Millis(in_millis(0).cast_unsigned()));
    assert_eq!(store.remove_orphans(now, 2).await.expect("an answer"), 2);
    assert_eq!(store.remove_orphans(now, 2).await.expect("an answer"), 1);
    assert_eq!(store.remove_orphans(now, 2).await.expect("an answer"), 0);
    let left = store.orphans(None, 9).await.expect("orphans");
    let left: Vec<_> = left.into_iter().map(|orphan| orphan.id).collect();
    assert_eq!(left, [id(3), id(5), id(6), id(7), id(8)]);
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
    let log = Log::default();
    let listening = log.listen();
    let store = sealed(site, &[1]).await;
    drop(listening);
    let log = log.text();
    assert!(log.contains("WARN") && log.contains("left out") && log.contains("rows=4"), "{log}");
    assert_eq!(store.orphans(None, 9).await.expect("orphans").len(), 1);
    assert_eq!(site.bytes("SELECT view FROM roundtrip_task").await.len(), 1);
}

/// K5: a migration of a large table takes longer than a call may, and instances that start meanwhile wait for it.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn a_long_migration_is_waited_for_on_postgres() {
    let Some(site) = crate::support::PostgresSite::new().await else { return };
    let bad = OldTask { owner: b"short".to_vec(), ..old_task(1, 1, ada(), (b"view", b"work")) };
    site.old_release(&[bad, old_task(1, 2, ada(), (b"view", b"work"))]).await;
    // One row that takes as long as millions would, and a bound for statements of calls.
    site.execute(
        "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(9); RETURN old; END'; \
         CREATE TRIGGER slowly BEFORE DELETE ON roundtrip_tasks FOR EACH ROW EXECUTE FUNCTION slowly()",
    )
    .await;
    let bounded =
        crate::support::PostgresSite { url: format!("{}&options[statement_timeout]=5000", site.url) };
    let opened = tokio::join!(instance(&bounded), instance(&site), instance(&site));
    assert_eq!(opened.2.orphans(None, 9).await.expect("orphans").len(), 1);
}

/// K5: a counter of changes that is behind the tasks it has counted does not keep them from being adopted.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_counter_of_changes_that_is_behind_is_mended() {
    let site = crate::support::SqliteSite::new();
    three(&site).await;
    site.execute("UPDATE roundtrip_tasks_changes SET last = 0").await;
    let store = sealed(&site, &[1]).await;
    let orphan = store.orphan(&ada(), &id(2)).await.expect("an answer").expect("an orphan");
    assert!(store.adopt(adopted(&orphan, true)).await.expect("an answer"));
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
