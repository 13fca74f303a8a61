//! Rate limits that instances share: the contract, what a request costs, what is left behind, and processes.

use std::time::{Duration, Instant};

use roundtrip::seal::Digest;
use roundtrip::server::rate::{Bucket, RateStore, Taken};
use roundtrip::testing::stores;

use crate::support::{Proxy, Site, instance};

/// A site whose store counts for rate limits.
trait RateSite: Site<Store: RateStore> {
    /// Returns how many buckets are there.
    fn buckets(&self) -> impl Future<Output = usize>;
}

#[cfg(feature = "postgres")]
impl RateSite for crate::support::PostgresSite {
    async fn buckets(&self) -> usize {
        use crate::support::TaskSite as _;
        self.bytes("SELECT id FROM roundtrip_rates").await.len()
    }
}

#[cfg(feature = "redis")]
impl RateSite for crate::support::RedisSite {
    async fn buckets(&self) -> usize {
        use ::redis::AsyncCommands as _;
        let keys: Vec<String> =
            self.connect().await.keys(format!("{{{}}}:rate:*", self.prefix)).await.expect("keys");
        keys.len()
    }
}

through_a_proxy! {
    a_store_keeps_the_contract_of_rate_limits
    a_request_costs_one_exchange
    buckets_that_are_full_go
    a_store_that_is_away_says_so_and_comes_back
}

fn bucket(number: u8, interval: Duration, burst: u32) -> Bucket {
    Bucket::new(Digest::of("test", &[&[number]]), interval, burst)
}

async fn take(store: &impl RateStore, bucket: &Bucket) -> Taken {
    store.take(bucket).await.expect("an answer")
}

const HOUR: Duration = Duration::from_secs(3_600);

/// K1, Z3: the contract of stores of rate limits.
async fn a_store_keeps_the_contract_of_rate_limits<S: RateSite>(site: &S, _: &S, _: &Proxy) {
    let (one, other) = (instance(site).await, instance(site).await);
    stores::rates(one, other).await.expect("the contract");
}

/// Z3: a request is one exchange with the database, whether it is let through or refused.
async fn a_request_costs_one_exchange<S: RateSite>(site: &S, through: &S, proxy: &Proxy) {
    take(&instance(site).await, &bucket(9, Duration::from_millis(200), 1)).await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    let store = instance(through).await;
    // The first time, the database learns the statement, and what is full is removed: a bucket goes once that is done.
    take(&store, &bucket(1, HOUR, 1)).await;
    while site.buckets().await != 1 {
        tokio::task::yield_now().await;
    }
    let before = proxy.exchanges();
    let (first, second) = (take(&store, &bucket(2, HOUR, 1)).await, take(&store, &bucket(2, HOUR, 1)).await);
    assert!(matches!((first, second), (Taken::Passed, Taken::Refused { .. })), "{first:?} {second:?}");
    assert_eq!(proxy.exchanges() - before, 2);
}

/// Z3: a bucket that is full again is removed by itself; others stay.
async fn buckets_that_are_full_go<S: RateSite>(site: &S, _: &S, _: &Proxy) {
    let first = instance(site).await;
    take(&first, &bucket(0, HOUR, 1)).await;
    for number in 1..=20 {
        take(&first, &bucket(number, Duration::from_millis(100), 1)).await;
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    // An instance sweeps when it begins to count.
    let other = instance(site).await;
    assert!(matches!(take(&other, &bucket(0, HOUR, 1)).await, Taken::Refused { .. }));
    while site.buckets().await > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(matches!(take(&other, &bucket(0, HOUR, 1)).await, Taken::Refused { .. }));
}

/// Z3: a database that is away is not waited for; when it is back, it counts on. A broken connection is not noticed.
async fn a_store_that_is_away_says_so_and_comes_back<S: RateSite>(_: &S, through: &S, proxy: &Proxy) {
    let (store, bucket) = (instance(through).await, bucket(1, HOUR, 1));
    assert_eq!(take(&store, &bucket).await, Taken::Passed);
    proxy.go_away().await;
    let begun = Instant::now();
    store.take(&bucket).await.expect_err("it is away");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    proxy.come_back();
    assert!(matches!(take(&store, &bucket).await, Taken::Refused { .. }));
    proxy.lose_an_answer();
    assert!(matches!(take(&store, &bucket).await, Taken::Refused { .. }));
    assert!(proxy.has_lost_it());
}

/// Server processes that share a limit.
#[cfg(unix)]
mod processes {
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use roundtrip::client::ServerRejection;
    use roundtrip::{Client, Error, RateLimit, Server, Tool};
    use tokio::task::JoinSet;

    use crate::processes::{Fleet, STORE};

    /// Requests that come back in a second, and that may come at once.
    const RATE: u32 = 100;

    /// Serves until the process is killed. Only a server process gets past the first line.
    async fn serve() -> bool {
        let Ok(store) = std::env::var(STORE) else { return false };
        // Strict, so that a slow database is no excuse.
        let limit = RateLimit::per_second(RATE).strict();
        let limit = match store.split_once('|').expect("a kind and a place") {
            #[cfg(feature = "postgres")]
            ("postgres", url) => {
                limit.shared(roundtrip_store::Postgres::connect(url).await.expect("a store"))
            }
            #[cfg(feature = "redis")]
            ("redis", place) => {
                let (url, prefix) = place.split_once('|').expect("a URL and a prefix");
                limit.shared(roundtrip_store::Redis::connect(url).prefix(prefix).await.expect("a store"))
            }
            other => panic!("no such store: {other:?}"),
        };
        let server = Server::new("limited", "1").tool(Tool::new("hit", async || "hit")).rate_limit(limit);
        tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
        server.serve_http("127.0.0.1:0").await.expect("an end in good order");
        true
    }

    /// Number of refusals after which the bucket is empty for certain: no call that found it full is still under way.
    const SETTLED: u32 = 50;

    /// Calls that were let through between two refusals. Both found the bucket empty: what came back to it in between was let through,
    /// however slowly this machine calls.
    #[derive(Default)]
    struct Measured {
        passed: u32,
        refused: u32,
        /// First and last refusal, each with the number of calls that had passed.
        between: Option<[(Instant, u32); 2]>,
    }

    impl Measured {
        /// Counts a call. Returns whether to go on.
        fn count(&mut self, has_passed: bool) -> bool {
            self.passed += u32::from(has_passed);
            self.refused += u32::from(!has_passed);
            let now = (Instant::now(), self.passed);
            if !has_passed && self.refused >= SETTLED {
                let [first, _] = self.between.unwrap_or([now; 2]);
                self.between = Some([first, now]);
            }
            self.between.is_none_or(|[first, last]| last.0 - first.0 < Duration::from_secs(3))
        }
    }

    /// Calls until enough is measured, one call after the other.
    async fn hits(client: Client, measured: Arc<Mutex<Measured>>) {
        loop {
            let has_passed = match client.call_tool("hit", ()).await {
                Ok(_) => true,
                Err(Error::Rejected(ServerRejection::RateLimited(_))) => false,
                Err(other) => panic!("{other}"),
            };
            if !measured.lock().expect("no panic").count(has_passed) {
                return;
            }
        }
    }

    /// Calls instances as fast as they answer, and returns how many calls a second are let through once the bucket is empty.
    async fn measured(clients: &[&Client]) -> f64 {
        let (all, mut callers) = (Arc::<Mutex<Measured>>::default(), JoinSet::new());
        for number in 0..12 {
            callers.spawn(hits(clients[number % clients.len()].clone(), Arc::clone(&all)));
        }
        callers.join_all().await;
        let all = all.lock().expect("no panic");
        let [first, last] = all.between.expect("refusals");
        f64::from(last.1 - first.1) / (last.0 - first.0).as_secs_f64()
    }

    /// Z3: two processes on one store let through together what one would, within 5 %.
    async fn processes_share_a_limit(fleet: Fleet) {
        let (one, other) = (fleet.start(false).await, fleet.start(false).await);
        let alone = measured(&[&one.client]).await;
        let together = measured(&[&one.client, &other.client]).await;
        for (rate, of) in [(alone, f64::from(RATE)), (together, f64::from(RATE)), (together, alone)] {
            assert!((rate / of - 1.0).abs() <= 0.05, "alone {alone:.1}, together {together:.1} a second");
        }
    }

    #[cfg(feature = "postgres")]
    #[tokio::test]
    async fn on_postgres() {
        if !serve().await
            && let Some(site) = crate::support::PostgresSite::new().await
        {
            let store = format!("postgres|{}", site.url);
            processes_share_a_limit(Fleet::new("rates::processes::on_postgres", store)).await;
        }
    }

    #[cfg(feature = "redis")]
    #[tokio::test]
    async fn on_redis() {
        if !serve().await
            && let Some(site) = crate::support::RedisSite::new()
        {
            let store = format!("redis|{}|{}", site.url, site.prefix);
            processes_share_a_limit(Fleet::new("rates::processes::on_redis", store)).await;
        }
    }
}
