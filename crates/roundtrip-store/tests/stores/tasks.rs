//! Stores keep the contract of tasks, and what they promise beyond it.

use std::time::Duration;

use bytes::Bytes;
use roundtrip::task::{Chunk, Due, Millis, NewTask, TaskChange, TaskStore, TaskStoreError};
use roundtrip::testing::stores;
use roundtrip_store::StoreError;

use crate::support::tasks::{HOUR, ada, change, id, key, pair, sealed, shop, take, task};
use crate::support::{TaskSite, instance};

on_each_store_of_tasks! {
    a_store_keeps_the_contract_of_tasks
    tasks_outlive_their_instances
    a_ledger_and_tasks_share_a_store
    tasks_are_sealed_at_rest
    a_task_opens_for_its_owner_alone
    a_task_is_sealed_anew_with_the_first_key
    a_task_without_its_key_is_not_lost
    a_task_without_its_key_hides_no_other
    no_account_is_counted_for_ever
    pieces_go_with_their_task
    a_call_is_kept_until_its_task_ends
}

fn cause(error: &TaskStoreError) -> &StoreError {
    assert!(matches!(error, TaskStoreError::Unreadable(_)), "one task, not the store: {error:?}");
    std::error::Error::source(error).and_then(|cause| cause.downcast_ref()).expect("an error of the store")
}

async fn work_of(store: &impl TaskStore, number: u8) -> Result<Bytes, TaskStoreError> {
    Ok(store.read(&key(number), Millis(1)).await?.expect("a task").work)
}

/// A call that is too large for the row of its task.
fn large_call() -> Bytes {
    b"the secret call ".repeat(1_000).into()
}

/// Ends a task with a result in parts.
async fn end(store: &impl TaskStore, number: u8) {
    let parts = vec![Chunk { number: 0, bytes: Bytes::from_static(b"the secret part") }];
    let result = Some(Bytes::from_static(b"the secret result"));
    let ended = TaskChange { is_live: false, result, parts, ..change(number, 0) };
    assert!(store.write(ended, Millis(1)).await.expect("a change"));
}

/// K1, K3: the contract of task stores.
async fn a_store_keeps_the_contract_of_tasks(site: &impl TaskSite) {
    let (one, other) = (instance(site).await, instance(site).await);
    stores::tasks(one, other).await.expect("the contract");
    stores::tasks(sealed(site, &[1]).await, sealed(site, &[1]).await).await.expect("the contract, sealed");
}

/// K2, K3: what was stored is there when every instance has gone and another comes.
async fn tasks_outlive_their_instances(site: &impl TaskSite) {
    let first = instance(site).await;
    first.create(task(1), 1, Millis(1)).await.expect("a task");
    drop(first);
    assert_eq!(work_of(&instance(site).await, 1).await.expect("a task"), "the secret work");
}

/// K1: one store is the ledger and has the tasks.
async fn a_ledger_and_tasks_share_a_store(site: &impl TaskSite) {
    let store = instance(site).await;
    crate::support::record(&store, &crate::support::key(1), "reply").await;
    store.create(task(1), 1, Millis(1)).await.expect("a task");
    assert_eq!(crate::support::replay(&store, &crate::support::key(1)).await, "reply");
    assert_eq!(work_of(&store, 1).await.expect("a task"), "the secret work");
}

/// K6: nothing of a task can be read without the ring, or planted.
async fn tasks_are_sealed_at_rest(site: &impl TaskSite) {
    let store = sealed(site, &[1]).await;
    for number in [1, 2] {
        store.create(task(number), 9, Millis(1)).await.expect("a task");
    }
    store.create(NewTask { call: large_call(), ..task(4) }, 9, Millis(1)).await.expect("a task");
    end(&store, 2).await;
    let [all, _] = site.task_bytes();
    let stored = site.bytes(all).await;
    assert_eq!(
        stored.len(),
        12,
        "three views, three works, a result, a part, two calls and two pieces of journals"
    );
    for bytes in stored {
        assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
    }
    assert_eq!(work_of(&sealed(site, &[1]).await, 1).await.expect("a task"), "the secret work");
    let error = work_of(&instance(site).await, 1).await.expect_err("it has no ring");
    assert!(matches!(cause(&error), StoreError::Sealed), "{error:?}");
    instance(site).await.create(task(3), 9, Millis(1)).await.expect("a task");
    let error = work_of(&store, 3).await.expect_err("it is not sealed");
    assert!(matches!(cause(&error), StoreError::NotSealed), "{error:?}");
}

/// K6, T5: bytes that were moved to another task, another column, another piece or another owner do not open.
async fn a_task_opens_for_its_owner_alone(site: &impl TaskSite) {
    let store = sealed(site, &[1]).await;
    for number in 1..=2 {
        store.create(task(number), 2, Millis(1)).await.expect("a task");
    }
    site.execute("UPDATE roundtrip_task_chunks SET number = number + 1 WHERE stream = 0").await;
    let error = store.load(&key(1)).await.expect_err("it is another piece");
    assert!(matches!(cause(&error), StoreError::Record(_)), "{error:?}");
    site.execute(
        "UPDATE roundtrip_task SET work = (SELECT o.work FROM roundtrip_task o WHERE o.id <> roundtrip_task.id)",
    )
    .await;
    let error = work_of(&store, 1).await.expect_err("it is another's work");
    assert!(matches!(cause(&error), StoreError::Record(_)), "{error:?}");
    site.execute("UPDATE roundtrip_task SET view = work").await;
    let error = store.view(&key(1), false, Millis(1)).await.expect_err("it is not a view");
    assert!(matches!(cause(&error), StoreError::Record(_)), "{error:?}");

    let eve = roundtrip::task::TaskOwner::new(Some("eve"));
    store.create(task(3), 3, Millis(1)).await.expect("a task");
    let mut own = key(4);
    own.owner = eve;
    store.create(NewTask { key: own, ..task(4) }, 4, Millis(1)).await.expect("a task");
    site.execute(
        "UPDATE roundtrip_task SET owner = \
         (SELECT o.owner FROM roundtrip_task o WHERE o.id = '04040404040404040404040404040404')",
    )
    .await;
    let mut stolen = key(3);
    stolen.owner = eve;
    let error = store.view(&stolen, false, Millis(1)).await.expect_err("it is not eve's");
    assert!(matches!(cause(&error), StoreError::Record(_)), "{error:?}");
}

/// K6: everything of a task that is read with an old key is sealed anew with the first one, its call in whichever place that is.
async fn a_task_is_sealed_anew_with_the_first_key(site: &impl TaskSite) {
    let old = sealed(site, &[1]).await;
    let calls = [(1, "the secret call".into()), (3, large_call())];
    for (number, call) in calls.clone() {
        old.create(NewTask { call, ..task(number) }, 9, Millis(1)).await.expect("a task");
    }
    old.create(task(2), 9, Millis(1)).await.expect("a task");
    end(&old, 2).await;
    let [all, _] = site.task_bytes();
    let before = site.bytes(all).await;
    let read_all = async |store: &dyn TaskStore| {
        for number in [1, 2, 3] {
            store.read(&key(number), Millis(1)).await?.expect("a task");
            store.view(&key(number), true, Millis(1)).await?.expect("a view");
        }
        for (number, call) in &calls {
            let work = store.load(&key(*number)).await?.expect("work");
            assert_eq!((&work.call, &work.journal[..]), (call, &["the secret piece".into()][..]));
        }
        assert_eq!(store.parts(&key(2), 0, 9).await?.len(), 1);
        Ok::<_, TaskStoreError>(())
    };
    read_all(&sealed(site, &[2, 1]).await).await.expect("both keys open");
    while site.bytes(all).await.iter().any(|bytes| before.contains(bytes)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    read_all(&sealed(site, &[2]).await).await.expect("all of it was sealed anew");
    assert_eq!(site.bytes(all).await.len(), before.len(), "each in its place");
}

/// K6, K7: a call is sealed, counted when its task is taken, loaded and gone when its task ends, whether or not it is small and has
/// a journal beside it.
async fn a_call_is_kept_until_its_task_ends(site: &impl TaskSite) {
    let store = sealed(site, &[1]).await;
    let [_, calls] = site.task_bytes();
    let small = Bytes::from_static(b"the secret call");
    for (number, call, journal) in [
        (1, small.clone(), None),
        (2, small, Some(Bytes::from_static(b"piece"))),
        (3, large_call(), None),
        (4, large_call(), Some(Bytes::from_static(b"piece"))),
        (5, Bytes::new(), None),
    ] {
        let new = NewTask { call: call.clone(), journal: journal.clone(), ..task(number) };
        store.create(new, 1, Millis(1)).await.expect("a task");
        let taken = take(&store, 9, HOUR).await.remove(0);
        let plain = "the secret work".len() + call.len() + journal.as_ref().map_or(0, Bytes::len);
        let sealed = taken.size - plain;
        assert!(taken.key == key(number) && (1..200).contains(&sealed), "{number}: {sealed} bytes more");
        let loaded = store.load(&taken.key).await.expect("work").expect("work");
        assert_eq!((loaded.version, loaded.fence, loaded.call), (1, taken.fence, call), "{number}");
        assert_eq!((&loaded.work[..], loaded.journal), (&b"the secret work"[..], Vec::from_iter(journal)));
        let stored = site.bytes(calls).await;
        assert!(stored.len() == 1 && !String::from_utf8_lossy(&stored[0]).contains("secret"), "{number}");
        let ended = TaskChange { is_live: false, ..change(number, 1) };
        assert!(store.write(ended, Millis(1)).await.expect("its end"));
        assert!(site.bytes(calls).await.is_empty() && store.load(&taken.key).await.expect("none").is_none());
    }
}

/// K6: a key that was retired too early is named; its tasks can be taken and given back, keep no others from being worked on, and
/// are there when it is back.
async fn a_task_without_its_key_is_not_lost(site: &impl TaskSite) {
    let (old, new) = (sealed(site, &[1]).await, sealed(site, &[2]).await);
    old.create(task(1), 2, Millis(1)).await.expect("a task");
    new.create(task(2), 2, Millis(1)).await.expect("a task");
    let error = work_of(&new, 1).await.expect_err("its key is gone");
    assert!(matches!(cause(&error), StoreError::KeyRetired { .. }), "{error:?}");
    let taken = take(&new, 9, HOUR).await;
    assert_eq!(taken.len(), 2, "neither is opened");
    for held in &taken {
        let loaded = new.load(&held.key).await;
        assert_eq!(loaded.is_ok(), held.key == key(2), "{loaded:?}");
    }
    let lost = taken.iter().find(|held| held.key == key(1)).expect("a task");
    new.give_back(&lost.key, lost.fence, Millis(1)).await.expect("it goes back");
    let back = sealed(site, &[2, 1]).await;
    assert_eq!(take(&back, 9, HOUR).await.len(), 1, "nothing is lost");
    assert!(back.load(&key(1)).await.expect("its key is back").is_some());
}

/// K6, K7: a task whose key was retired too early is listed without its view, in its place, and hides no other; when it has expired
/// it is found, so that it can be removed.
async fn a_task_without_its_key_hides_no_other(site: &impl TaskSite) {
    let (old, new) = (sealed(site, &[1]).await, sealed(site, &[2]).await);
    new.create(task(1), 3, Millis(1)).await.expect("a task");
    old.create(NewTask { expires: Some(Millis(1)), ..task(2) }, 3, Millis(1)).await.expect("a task");
    new.create(task(3), 3, Millis(1)).await.expect("a task");
    let view = Bytes::from_static(b"the secret view");
    let listed = new.list(&shop(), &ada(), None, 3).await.expect("tasks");
    assert_eq!(listed, [(id(1), view.clone()), (id(2), Bytes::new()), (id(3), view)]);
    let expired = new.expired(&shop(), Millis(5), 9).await.expect("tasks");
    assert_eq!(expired.iter().map(|task| &task.key).collect::<Vec<_>>(), [&key(2)]);
    new.remove(&shop(), &[(id(2), expired[0].version)]).await.expect("it goes");
    assert!(new.expired(&shop(), Millis(5), 9).await.expect("tasks").is_empty());
}

/// K7: the count of an account goes with its tasks.
async fn no_account_is_counted_for_ever(site: &impl TaskSite) {
    let store = instance(site).await;
    for number in [1, 2] {
        store.create(task(number), 2, Millis(1)).await.expect("a task");
    }
    assert_eq!(site.bytes("SELECT account FROM roundtrip_task_live WHERE live = 2").await.len(), 1);
    end(&store, 1).await;
    store.remove(&shop(), &[(id(1), 1), (id(2), 0)]).await.expect("they go");
    store.create(task(3), 1, Millis(1)).await.expect("a task");
    end(&store, 3).await;
    store.remove(&shop(), &[(id(3), 1)]).await.expect("it goes");
    assert!(site.bytes("SELECT account FROM roundtrip_task_live").await.is_empty());
}

/// K7: pieces of a task are gone with it, and its call and its journal when it ends.
async fn pieces_go_with_their_task(site: &impl TaskSite) {
    let store = instance(site).await;
    store.create(NewTask { call: large_call(), ..task(1) }, 1, Millis(1)).await.expect("a task");
    let wanted = [(pair(1), 1)];
    let request =
        roundtrip::task::TakeRequest { service: &shop(), wanted: &wanted, except: &[], lease: HOUR };
    let taken = store.take(request, Millis(1)).await.expect("a task").remove(0);
    let stored = async |stream: &'static str| site.bytes(stream).await.len();
    let (all, parts) = (
        "SELECT bytes FROM roundtrip_task_chunks",
        "SELECT bytes FROM roundtrip_task_chunks WHERE stream = 1",
    );
    let pieces: Vec<_> = (1..5).map(|number| Chunk { number, bytes: Bytes::from_static(b"piece") }).collect();
    assert!(store.append(&taken.key, taken.fence, &pieces).await.expect("pieces"));
    let more = TaskChange { parts: pieces, due: Due::AsBefore, ..change(1, 1) };
    assert!(store.write(more, Millis(1)).await.expect("a change"));
    assert_eq!((stored(all).await, stored(parts).await), (10, 4));
    assert!(store.write(TaskChange { is_live: false, ..change(1, 2) }, Millis(1)).await.expect("its end"));
    assert_eq!((stored(all).await, stored(parts).await), (4, 4));
    store.remove(&shop(), &[(id(1), 3)]).await.expect("it goes");
    assert_eq!(stored(all).await, 0);
}
