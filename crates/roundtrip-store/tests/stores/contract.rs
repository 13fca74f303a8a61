//! Every store keeps the contract of ledgers, and what stores promise beyond it.

use std::time::Duration;

use roundtrip::Keyring;
use roundtrip::seal::{Digest, Timestamp};
use roundtrip::server::ledger::LedgerError;
use roundtrip::testing::stores;
use roundtrip_store::StoreError;

use crate::support::{Site, cause, claim, instance, key, later, record, replay, run};

on_each_store! {
    a_store_keeps_the_contract
    a_store_outlives_its_instances
    a_claim_ends_with_its_lease
    a_claim_is_renewed_while_its_round_runs
    what_is_over_is_removed_by_itself
    counts_are_right_after_everything
    a_full_store_has_room_when_something_is_over
    instances_that_start_at_once_make_the_tables_once
    a_newer_store_is_refused
    replies_are_sealed_at_rest
    keys_are_rotated_and_a_retired_one_is_named
    a_random_ring_is_refused
    a_planted_reply_is_refused
    nothing_shows_a_secret
    a_holder_that_comes_late_is_told
}

fn ring(keys: &[u8]) -> Keyring {
    let keys: Vec<String> = keys.iter().map(|key| format!("{key:02x}").repeat(32)).collect();
    keys.join("\n").parse().expect("keys")
}

/// K1, M6: the contract of ledgers.
async fn a_store_keeps_the_contract(site: &impl Site) {
    let four = site.open(|opening| opening.bounded(4, 1 << 30)).await.expect("a store");
    stores::ledger_for_four(four).await.expect("the contract");
    let (one, other) = (instance(site).await, instance(site).await);
    stores::ledger(one, other).await.expect("the contract");
}

/// K2, K3, K4: what was recorded is there when every instance has gone and another comes.
async fn a_store_outlives_its_instances(site: &impl Site) {
    let first = instance(site).await;
    record(&first, &key(1), "kept").await;
    drop(first);
    assert_eq!(replay(&instance(site).await, &key(1)).await, "kept");
}

/// M6: the claim of an instance that has died ends with its lease.
async fn a_claim_ends_with_its_lease(site: &impl Site) {
    let dead = site.open(|opening| opening.lease(Duration::from_secs(1))).await.expect("a store");
    let held = run(&dead, &key(1)).await;
    // The first instance cannot renew it any more, as a process that was killed. Those that are killed for real are in `processes`.
    site.disown().await;
    std::mem::forget(held);
    let other = instance(site).await;
    record(&other, &key(1), "second").await;
    assert_eq!(replay(&other, &key(1)).await, "second");
}

/// M6: an instance whose lease has expired while it was away is told so, and the reply of the one that ran the round in its
/// place stays.
async fn a_holder_that_comes_late_is_told(site: &impl Site) {
    let (first, other) = (instance(site).await, instance(site).await);
    let (late, released) = (run(&first, &key(1)).await, run(&first, &key(2)).await);
    site.expire().await;
    record(&other, &key(1), "second").await;
    record(&other, &key(2), "second").await;
    let error = late.record("first".into(), later()).await.expect_err("it is late");
    assert!(matches!(cause(&error), StoreError::LeaseLost), "{error:?}");
    drop(released);
    tokio::time::sleep(Duration::from_millis(50)).await;
    for number in [1, 2] {
        assert_eq!(replay(&first, &key(number)).await, "second");
    }
}

/// M6: as long as its instance lives, a round may take longer than the lease.
async fn a_claim_is_renewed_while_its_round_runs(site: &impl Site) {
    let first = site.open(|opening| opening.lease(Duration::from_secs(1))).await.expect("a store");
    let other = instance(site).await;
    let guard = run(&first, &key(1)).await;
    let waiting = tokio::spawn(async move { replay(&other, &key(1)).await });
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(!waiting.is_finished(), "the round still runs");
    guard.record("slow".into(), later()).await.expect("a record");
    assert_eq!(waiting.await.expect("a reply"), "slow");
}

/// K7, K4: records that are over go without being asked for.
async fn what_is_over_is_removed_by_itself(site: &impl Site) {
    let store = site.open(|opening| opening.lease(Duration::from_secs(1))).await.expect("a store");
    for number in 0..600 {
        let guard = run(&store, &key(number)).await;
        guard.record("reply".into(), Timestamp::from_unix(1)).await.expect("a record");
    }
    record(&store, &key(1_000), "live").await;
    let mut left = u64::MAX;
    for _ in 0..100 {
        left = site.stored().await;
        if left == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(left, 1, "what is over is gone, what is live is not");
    assert_eq!(replay(&store, &key(1_000)).await, "live");
}

/// M6, Z3: counts of records and bytes are those of what is there, after claims, releases, records, repeats and expiry.
async fn counts_are_right_after_everything<S: Site>(site: &S) {
    let (store, other) = (instance(site).await, instance(site).await);
    let owned = |number| key(number).owned_by(Digest::of("owner", &[b"ada"]));
    for number in 0..4 {
        record(&store, &owned(number), "12345").await;
        replay(&other, &owned(number)).await;
    }
    drop(run(&store, &owned(5)).await);
    // Expired, and taken again: its bytes are not counted twice.
    for _ in 0..2 {
        let guard = run(&other, &owned(6)).await;
        guard.record("1234567890".into(), Timestamp::from_unix(1)).await.expect("a record");
    }
    record(&store, &owned(6), "12345").await;
    let mut usage = S::usage(&store).await;
    for _ in 0..200 {
        if usage.records == 5 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        usage = S::usage(&store).await;
    }
    let bytes = site.replies().await.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!((usage.records, usage.bytes), (5, bytes));
}

/// K5: instances that start at once wait for each other, and find the tables made.
async fn instances_that_start_at_once_make_the_tables_once(site: &impl Site) {
    let open = || site.open(|opening| opening);
    let (a, b, c, d) = tokio::join!(open(), open(), open(), open());
    let [a, b, c, d] = [a, b, c, d].map(|store| store.expect("a store"));
    record(&a, &key(1), "reply").await;
    for store in [b, c, d] {
        assert_eq!(replay(&store, &key(1)).await, "reply");
    }
}

/// K5: a store that a later release has changed is refused.
async fn a_newer_store_is_refused(site: &impl Site) {
    drop(instance(site).await);
    site.outdate().await;
    let error = site.open(|opening| opening).await.expect_err("it is newer");
    assert!(matches!(error, StoreError::NewerSchema { found: 99, .. }), "{error:?}");
    assert!(error.to_string().contains("update this instance"), "{error}");
}

/// K6: what is stored cannot be read without the ring, and opens for every instance that has it.
async fn replies_are_sealed_at_rest(site: &impl Site) {
    let store = site.open(|opening| opening.sealed_by(ring(&[1]))).await.expect("a store");
    record(&store, &key(1), "the secret reply").await;
    let stored = site.replies().await;
    assert_eq!(stored.len(), 1);
    assert!(!String::from_utf8_lossy(&stored[0]).contains("secret"));
    let other = site.open(|opening| opening.sealed_by(ring(&[1]))).await.expect("a store");
    assert_eq!(replay(&other, &key(1)).await, "the secret reply");
    let without = instance(site).await;
    let error = claim(&without, &key(1)).await.expect_err("it has no ring");
    assert!(matches!(cause(&error), StoreError::Sealed), "{error:?}");
}

/// K6: a record that is read with an old key is sealed anew with the first; a key that was retired too early is named, and
/// its record is there when the key is back.
async fn keys_are_rotated_and_a_retired_one_is_named(site: &impl Site) {
    let open = |keys: &'static [u8]| site.open(move |opening| opening.sealed_by(ring(keys)));
    let old = open(&[1]).await.expect("a store");
    record(&old, &key(1), "one").await;
    record(&old, &key(2), "two").await;
    let rotating = open(&[2, 1]).await.expect("a store");
    let before = site.replies().await;
    assert_eq!(replay(&rotating, &key(1)).await, "one");
    while site.replies().await == before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let new = open(&[2]).await.expect("a store");
    assert_eq!(replay(&new, &key(1)).await, "one", "it was sealed anew");
    let error = claim(&new, &key(2)).await.expect_err("its key is gone");
    assert!(matches!(cause(&error), StoreError::KeyRetired { .. }), "{error:?}");
    assert_eq!(replay(&rotating, &key(2)).await, "two", "nothing is lost");
}

/// K6: a ring whose key ends with the process seals nothing that outlives it.
async fn a_random_ring_is_refused(site: &impl Site) {
    let random = Keyring::random().expect("a key");
    let error = site.open(|opening| opening.sealed_by(random)).await.expect_err("it is random");
    assert!(matches!(error, StoreError::RandomKey), "{error:?}");
}

/// K6: who can write to the database cannot plant a reply: neither an unsealed one nor one that was changed.
async fn a_planted_reply_is_refused(site: &impl Site) {
    let store = site.open(|opening| opening.sealed_by(ring(&[1]))).await.expect("a store");
    record(&store, &key(1), "reply").await;
    site.damage(0).await;
    let error = claim(&store, &key(1)).await.expect_err("it is not sealed");
    assert!(matches!(cause(&error), StoreError::NotSealed), "{error:?}");
    site.damage(250).await;
    let error = claim(&store, &key(1)).await.expect_err("it was changed");
    assert!(matches!(cause(&error), StoreError::Record(_)), "{error:?}");
}

/// K8: no `Debug` of a store shows the address, a key or a reply.
async fn nothing_shows_a_secret(site: &impl Site) {
    let mut shown = String::new();
    let store = site.open(|opening| {
        let opening = opening.sealed_by(ring(&[0xab]));
        shown = format!("{opening:?}");
        opening
    });
    let store = store.await.expect("a store");
    record(&store, &key(1), "secret").await;
    let claim = claim(&store, &key(1)).await;
    shown += &format!("{store:?} {claim:?}");
    for secret in ["127.0.0.1", "abababab", "secret", "store.db"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}

/// M6, Z3: a store without room refuses, keeps what it has, and has room again when something is over.
async fn a_full_store_has_room_when_something_is_over(site: &impl Site) {
    let store = site.open(|opening| opening.bounded(2, 1 << 20)).await.expect("a store");
    let guard = run(&store, &key(1)).await;
    assert!(matches!(claim(&store, &key(2)).await, Err(LedgerError::Full)));
    guard.record("first".into(), Timestamp::from_unix(1)).await.expect("a record");
    record(&store, &key(2), "second").await;
    assert!(matches!(claim(&store, &key(3)).await, Err(LedgerError::Full)));
    assert_eq!(replay(&store, &key(2)).await, "second");
}

/// K7: PostgreSQL finds what a statement needs by an index, beside thousands of records.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_finds_records_by_an_index() {
    use sqlx::{AssertSqlSafe, Row as _};
    let Some(site) = crate::support::PostgresSite::new().await else { return };
    drop(instance(&site).await);
    let mut database = site.connect().await;
    let fill = "INSERT INTO roundtrip_ledger SELECT decode(md5(n::text), 'hex'), '', '', '', n::bigint * 1000000000, 1, 'x' \
                FROM generate_series(1, 20000) n; ANALYZE roundtrip_ledger; SET plan_cache_mode = force_generic_plan";
    sqlx::raw_sql(fill).execute(&mut database).await.expect("records");
    let id = "'\\x00'";
    for (name, statement, arguments) in [
        ("claim", include_str!("../../src/postgres/sql/claim.sql"), format!("{id}, '', '', '', 1, 1, 1")),
        ("record", include_str!("../../src/postgres/sql/record.sql"), format!("{id}, '', '', 1, 1")),
        ("release", include_str!("../../src/postgres/sql/release.sql"), format!("{id}, ''")),
        ("sweep", include_str!("../../src/postgres/sql/sweep.sql"), "500".to_owned()),
    ] {
        let prepare = AssertSqlSafe(format!("PREPARE {name} AS {statement}"));
        sqlx::raw_sql(prepare).execute(&mut database).await.expect("a statement");
        let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE {name}({arguments})"));
        let plan = sqlx::raw_sql(explain).fetch_all(&mut database).await.expect("a plan");
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains("using roundtrip_ledger_"), "{plan}");
        assert!(!plan.contains("Seq Scan on roundtrip_ledger "), "{plan}");
    }
}
