//! Rate limits: what counts, for whom, and what a refusal costs.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::seal::BoxFuture;
use roundtrip::server::rate::{Bucket, MemoryRates, RateStore, RateStoreError, Taken};
use roundtrip::server::{Endpoint, Group, Partial, Peer};
use roundtrip::testing::{self, Effects, stores};
use roundtrip::{
    Ask, MemoryLedger, Principal, Prompt, RateLimit, Resource, ResourceTemplate, Server, State, Tool,
    ToolError, Uri,
};
use serde_json::json;

use crate::logged::logged;
use crate::peers::Pipe;
use crate::support::{Answer, Call, Running, Turn, accept, headers, message, messages_of};

/// Counts the runs of a handler.
async fn count(State(runs): State<Arc<AtomicUsize>>) -> String {
    runs.fetch_add(1, Ordering::SeqCst).to_string()
}

async fn book(ask: Ask) -> Result<String, ToolError> {
    ask.confirm("sure", "Sure?").await?;
    Ok("booked".into())
}

/// A server with two tools, and the number of runs of one of them.
fn server() -> (Server, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let server = Server::new("s", "1").state(Arc::clone(&runs)).tool(Tool::new("count", count));
    (server.tool(Tool::new("book", book)), runs)
}

fn hourly(requests: u32) -> RateLimit {
    RateLimit::per_hour(requests)
}

/// Returns whether a call was let through; otherwise it was refused by a rate limit.
#[track_caller]
fn passed(turn: &Turn) -> bool {
    let refused = turn.0["error"]["code"] == 429;
    assert!(refused || turn.0.get("error").is_none(), "{}", turn.0);
    !refused
}

/// Returns how many of some calls are let through.
async fn passes(endpoint: &Endpoint, call: &Call, calls: usize) -> usize {
    let mut count = 0;
    for _ in 0..calls {
        count += usize::from(passed(&call.begin(endpoint).await));
    }
    count
}

/// Z3: over HTTP a caller past its limit gets 429 with `Retry-After` and the error, nothing runs, and other principals go on.
#[tokio::test]
async fn past_its_limit_a_caller_gets_429_and_the_time_to_wait() {
    let (server, runs) = server();
    let http =
        server.rate_limit(RateLimit::per_minute(2)).into_http().expect("a server").principal(|parts| {
            parts.headers.get("x-user").and_then(|user| user.to_str().ok()).map(Principal::new)
        });
    let running = Running::start_http(http).await;
    let call = async |user: &str| -> Answer {
        let request = message(1, "tools/call", json!({ "name": "count" }));
        let mut head = headers(&request);
        head.push(("x-user".into(), user.into()));
        running.connect().await.post(&head, request.to_string().as_bytes()).await
    };
    assert_eq!((call("ada").await.status, call("ada").await.status), (200, 200));
    let refused = call("ada").await;
    assert_eq!(refused.refusal(), (429, 429));
    let wait = refused.json()["error"]["data"]["retryAfterMs"].as_u64().expect("a time");
    assert!((1..=30_000).contains(&wait), "{wait}");
    let seconds: u64 = refused.header("retry-after").expect("a header").parse().expect("seconds");
    assert_eq!(seconds, wait.div_ceil(1_000));
    assert!(refused.error_message().contains("try again in"), "{refused:?}");
    assert_eq!(call("bob").await.status, 200);
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

/// Z3: on stdio a caller past its limit gets the error alone.
#[tokio::test]
async fn past_its_limit_a_pipe_gets_the_error() {
    let mut pipe = Pipe::open(server().0.rate_limit(hourly(1)));
    let request = message(1, "tools/call", json!({ "name": "count" }));
    assert_eq!(pipe.call(&request).await["result"]["content"][0]["text"], "0");
    let refused = pipe.call(&request).await;
    assert_eq!(refused["error"]["code"], 429, "{refused}");
    assert!(refused["error"]["data"]["retryAfterMs"].as_u64().is_some_and(|wait| wait > 3_500_000));
}

/// Z3: every request of a flow counts. One that is refused costs the flow nothing: no claim is made, and the same state is good
/// once there is room again.
#[tokio::test(start_paused = true)]
async fn a_refused_answer_costs_its_flow_nothing() {
    let ledger = MemoryLedger::new();
    let endpoint = server().0.ledger(ledger.clone()).rate_limit(hourly(1)).build().expect("a server");
    let call = Call::tool("book").by("ada");
    let asked = call.begin(&endpoint).await;
    let yes = json!({ "sure": accept(&json!({ "confirm": true })) });
    let refused = call.answer(&endpoint, &asked, yes.clone()).await;
    assert_eq!(refused.error().0, 429);
    assert!(ledger.is_empty(), "{ledger:?}");
    let wait = refused.0["error"]["data"]["retryAfterMs"].as_u64().expect("a time");
    tokio::time::advance(Duration::from_millis(wait)).await;
    assert_eq!(call.answer(&endpoint, &asked, yes).await.text(), "booked");
}

/// Z3: a limit of a tool, a prompt or a resource counts that one alone, one of a group each of its offers, and one of the server
/// all of them together.
#[tokio::test]
async fn each_place_has_buckets_of_its_own() {
    let named = |name: &'static str| Tool::new(name, async || "done");
    let group =
        Group::new().rate_limit(hourly(2)).tool(named("one")).tool(named("two").rate_limit(hourly(1)));
    let endpoint = Server::new("s", "1")
        .rate_limit(hourly(12))
        .group(group)
        .prompt(Prompt::new("one", async || "prompt").rate_limit(hourly(2)))
        .resource(Resource::new("app://one", "one", async || "resource").rate_limit(hourly(2)))
        .template(
            ResourceTemplate::new("app://{other}", "other", async |uri: Uri| uri.to_string())
                .rate_limit(hourly(2)),
        )
        .build()
        .expect("a server");
    assert_eq!(passes(&endpoint, &Call::tool("one").by("ada"), 3).await, 2);
    assert_eq!(passes(&endpoint, &Call::tool("two").by("ada"), 2).await, 1);
    assert_eq!(passes(&endpoint, &Call::prompt("one").by("ada"), 2).await, 2);
    assert_eq!(passes(&endpoint, &Call::resource("app://one").by("ada"), 2).await, 2);
    assert_eq!(passes(&endpoint, &Call::resource("app://two").by("ada"), 1).await, 1);
    assert_eq!(passes(&endpoint, &Call::resource("app://three").by("ada"), 1).await, 1);
    // The server has counted those that an inner limit refused, too.
    assert_eq!(passes(&endpoint, &Call::tool("one").by("ada"), 1).await, 0);
    assert_eq!(passes(&endpoint, &Call::tool("one").by("bob"), 3).await, 2);
}

/// A server with a template whose variable is completed, and a completion of it.
fn cities(server: Server) -> (Server, serde_json::Value) {
    let complete = async |_: Partial| vec!["paris".to_owned()];
    let cities = ResourceTemplate::new("app://{city}", "city", async |uri: Uri| uri.to_string());
    let server = server.template(cities.complete("city", complete).rate_limit(hourly(1)));
    let reference = json!({ "type": "ref/resource", "uri": "app://{city}" });
    let params = json!({ "ref": reference, "argument": { "name": "city", "value": "p" } });
    (server, message(1, "completion/complete", params))
}

/// Z3: lists and discovery do not count.
#[tokio::test]
async fn lists_and_discovery_do_not_count() {
    let endpoint = cities(Server::new("s", "1")).0.rate_limit(hourly(1)).build().expect("a server");
    for _ in 0..3 {
        for method in ["resources/templates/list", "server/discover"] {
            let said = messages_of(&endpoint, &Peer::default(), &message(1, method, json!({}))).await;
            assert!(said[0].get("error").is_none(), "{said:?}");
        }
    }
    assert_eq!(passes(&endpoint, &Call::resource("app://paris"), 2).await, 1);
}

/// Z3: completions count under the server's limit, in memory and in a store, and not under the limit of what they complete.
#[tokio::test]
async fn completions_count_under_the_servers_limit() {
    for shared in [false, true] {
        let (server, completion) = cities(Server::new("s", "1"));
        let limit = if shared { hourly(4).shared(MemoryRates::new()) } else { hourly(4) };
        let endpoint = server.rate_limit(limit).build().expect("a server");
        for _ in 0..3 {
            let said = messages_of(&endpoint, &Peer::default(), &completion).await;
            assert!(said[0].get("result").is_some(), "{shared}: {said:?}");
        }
        assert_eq!(passes(&endpoint, &Call::resource("app://paris"), 1).await, 1, "{shared}");
        let said = messages_of(&endpoint, &Peer::default(), &completion).await;
        assert_eq!(said[0]["error"]["code"], 429, "{shared}: {said:?}");
        assert!(said[0]["error"]["data"]["retryAfterMs"].is_u64(), "{shared}: {said:?}");
    }
}

/// Z3: callers without a principal share one bucket per address, of IPv6 per network; those without an address share one.
#[tokio::test]
async fn callers_without_a_principal_share_by_address() {
    let endpoint = server().0.rate_limit(hourly(1)).build().expect("a server");
    let from = |address: Option<&str>| Peer {
        address: address.map(|address| address.parse::<IpAddr>().expect("an address")),
        ..Peer::default()
    };
    for (address, passes) in [
        (Some("192.0.2.1"), true),
        (Some("192.0.2.1"), false),
        (Some("::ffff:192.0.2.1"), false),
        (Some("192.0.2.2"), true),
        (Some("2001:db8::1"), true),
        (Some("2001:db8::2"), false),
        (Some("2001:db8:0:1::1"), true),
        (None, true),
        (None, false),
    ] {
        let request = Call::tool("count").request(None, None);
        let said = messages_of(&endpoint, &from(address), &request).await;
        assert_eq!(said[0].get("result").is_some(), passes, "{address:?}: {said:?}");
    }
}

/// Z3: the server's limit is asked before its hooks, that of a tool before the tool's hooks.
#[tokio::test]
async fn limits_are_asked_before_hooks() {
    let (outer, inner) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for shared in [false, true] {
        let limit = |requests| match shared {
            true => hourly(requests).shared(MemoryRates::new()),
            false => hourly(requests),
        };
        let counting = |count: &Arc<AtomicUsize>| {
            let count = Arc::clone(count);
            move |_: roundtrip::server::CallInfo, next: roundtrip::server::Next| {
                count.fetch_add(1, Ordering::SeqCst);
                next.run()
            }
        };
        let tool = Tool::new("t", async || "done").around(counting(&inner)).rate_limit(limit(1));
        let server = Server::new("s", "1").tool(tool).around(counting(&outer)).rate_limit(limit(2));
        let endpoint = server.build().expect("a server");
        assert_eq!(passes(&endpoint, &Call::tool("t").by("ada"), 4).await, 1, "{shared}");
        let hooks = (outer.swap(0, Ordering::SeqCst), inner.swap(0, Ordering::SeqCst));
        assert_eq!(hooks, (2, 1), "{shared}");
    }
}

/// A store that does as it is told.
#[derive(Clone, Default)]
struct Fickle {
    mode: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    rates: MemoryRates,
}

const WORKS: usize = 0;
const FAILS: usize = 1;
const HANGS: usize = 2;

impl Fickle {
    fn set(&self, mode: usize) {
        self.mode.store(mode, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

impl RateStore for Fickle {
    fn take<'a>(&'a self, bucket: &'a Bucket) -> BoxFuture<'a, Result<Taken, RateStoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.mode.load(Ordering::SeqCst) {
            WORKS => self.rates.take(bucket),
            FAILS => Box::pin(async { Err(RateStoreError::new("connection refused")) }),
            _ => Box::pin(std::future::pending()),
        }
    }
}

/// Z3: a store that is away lets calls through, is left alone for a second, and the log says so once.
#[test]
fn a_store_that_is_away_lets_calls_through() {
    let log = logged(async {
        tokio::time::pause();
        let store = Fickle::default();
        let limit = hourly(2).shared(store.clone());
        let endpoint = server().0.rate_limit(limit).build().expect("a server");
        let call = Call::tool("count").by("ada");
        assert_eq!((passes(&endpoint, &call, 3).await, store.asked()), (2, 3));
        for mode in [FAILS, HANGS, FAILS] {
            store.set(mode);
            let begun = tokio::time::Instant::now();
            assert_eq!((passes(&endpoint, &call, 100).await, store.asked()), (100, 1));
            assert!(begun.elapsed() < Duration::from_millis(600), "{:?}", begun.elapsed());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        store.set(WORKS);
        assert_eq!(passes(&endpoint, &call, 3).await, 0);
    });
    assert_eq!(log.matches("rate limits cannot be checked").count(), 1, "{log}");
    assert!(log.contains("connection refused"), "{log}");
}

/// Z3: with `strict`, calls are refused while the store is away: 503, and when to try again.
#[tokio::test]
async fn a_strict_limit_refuses_while_its_store_is_away() {
    let (server, runs) = server();
    let store = Fickle::default();
    store.set(FAILS);
    let running = Running::start(server.rate_limit(hourly(9).shared(store.clone()).strict())).await;
    for _ in 0..2 {
        let refused = running.call("tools/call", json!({ "name": "count" })).await;
        assert_eq!((refused.refusal(), refused.header("retry-after")), ((503, 503), Some("1")));
        assert_eq!(refused.json()["error"]["data"], json!({ "retryAfterMs": 1_000 }));
    }
    assert_eq!((runs.load(Ordering::SeqCst), store.asked()), (0, 1));
}

/// Z3: instances that share a store let through together what one would; services that share one do not share buckets.
#[tokio::test]
async fn instances_share_a_store() {
    let rates = MemoryRates::new();
    let limit = || hourly(5).shared(rates.clone());
    let instance = |server: Server| {
        let tool = Tool::new("t", async || "done").rate_limit(limit());
        server.tool(tool).rate_limit(limit()).build().expect("a server")
    };
    let (one, other) = (instance(Server::new("s", "1")), instance(Server::new("s", "1")));
    let call = Call::tool("t").by("ada");
    assert_eq!((passes(&one, &call, 3).await, passes(&other, &call, 4).await), (3, 2));
    assert_eq!(passes(&instance(Server::new("another", "1")), &call, 6).await, 5);
}

/// Z3: the buckets in memory keep the contract of stores.
#[tokio::test(start_paused = true)]
async fn buckets_in_memory_keep_the_contract() {
    let rates = MemoryRates::new();
    stores::rates(rates.clone(), rates).await.expect("the contract");
}

/// Z3: a test that repeats rounds on purpose is not limited.
#[tokio::test]
async fn replays_are_not_limited() {
    let effects = Effects::new();
    let server = server().0.rate_limit(hourly(1));
    let replay = testing::replay(server).tool("book", json!({}));
    let result = replay.accept("sure", json!({ "confirm": true })).effects(&effects).await.expect("a result");
    assert_eq!(result["content"][0]["text"], "booked");
}

/// Sessions of the handshake eras.
#[cfg(feature = "legacy")]
mod sessions {
    use roundtrip::{Question, Reply, Round};
    use serde_json::Value;

    use super::*;
    use crate::peers::{V2025_11_25, Web, accept, everything, text, tool};

    /// Asks by hand, so that the transport enters it again.
    async fn twice(round: Round) -> Result<Reply, ToolError> {
        match round.confirmed("sure")? {
            Some(sure) => Ok(Reply::text(sure.to_string())),
            None => Ok(round.ask([Question::confirm("sure", "Sure?")])),
        }
    }

    /// Z3, L2: in a session a call is one request, however often its handler asks and is entered; past the limit the client gets
    /// the error, with status 200 as for all errors of calls there.
    #[tokio::test]
    async fn a_call_of_a_session_counts_once() {
        let server = || {
            let tools = server().0.tool(Tool::new("twice", twice));
            tools.rate_limit(hourly(2))
        };
        let mut pipe = Pipe::agreed(server(), V2025_11_25, &everything()).await;
        for name in ["book", "twice"] {
            pipe.send(&tool(1, name)).await;
            let asked = pipe.receive().await;
            pipe.send(&accept(&asked, json!({ "confirm": true }))).await;
            assert!(["booked", "true"].contains(&text(&pipe.receive().await)));
        }
        let assert_refused = |refused: Value| {
            assert_eq!(refused["error"]["code"], 429, "{refused}");
            assert!(refused["error"]["data"]["retryAfterMs"].is_u64(), "{refused}");
        };
        assert_refused(pipe.call(&tool(2, "count")).await);

        let web = Web::new(server()).session(V2025_11_25, &everything()).await;
        for _ in 0..2 {
            assert_eq!(web.post(&tool(1, "count")).await.json().await.get("error"), None);
        }
        let mut refused = web.post(&tool(2, "count")).await;
        assert_eq!(refused.status, 200);
        assert_refused(refused.json().await);
    }
}
