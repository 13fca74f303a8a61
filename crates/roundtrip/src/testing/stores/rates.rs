//! The contract of stores of rate limits.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::seal::Digest;
use tokio::task::JoinSet;

use super::{Checked, broken, failed, random, within};
use crate::server::rate::{Bucket, RateStore, Taken};

/// Time after which nothing comes back while the contract is checked.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Checks that a store of rate limits keeps its contract: buckets let through what they hold, on both instances together, one by
/// one and at once; what is refused costs nothing, and is let through after the time that was said.
///
/// It takes two instances that share one store: two connections to one database; two clones, if it is for one process. Its
/// buckets have ids drawn at random, so the store need not be empty.
///
/// # Errors
/// Fails with the first rule that the store breaks.
pub async fn rates(one: impl RateStore + 'static, other: impl RateStore + 'static) -> Checked {
    let instances: [Instance; 2] = [Arc::new(one), Arc::new(other)];
    a_bucket_lets_through_what_it_holds(&instances).await?;
    buckets_do_not_share(&instances).await?;
    requests_at_once_take_a_place_each(&instances).await?;
    a_request_passes_after_the_time_that_was_said(&instances).await
}

type Instance = Arc<dyn RateStore>;

async fn a_bucket_lets_through_what_it_holds(instances: &[Instance; 2]) -> Checked {
    let rule =
        "a bucket lets through what it holds, on all instances together, and what is refused costs nothing";
    let bucket = new_bucket(HOUR, 5)?;
    for number in 0..5 {
        if take(rule, &instances[number % 2], &bucket).await? != Taken::Passed {
            return broken(rule, format!("request {number} of 5 was refused"));
        }
    }
    for instance in instances.iter().cycle().take(6) {
        match take(rule, instance, &bucket).await? {
            Taken::Refused { retry_after }
                if (HOUR - Duration::from_secs(60)..=HOUR).contains(&retry_after) => {}
            other => return broken(rule, format!("past it, {other:?}")),
        }
    }
    Ok(())
}

async fn buckets_do_not_share(instances: &[Instance; 2]) -> Checked {
    let rule = "a bucket has nothing to do with another";
    let bucket = new_bucket(HOUR, 1)?;
    let mut ids = vec![*bucket.id().as_bytes()];
    for place in [0, Digest::LEN - 1] {
        let mut id = ids[0];
        id[place] ^= 1;
        ids.push(id);
    }
    for id in ids {
        let bucket = Bucket::new(Digest::from_bytes(id), HOUR, 1);
        if take(rule, &instances[0], &bucket).await? != Taken::Passed {
            return broken(rule, "a new one refuses".into());
        }
    }
    Ok(())
}

async fn requests_at_once_take_a_place_each(instances: &[Instance; 2]) -> Checked {
    let rule = "requests that come at once are let through as if they came one by one";
    let bucket = new_bucket(HOUR, 10)?;
    let mut requests = JoinSet::new();
    for number in 0..40 {
        let instance = Arc::clone(&instances[number % 2]);
        requests.spawn(async move { take(rule, &instance, &bucket).await });
    }
    let mut passed = 0;
    for taken in requests.join_all().await {
        passed += usize::from(taken? == Taken::Passed);
    }
    if passed == 10 { Ok(()) } else { broken(rule, format!("{passed} of 10 passed")) }
}

async fn a_request_passes_after_the_time_that_was_said([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a request is let through after the time that was said";
    let bucket = new_bucket(Duration::from_millis(300), 1)?;
    for instance in [one, other, one] {
        let taken = match take(rule, instance, &bucket).await? {
            Taken::Passed => continue,
            Taken::Refused { retry_after } => {
                tokio::time::sleep(retry_after + Duration::from_millis(20)).await;
                take(rule, instance, &bucket).await?
            }
        };
        if taken != Taken::Passed {
            return broken(rule, format!("after it, {taken:?}"));
        }
    }
    Ok(())
}

fn new_bucket(interval: Duration, burst: u32) -> Checked<Bucket> {
    Ok(Bucket::new(Digest::from_bytes(random()?), interval, burst))
}

async fn take(rule: &'static str, store: &Instance, bucket: &Bucket) -> Checked<Taken> {
    within(rule, store.take(bucket)).await?.or_else(|error| failed(rule, &error))
}
