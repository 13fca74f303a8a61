//! Introspection under load: of one token by many, and of many tokens by one.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicUsize;

use tokio::task::{JoinHandle, JoinSet};

use super::*;

/// A caller from a network of its own.
fn caller(number: u8) -> Owner {
    Owner::new(None, Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))))
}

fn introspecting(issuer: &Issuer) -> Arc<TokenChecker> {
    let introspection = vec![issuer.introspection()];
    Arc::new(TokenChecker::new(CheckerSettings { introspection, ..settings(issuer) }))
}

type Checked = JoinHandle<Result<Arc<Claims>, CheckError>>;

fn begin(checker: &Arc<TokenChecker>, token: &str, owner: &Owner) -> Checked {
    let (checker, token, owner) = (Arc::clone(checker), token.to_owned(), owner.clone());
    tokio::spawn(async move { checker.check_for(&token, &owner).await })
}

/// O26: two hundred requests with one token are one introspection, whose verdict is for all of them.
#[tokio::test(start_paused = true)]
async fn a_token_is_introspected_once_at_a_time() {
    let issuer = issuer();
    let checker = introspecting(&issuer);
    let good = alice(&issuer).opaque();
    for (token, is_good) in [(&*good, true), ("invented", false)] {
        issuer.hold();
        let before = issuer.introspections();
        let requests: JoinSet<bool> = (0..200)
            .map(|number| {
                let request = begin(&checker, token, &caller(number));
                async move { request.await.unwrap().is_ok() }
            })
            .collect();
        settle().await;
        issuer.start();
        assert!(requests.join_all().await.into_iter().all(|accepted| accepted == is_good));
        assert_eq!(issuer.introspections() - before, 1, "{token}");
    }
}

/// O26: a verdict is for all requests that wait, also if the first of them is gone.
#[tokio::test(start_paused = true)]
async fn an_introspection_survives_the_request_that_began_it() {
    let issuer = issuer();
    let checker = introspecting(&issuer);
    issuer.hold();
    let token = alice(&issuer).opaque();
    let first = begin(&checker, &token, &caller(1));
    settle().await;
    let second = begin(&checker, &token, &caller(2));
    settle().await;
    first.abort();
    settle().await;
    issuer.start();
    assert!(second.await.unwrap().is_ok());
    assert_eq!(issuer.introspections(), 1);
}

/// O26: requests that were dropped before their turn are not asked about.
#[tokio::test(start_paused = true)]
async fn a_dropped_request_leaves_the_queue() {
    let issuer = issuer();
    let checker = introspecting(&issuer);
    issuer.hold();
    let queue: Vec<Checked> =
        (0..100).map(|number| begin(&checker, &format!("invented-{number}"), &caller(number))).collect();
    settle().await;
    let asked = issuer.introspections();
    assert_eq!(asked, 64);
    queue.iter().for_each(JoinHandle::abort);
    settle().await;
    issuer.start();
    settle().await;
    assert_eq!(issuer.introspections(), asked);
}

/// O26: a caller that invents tokens has a share of the places, and is refused at once past it. Others are served.
#[tokio::test(start_paused = true)]
async fn a_flood_of_one_caller_does_not_keep_others_waiting() {
    let issuer = issuer();
    let slow = Arc::new(Slow {
        issuer: issuer.clone(),
        takes: Duration::from_millis(1500),
        asked: AtomicUsize::new(0),
    });
    let introspection = vec![issuer.introspection()];
    let settings = CheckerSettings { introspection, fetch: Some(slow.clone()), ..settings(&issuer) };
    let checker = Arc::new(TokenChecker::new(settings));
    let flood: Vec<Checked> =
        (0..1_000).map(|number| begin(&checker, &format!("invented-{number}"), &caller(1))).collect();
    settle().await;
    let refused = flood.iter().filter(|request| request.is_finished()).count();
    assert!(refused > 800, "{refused} of 1,000 are refused at once");
    let began = tokio::time::Instant::now();
    assert!(checker.check_for(&alice(&issuer).opaque(), &caller(2)).await.is_ok());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// O25: an endpoint is not asked about a token whose time is nearly over: nobody would wait for the answer.
#[tokio::test(start_paused = true)]
async fn nothing_is_asked_with_less_than_a_second_left() {
    let issuer = issuer();
    let slow = Arc::new(Slow {
        issuer: issuer.clone(),
        takes: Duration::from_millis(9_500),
        asked: AtomicUsize::new(0),
    });
    let introspection = vec![issuer.introspection()];
    let settings = CheckerSettings { introspection, fetch: Some(slow.clone()), ..settings(&issuer) };
    let checker = Arc::new(TokenChecker::new(settings));
    let all: Vec<Checked> =
        (0..80).map(|number| begin(&checker, &format!("invented-{number}"), &caller(number))).collect();
    let mut unjudged = 0;
    for request in all {
        unjudged += usize::from(request.await.unwrap().unwrap_err() == CheckError::Unavailable);
    }
    assert_eq!((slow.asked.load(Ordering::SeqCst), unjudged), (64, 16));
}

/// An issuer that takes its time.
#[derive(Debug)]
struct Slow {
    issuer: Issuer,
    takes: Duration,
    asked: AtomicUsize,
}

impl Fetch for Slow {
    fn send(&self, request: AuthRequest) -> Fetching {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let (answer, takes) = (self.issuer.send(request), self.takes);
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            answer.await
        })
    }
}
