//! Time: pauses, timeouts and deadlines, on a clock that stands still.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::{Error, FormRequest, Turn};
use tokio::time::{Instant, sleep};

use super::script::{Answer, again, asks, done, party, replies, scripted};
use crate::fixture::text;

const HOUR: Duration = Duration::from_secs(3600);

/// C5: rounds that ask nothing are not taken for the result; the call is made again after pauses that grow, and they
/// use up no rounds.
#[tokio::test(start_paused = true)]
async fn rounds_that_ask_nothing_are_paced() {
    let (client, log) =
        scripted(|number, _| Answer::Result(if number < 8 { again(&number.to_string()) } else { done() }));
    let begun = Instant::now();
    let result = client.call_tool("book", ()).max_rounds(0).await.expect("a result");
    assert_eq!(text(&result), "done");
    assert_eq!(begun.elapsed().as_millis(), 50 + 100 + 200 + 250 + 500 + 1000 + 2000 + 2000);
    let states: Vec<_> = (1..9).map(|number| log.params(number)["requestState"].clone()).collect();
    assert_eq!(states, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert!(log.requests().iter().all(|request| request["params"].get("inputResponses").is_none()));
}

/// C5: a server that never gets done is given up in time.
#[tokio::test(start_paused = true)]
async fn endless_waiting_is_given_up() {
    let (client, _log) = scripted(|_, _| Answer::Late(Duration::from_secs(1), again("s")));
    let begun = Instant::now();
    let error = client.call_tool("book", ()).await.expect_err("never done");
    assert!(matches!(error, Error::GaveUp(_)), "{error:?}");
    assert!((290..=300).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    let begun = Instant::now();
    client.call_tool("book", ()).max_polling(Duration::from_secs(9)).await.expect_err("never done");
    // What is under way when the time is over may still be answered.
    assert!(begun.elapsed() <= Duration::from_secs(9 + 1), "{:?}", begun.elapsed());
}

/// C6: ten rounds may ask, and the eleventh is refused before the user sees it.
#[tokio::test]
async fn the_user_is_never_asked_in_vain() {
    let (client, log) = scripted(|_, _| Answer::Result(asks([("party", party())], Some("s"))));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let client = client.on_form(move |form: FormRequest| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { form.decline() }
    });
    let error = client.call_tool("book", ()).await.expect_err("no end");
    assert!(matches!(error, Error::GaveUp(_)), "{error:?}");
    assert_eq!((asked.swap(0, Ordering::SeqCst), log.len()), (10, 11), "every answer was sent");
    client.call_tool("book", ()).max_rounds(2).await.expect_err("no end");
    assert_eq!((asked.load(Ordering::SeqCst), log.len()), (2, 14));
}

/// C8: how long people think does not count against a request's timeout, and each request has the whole of it.
#[tokio::test(start_paused = true)]
async fn people_may_take_their_time() {
    let slow = Duration::from_secs(50);
    let (client, log) = scripted(move |number, _| {
        Answer::Late(slow, if number < 3 { asks([("party", party())], None) } else { done() })
    });
    let client = client.on_form(async |form: FormRequest| {
        sleep(HOUR).await;
        form.decline()
    });
    client.call_tool("book", ()).await.expect("a result, within a minute a request");
    assert_eq!(log.len(), 4);
    let error = client.call_tool("book", ()).timeout(Duration::from_secs(9)).await.expect_err("too slow");
    assert!(matches!(error, Error::Timeout { after, .. } if after.as_secs() == 9), "{error:?}");
}

/// C8: a deadline bounds all of it, wherever it is: asking, pausing, or waiting for the server.
#[tokio::test(start_paused = true)]
async fn a_deadline_bounds_the_whole_call() {
    let limit = Duration::from_secs(5);
    let asking = replies([asks([("party", party())], None)]);
    let pausing = scripted(|_, _| Answer::Result(again("s")));
    let waiting = scripted(|_, _| Answer::Silence);
    for (client, _log) in [asking, pausing, waiting] {
        let client = client.on_form(async |form: FormRequest| {
            sleep(HOUR).await;
            form.decline()
        });
        let begun = Instant::now();
        let error = client.call_tool("book", ()).deadline(limit).await.expect_err("out of time");
        assert!(matches!(error, Error::Timeout { after, .. } if after == limit), "{error:?}");
        assert_eq!(begun.elapsed(), limit);
    }
}

/// Says when it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// C12: giving a call up ends it wherever it is: the handlers that ask, the pause, or the request under way.
#[tokio::test(start_paused = true)]
async fn giving_up_ends_everything() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let watch = Arc::clone(&dropped);
    let (client, log) = replies([asks([("a", party()), ("b", party())], None)]);
    let client = client.on_form(move |form: FormRequest| {
        let guard = Dropped(Arc::clone(&watch));
        async move {
            sleep(HOUR).await;
            drop(guard);
            form.decline()
        }
    });
    let call = client.call_tool("book", ()).into_future();
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err(), "still asking");
    assert_eq!((dropped.load(Ordering::SeqCst), log.len()), (2, 1), "both handlers ended");

    let (client, log) = scripted(|_, _| Answer::Result(again("s")));
    let call = client.call_tool("book", ()).into_future();
    assert!(tokio::time::timeout(Duration::from_secs(3), call).await.is_err(), "still pausing");
    let so_far = log.len();
    sleep(HOUR).await;
    assert_eq!(log.len(), so_far, "nothing is sent afterwards");

    let respond = |number, _: &serde_json::Value| match number {
        0 => Answer::Result(again("s")),
        _ => Answer::Silence,
    };
    let (client, log) = scripted(respond);
    let call = client.call_tool("book", ()).into_future();
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err(), "still waiting");
    assert_eq!((log.len(), log.given_up()), (2, 1), "the request under way is cancelled");
}

/// C12: a turn that is given up is cancelled too.
#[tokio::test(start_paused = true)]
async fn giving_up_a_turn_cancels_it() {
    let respond = |number, _: &serde_json::Value| match number {
        0 => Answer::Result(asks([("a", party())], None)),
        _ => Answer::Silence,
    };
    let (client, log) = scripted(respond);
    let Turn::Asked(pending) = client.call_tool("book", ()).one_round().await.expect("a turn") else {
        panic!("it asks")
    };
    let turn = client.resume(pending.decline("a").expect("fits")).deadline(Duration::from_secs(1));
    assert!(matches!(turn.await, Err(Error::Timeout { .. })));
    assert_eq!(log.given_up(), 1);
}
