//! The contract of ledgers.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::seal::{Digest, Timestamp};
use tokio::task::JoinSet;

use super::{Checked, broken, failed, random, within};
use crate::server::Ledger;
use crate::server::ledger::{Claim, ClaimGuard, LedgerError, RoundKey};

/// Checks that a ledger keeps its contract: two requests are never both told to run one round, replies are replayed as they
/// were recorded, on both instances, and claims are released.
///
/// It takes two instances that share one store: two connections to one database; two clones, if it is for one process. Its rounds
/// have ids drawn at random, so the store need not be empty.
///
/// # Errors
/// Fails with the first rule that the ledger breaks.
pub async fn ledger(one: impl Ledger + 'static, other: impl Ledger + 'static) -> Checked {
    let instances: [Instance; 2] = [Arc::new(one), Arc::new(other)];
    a_reply_is_replayed(&instances).await?;
    another_call_is_told(&instances).await?;
    an_owner_is_no_part_of_a_round(&instances).await?;
    rounds_do_not_wait_for_each_other(&instances).await?;
    requests_at_once_run_a_round_once(&instances).await?;
    a_released_round_runs_again(&instances).await?;
    a_request_that_goes_away_leaves_nothing(&instances).await?;
    a_record_that_is_over_is_gone(&instances).await
}

/// Checks that a ledger, which is empty and has room for four records, forgets no live one and leaves room for other callers.
///
/// # Errors
/// Fails with the first rule that the ledger breaks.
pub async fn ledger_for_four(ledger: impl Ledger + 'static) -> Checked {
    let rule = "a ledger without room, or without room for one caller, fails";
    let ledger: Instance = Arc::new(ledger);
    let (eve, bob) = (Digest::of("owner", &[b"eve"]), Digest::of("owner", &[b"bob"]));
    let mut recorded = Vec::new();
    let first = loop {
        let key = new_key()?.owned_by(eve);
        match within(rule, ledger.claim(&key, later())).await? {
            Ok(Claim::Run(guard)) => record(rule, guard, b"reply").await?,
            Err(LedgerError::Full) => break key,
            other => return broken(rule, format!("{other:?}")),
        }
        recorded.push(key);
        if recorded.len() > 4 {
            return broken(rule, "a fifth round was claimed".into());
        }
    };
    let guard = run(rule, &ledger, &new_key()?.owned_by(bob)).await?;
    for key in &recorded {
        replayed(rule, &ledger, key, b"reply").await?;
    }
    drop(guard);
    match within(rule, ledger.claim(&first, later())).await? {
        Err(LedgerError::Full) => Ok(()),
        other => broken(rule, format!("its share is full, and then {other:?}")),
    }
}

type Instance = Arc<dyn Ledger>;

async fn a_reply_is_replayed([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a recorded round is replayed as it was recorded, on every instance";
    let all: Vec<u8> = (0..=u8::MAX).collect();
    for reply in [b"{}", b"".as_slice(), &all, &vec![b'x'; 1 << 20]] {
        let key = new_key()?;
        let guard = run(rule, one, &key).await?;
        record(rule, guard, reply).await?;
        for instance in [other, one, other] {
            replayed(rule, instance, &key, reply).await?;
        }
    }
    Ok(())
}

async fn another_call_is_told([one, other]: &[Instance; 2]) -> Checked {
    let rule = "an id with another call is told from its own, while the round runs and after it";
    let key = new_key()?;
    let another = RoundKey::new(*key.id(), Digest::of("call", &[b"another"]));
    let guard = run(rule, one, &key).await?;
    for instance in [one, other] {
        other_call(rule, instance, &another).await?;
    }
    record(rule, guard, b"reply").await?;
    for instance in [one, other] {
        other_call(rule, instance, &another).await?;
        replayed(rule, instance, &key, b"reply").await?;
    }
    Ok(())
}

async fn an_owner_is_no_part_of_a_round([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a round is the same for every owner";
    let key = new_key()?;
    let guard = run(rule, one, &key.owned_by(Digest::of("owner", &[b"ada"]))).await?;
    record(rule, guard, b"reply").await?;
    replayed(rule, other, &key.owned_by(Digest::of("owner", &[b"bob"])), b"reply").await
}

async fn rounds_do_not_wait_for_each_other([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a round does not wait for another";
    let key = new_key()?;
    let _running = run(rule, one, &key).await?;
    for place in [0, RoundKey::LEN - 1] {
        let mut id = *key.id();
        id[place] ^= 1;
        run(rule, other, &RoundKey::new(id, *key.call())).await?;
    }
    Ok(())
}

async fn requests_at_once_run_a_round_once(instances: &[Instance; 2]) -> Checked {
    let rule = "of requests that come at once, one runs the round and the others get its reply";
    let key = new_key()?;
    let mut requests = JoinSet::new();
    for instance in instances.iter().cycle().take(16) {
        let instance = Arc::clone(instance);
        requests.spawn(async move { run_or_replay(rule, &instance, &key, b"reply").await });
    }
    let mut runs = 0;
    while let Some(request) = requests.join_next().await {
        runs += usize::from(request.unwrap_or_else(|error| broken(rule, error.to_string()))?);
    }
    if runs == 1 { Ok(()) } else { broken(rule, format!("it was run {runs} times")) }
}

async fn a_released_round_runs_again([one, other]: &[Instance; 2]) -> Checked {
    let rule =
        "a claim that is dropped without a reply releases its round, to requests that wait and to later ones";
    for (holding, waiting) in [(one, one), (one, other)] {
        let key = new_key()?;
        let guard = run(rule, holding, &key).await?;
        let waiting = Arc::clone(waiting);
        let waiter = tokio::spawn(async move { run_or_replay(rule, &waiting, &key, b"second").await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        if waiter.is_finished() {
            return broken(rule, "a request did not wait while the round was claimed".into());
        }
        drop(guard);
        let ran = waiter.await.unwrap_or_else(|error| broken(rule, error.to_string()))?;
        if !ran {
            return broken(rule, "the request that waited got a reply that was never recorded".into());
        }
        replayed(rule, holding, &key, b"second").await?;
    }
    Ok(())
}

async fn a_request_that_goes_away_leaves_nothing([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a claim whose request goes away is released";
    let key = new_key()?;
    drop_after_a_poll(one, &key).await;
    let guard = run(rule, other, &key).await?;
    // One that only waits takes nothing with it.
    drop_after_a_poll(one, &key).await;
    record(rule, guard, b"reply").await?;
    replayed(rule, one, &key, b"reply").await
}

async fn drop_after_a_poll(instance: &Instance, key: &RoundKey) {
    let mut claim = instance.claim(key, later());
    let _ = claim.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(claim);
    tokio::task::yield_now().await;
}

async fn a_record_that_is_over_is_gone([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a record is gone after its time";
    let key = new_key()?;
    for instance in [one, other, one] {
        let guard = run(rule, instance, &key).await?;
        let recorded =
            within(rule, guard.record(Bytes::from_static(b"reply"), Timestamp::from_unix(1))).await?;
        recorded.or_else(|error| failed(rule, &error))?;
    }
    Ok(())
}

/// Claims a round that is free.
async fn run(rule: &'static str, instance: &Instance, key: &RoundKey) -> Checked<Box<dyn ClaimGuard>> {
    match within(rule, instance.claim(key, later())).await? {
        Ok(Claim::Run(guard)) => Ok(guard),
        Ok(other) => broken(rule, format!("a free round is not run, and gives {other:?}")),
        Err(error) => failed(rule, &error),
    }
}

/// Claims a round; runs it, or takes the reply. Returns whether it ran.
async fn run_or_replay(
    rule: &'static str,
    instance: &Instance,
    key: &RoundKey,
    reply: &'static [u8],
) -> Checked<bool> {
    match within(rule, instance.claim(key, later())).await? {
        Ok(Claim::Run(guard)) => {
            tokio::time::sleep(Duration::from_millis(20)).await;
            record(rule, guard, reply).await?;
            Ok(true)
        }
        Ok(Claim::Replay(found)) if found == reply => Ok(false),
        Ok(other) => broken(rule, format!("{other:?}")),
        Err(error) => failed(rule, &error),
    }
}

async fn record(rule: &'static str, guard: Box<dyn ClaimGuard>, reply: &[u8]) -> Checked {
    let recorded = guard.record(Bytes::copy_from_slice(reply), later());
    within(rule, recorded).await?.or_else(|error| failed(rule, &error))
}

async fn replayed(rule: &'static str, instance: &Instance, key: &RoundKey, reply: &[u8]) -> Checked {
    match within(rule, instance.claim(key, later())).await? {
        Ok(Claim::Replay(found)) if found == reply => Ok(()),
        Ok(Claim::Replay(found)) => {
            broken(rule, format!("of {} bytes, {} others are replayed", reply.len(), found.len()))
        }
        Ok(other) => broken(rule, format!("a recorded round is not replayed, and gives {other:?}")),
        Err(error) => failed(rule, &error),
    }
}

async fn other_call(rule: &'static str, instance: &Instance, key: &RoundKey) -> Checked {
    match within(rule, instance.claim(key, later())).await? {
        Ok(Claim::OtherCall) => Ok(()),
        Ok(other) => broken(rule, format!("{other:?}")),
        Err(error) => failed(rule, &error),
    }
}

fn later() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now()).plus(Duration::from_secs(600))
}

fn new_key() -> Checked<RoundKey> {
    Ok(RoundKey::new(random()?, Digest::of("call", &[b"this"])))
}
