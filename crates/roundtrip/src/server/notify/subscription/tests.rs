//! Tests of the bytes that subscriptions keep.

use std::task::Waker;

use roundtrip_core::wire::{ClientCapabilities, InputRequests, ProtocolVersion, Raw, TaskStatus};
use serde_json::{Value, json};

use super::*;
use crate::server::{Peer, Principal};

fn named(name: &str) -> Owner {
    Owner::new(Some(&Principal::new(name)), None)
}

fn hub() -> Arc<Hub> {
    let hub = Arc::new(Hub::new());
    hub.limit(&Limits::default());
    hub
}

/// As much as fits into one message: 1,000 URIs of 4 KiB.
fn long(owner: &str) -> SubscriptionFilter {
    let uri = |number: usize| format!("app://{owner}/{number:0>4096}");
    SubscriptionFilter { resource_subscriptions: (0..1_000).map(uri).collect(), ..Default::default() }
}

fn open(hub: &Arc<Hub>, owner: &str, filter: SubscriptionFilter) -> Result<Subscription, ErrorObject> {
    hub.open(&named(owner), Some(RequestId::Number(1)), filter, None)
}

/// Z3, N1: subscriptions to long URIs are refused once they hold what they may together, and others still find room.
#[test]
fn twenty_five_subscriptions_with_long_uris_keep_no_more_than_their_share() {
    let (hub, share) = (hub(), Limits::default().subscription_bytes / 2);
    let (open_ones, refused): (Vec<_>, Vec<_>) =
        (0..25).map(|_| open(&hub, "eve", long("eve"))).partition(Result::is_ok);
    assert_eq!((open_ones.len(), refused.len()), (1, 24));
    assert!(refused.iter().all(|refused| refused.as_ref().is_err_and(|error| error.code == BUSY)));
    assert!((4_000_000..=share).contains(&hub.bytes()), "{}", hub.bytes());
    let others: Vec<_> = (0..25).filter_map(|_| open(&hub, "bob", long("bob")).ok()).collect();
    assert_eq!(others.len(), 1, "there is room for another owner");
    drop((open_ones, refused, others));
    assert_eq!(hub.bytes(), 0, "what has ended keeps nothing");
}

/// Z3: one caller does not take every place there is for listeners.
#[test]
fn one_principal_does_not_take_all_places_of_listeners() {
    let hub = hub();
    let all = |owner| -> Vec<_> {
        (0..1_000).map_while(|_| open(&hub, owner, SubscriptionFilter::default()).ok()).collect()
    };
    let (eve, bob) = (all("eve"), all("bob"));
    assert_eq!((eve.len(), bob.len()), (500, 250));
}

#[cfg(feature = "legacy")]
fn watch(subscription: &Subscription, uri: &str) -> Result<(), ErrorObject> {
    subscription.watch(uri, viewer(0))
}

/// A client with as many bytes of capabilities, and a few more.
fn viewer(bytes: usize) -> HeldViewer {
    let extensions = [("x".repeat(bytes), Default::default())].into();
    let capabilities = ClientCapabilities { extensions, ..Default::default() };
    HeldViewer::new(ProtocolVersion::LATEST, &capabilities, &Peer::default())
}

/// Z3: the capabilities of a client that watches resources are kept for their rules, and count.
#[test]
fn a_viewer_counts_what_its_client_declared() {
    let (hub, share) = (hub(), Limits::default().subscription_bytes / 2);
    let open = |viewer| {
        hub.open(&named("eve"), Some(RequestId::Number(1)), SubscriptionFilter::default(), Some(viewer))
    };
    let small = open(viewer(1_000)).expect("room");
    assert!((1_500..1_600).contains(&hub.bytes()), "{}", hub.bytes());
    assert!(open(viewer(share)).is_err_and(|error| error.code == BUSY));
    drop(small);
    assert_eq!(hub.bytes(), 0);
}

/// Z3: resources that are watched one by one count as much, those that are not any more count nothing, and a listener
/// that lags behind keeps no second copy.
#[cfg(feature = "legacy")]
#[test]
fn a_resource_that_is_watched_counts_until_it_is_not() {
    let hub = hub();
    let untagged = hub.open(&named("eve"), None, SubscriptionFilter::default(), None).expect("room");
    watch(&untagged, "app://first").expect("room");
    untagged.unwatch("app://first");
    let before = hub.bytes();
    let mut watched = 0;
    for uri in long("eve").resource_subscriptions {
        watched += usize::from(watch(&untagged, &uri).is_ok() && watch(&untagged, &uri).is_ok());
        hub.announce(Change::Resource(&uri));
    }
    assert_eq!(watched, 1_000);
    assert!((4_000_000..5_000_000).contains(&hub.bytes()));
    {
        let due = lock(&untagged.subscriber.due);
        assert_eq!(due.updated.len(), 1_000);
        assert!(due.updated.iter().all(|uri| Arc::strong_count(uri) == 2), "shared with what is watched");
    }
    for uri in long("eve").resource_subscriptions {
        untagged.unwatch(&uri);
        untagged.unwatch(&uri);
    }
    assert_eq!(hub.bytes(), before);
}

/// A task that has ended with a text of as many bytes.
fn ended(id: &str, bytes: usize, is_error: bool) -> Arc<Task> {
    let result = json!({ "content": [{ "type": "text", "text": "x".repeat(bytes) }], "isError": is_error });
    Arc::new(Task {
        task_id: id.to_owned(),
        status: TaskStatus::Completed,
        status_message: None,
        created_at: "2026-07-28T00:00:00Z".to_owned(),
        last_updated_at: "2026-07-28T00:00:00Z".to_owned(),
        ttl_ms: None,
        poll_interval_ms: None,
        input_requests: InputRequests::new(),
        result: Raw::of(&result).ok(),
        error: None,
    })
}

fn ids() -> Vec<String> {
    (0..100).map(|number| format!("task-{number:0>3}")).collect()
}

/// Starts a subscription and reads all that is due.
fn read(subscription: &Subscription) -> Vec<Value> {
    drop(subscription.poll_closed(&mut Context::from_waker(Waker::noop())));
    let parse = |message: Vec<u8>| serde_json::from_slice(&message).expect("JSON");
    std::iter::from_fn(|| subscription.pop()).map(parse).collect()
}

/// Z3, T27: a session that has no reader keeps no results of its tasks, which its notifications would not tell, and nothing at all
/// once they are read.
#[cfg(feature = "legacy")]
#[test]
fn a_session_without_a_reader_keeps_no_results_of_tasks() {
    let hub = hub();
    let session = hub.open(&named("eve"), None, SubscriptionFilter::default(), None).expect("room");
    let before = hub.bytes();
    for id in ids() {
        assert!(session.watch_task(&id));
        hub.announce(Change::Task(&ended(&id, 100_000, id.ends_with('7'))));
    }
    assert!((before + 10_000..before + 100_000).contains(&hub.bytes()), "{}", hub.bytes());
    let told = read(&session);
    assert_eq!(told.len(), 100);
    for (told, id) in told.iter().zip(ids()) {
        let status = if id.ends_with('7') { "failed" } else { "completed" };
        assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&json!(id), &json!(status)));
        assert!(told["params"].get("result").is_none(), "{told}");
    }
    assert_eq!(hub.bytes(), before, "tasks that have ended are not watched any more");
}

/// Z3: tasks that wait for a slow listener count with their results. Past its caller's share they are left out, and a listener that
/// waits is told however large one is.
#[test]
fn results_of_tasks_that_wait_for_a_slow_listener_are_bounded() {
    let (hub, share) = (hub(), Limits::default().subscription_bytes / 2);
    let filter = || SubscriptionFilter { task_ids: ids(), ..Default::default() };
    let slow = open(&hub, "eve", filter()).expect("room");
    let before = hub.bytes();
    for id in ids().iter().take(20) {
        for bytes in [2_000_000, 1_000_000] {
            hub.announce(Change::Task(&ended(id, bytes, false)));
        }
    }
    assert!((5_000_000..=share).contains(&hub.bytes()), "{}", hub.bytes());
    assert!(open(&hub, "bob", filter()).is_ok(), "there is room for another owner");
    let told = read(&slow);
    assert_eq!((told.len(), hub.bytes()), (1 + 8, before), "the acknowledgement, and as many as fit");
    assert!(told[1..].iter().all(|told| told["params"]["result"]["content"][0]["text"].is_string()));
    assert!(slow.poll_next(&mut Context::from_waker(Waker::noop())).is_pending());
    hub.announce(Change::Task(&ended("task-000", 2 * share, false)));
    assert_eq!((read(&slow).len(), hub.bytes()), (1, before));
}

/// Z3, N2: the last report of progress is all that waits for a session without a reader, and it counts.
#[cfg(feature = "legacy")]
#[test]
fn progress_that_waits_in_a_session_counts() {
    let hub = hub();
    let session = hub.open(&named("eve"), None, SubscriptionFilter::default(), None).expect("room");
    let before = hub.bytes();
    assert!(session.watch_task("task"));
    let mut report = ProgressNotificationParams {
        progress_token: RequestId::Number(1),
        progress: 0.0,
        total: None,
        message: Some("x".repeat(1_000_000)),
        meta: NotificationMeta::default(),
    };
    for step in 1..20 {
        report.progress = f64::from(step);
        hub.announce_progress("task", &report);
    }
    assert!((1_000_000..1_001_000).contains(&(hub.bytes() - before)), "{}", hub.bytes());
    hub.announce(Change::Task(&ended("task", 1, false)));
    assert_eq!((read(&session).len(), hub.bytes()), (2, before));
}
