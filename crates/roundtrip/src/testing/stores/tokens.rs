//! The contract of stores of tokens.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::auth::Grant;
use serde_json::json;
use tokio::task::JoinSet;

use super::{Checked, broken, failed, random, within};
use crate::oauth::store::{Record, StoreLock, TokenStore};

/// Time for which a lock that is held must not be given to another.
const HELD: Duration = Duration::from_millis(200);
/// Number of changes that are made at once.
const CHANGES: usize = 20;

/// Checks that a store of tokens keeps its contract: a record is read as it was stored, on both instances and for its server alone;
/// one that is deleted is gone; a lock is held by one at a time, on either instance, and is free once it is dropped.
///
/// It takes two instances that share one store and one account: two connections to one database; two handles, if it is for one
/// process. Other records are left alone, because the servers of these are random.
///
/// # Errors
/// Fails with the first rule that the store breaks.
pub async fn tokens(one: impl TokenStore, other: impl TokenStore) -> Checked {
    let instances: [Instance; 2] = [Arc::new(one), Arc::new(other)];
    a_record_is_kept_as_it_was(&instances).await?;
    records_are_apart(&instances).await?;
    a_lock_is_held_by_one(&instances).await?;
    no_change_is_lost(&instances).await
}

type Instance = Arc<dyn TokenStore>;

async fn a_record_is_kept_as_it_was([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a record is read as it was stored, on every instance, and is gone once it is deleted";
    let server = server()?;
    expect(rule, other, &server, None).await?;
    for record in [Record::default(), record("short")?, record(&"long".repeat(4_000))?, record("\u{0}\"ü\\")?]
    {
        save(rule, one, &server, &record).await?;
        for instance in [one, other] {
            expect(rule, instance, &server, Some(&record)).await?;
        }
    }
    for instance in [other, one] {
        delete(rule, instance, &server).await?;
        expect(rule, one, &server, None).await?;
    }
    Ok(())
}

async fn records_are_apart([one, other]: &[Instance; 2]) -> Checked {
    let rule = "records of different servers are apart";
    let first = server()?;
    let second = format!("{first}/");
    save(rule, one, &first, &record("first")?).await?;
    expect(rule, other, &second, None).await?;
    save(rule, other, &second, &record("second")?).await?;
    expect(rule, one, &first, Some(&record("first")?)).await?;
    delete(rule, one, &first).await?;
    expect(rule, one, &second, Some(&record("second")?)).await?;
    delete(rule, one, &second).await
}

async fn a_lock_is_held_by_one([one, other]: &[Instance; 2]) -> Checked {
    let rule =
        "a lock is held by one at a time, apart from those of other servers, and is free once it is dropped";
    let (first, second) = (server()?, server()?);
    let held = lock(rule, one, &first).await?;
    for instance in [one, other] {
        drop(lock(rule, instance, &second).await?);
        // A wait that ends in an error is as good: the lock was not given.
        if let Ok(Ok(_)) = tokio::time::timeout(HELD, instance.lock(&first)).await {
            return broken(rule, "a second lock was given".to_owned());
        }
    }
    drop(held);
    lock(rule, other, &first).await.map(drop)
}

async fn no_change_is_lost(instances: &[Instance; 2]) -> Checked {
    let rule = "changes that are made with the lock held are all kept";
    let server = server()?;
    let mut changes = JoinSet::new();
    for number in 0..CHANGES {
        let (instance, server) = (Arc::clone(&instances[number % 2]), server.clone());
        changes.spawn(async move {
            let _held = lock(rule, &instance, &server).await?;
            let mut record = load(rule, &instance, &server).await?.unwrap_or_default();
            let count = record.proof_key.as_ref().map_or(0, |count| count.expose().len());
            tokio::task::yield_now().await;
            record.proof_key = Some("x".repeat(count + 1).into());
            save(rule, &instance, &server, &record).await
        });
    }
    while let Some(changed) = changes.join_next().await {
        changed.or_else(|error| failed(rule, &error))??;
    }
    let record = load(rule, &instances[0], &server).await?.unwrap_or_default();
    let count = record.proof_key.map_or(0, |count| count.expose().len());
    if count != CHANGES {
        return broken(rule, format!("{count} of {CHANGES} changes are there"));
    }
    delete(rule, &instances[0], &server).await
}

/// Returns the URL of a server that no other record is of.
fn server() -> Checked<String> {
    Ok(format!("https://{:032x}.example/mcp", u128::from_ne_bytes(random()?)))
}

/// Returns a record with a grant.
fn record(token: &str) -> Checked<Record> {
    let issuer = "https://login.example";
    let grant = json!({
        "terms": {
            "server": "https://tools.example/mcp", "resource": "https://tools.example/mcp", "issuer": issuer,
            "token_endpoint": "https://login.example/token", "method": "client_secret_post", "requested": "read write",
            "client": {
                "issuer": issuer, "client_id": "id", "source": "dynamic", "secret": "secret", "secret_expires_at": 7,
                "method": "client_secret_post", "redirect_uri": "http://127.0.0.1:7777/callback",
            },
            "dpop": null, "assumed_endpoints": false,
        },
        "access_token": token, "scheme": "Bearer", "expires_at": 1_900_000_000, "refresh_token": token, "granted": "read",
    });
    let grant: Grant = serde_json::from_value(grant).or_else(|error| failed("a record is JSON", &error))?;
    let mut record = Record::default();
    record.sign_in(grant);
    Ok(record)
}

async fn load(rule: &'static str, store: &Instance, server: &str) -> Checked<Option<Record>> {
    within(rule, store.load(server)).await?.or_else(|error| failed(rule, &error))
}

async fn expect(rule: &'static str, store: &Instance, server: &str, record: Option<&Record>) -> Checked {
    if load(rule, store, server).await?.as_ref() == record {
        return Ok(());
    }
    broken(rule, "another record was read, or none".to_owned())
}

async fn save(rule: &'static str, store: &Instance, server: &str, record: &Record) -> Checked {
    within(rule, store.save(server, record)).await?.or_else(|error| failed(rule, &error))
}

async fn delete(rule: &'static str, store: &Instance, server: &str) -> Checked {
    within(rule, store.delete(server)).await?.or_else(|error| failed(rule, &error))
}

async fn lock(rule: &'static str, store: &Instance, server: &str) -> Checked<StoreLock> {
    within(rule, store.lock(server)).await?.or_else(|error| failed(rule, &error))
}
