//! Tests of the bytes that subscriptions keep.

use roundtrip_core::wire::{ClientCapabilities, ProtocolVersion};

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
