//! What the client keeps, for how long, and what makes it let go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::{Catalog, Change, Client, Tool};
use tokio::time::advance;

use crate::fixture::server;

/// A client, what its server offers, and how often it has been asked.
fn counted() -> (Client, Catalog, impl Fn() -> usize) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let server = server().around(move |_, next| {
        counter.fetch_add(1, Ordering::Relaxed);
        next.run()
    });
    let catalog = server.catalog();
    let client = Client::in_process(server).expect("a sound server");
    (client, catalog, move || asked.swap(0, Ordering::Relaxed))
}

async fn late() -> String {
    "late".to_owned()
}

/// N3: a result is kept for as long as the server says it stays fresh, page by page, and not longer.
#[tokio::test(start_paused = true)]
async fn fresh_results_are_kept_until_their_time_is_over() {
    let (client, _, asked) = counted();
    client.list_tools().await.expect("tools");
    assert_eq!(asked(), 3, "three pages");
    advance(Duration::from_secs(59)).await;
    assert_eq!(client.list_tools().await.expect("tools").len(), 6);
    assert_eq!(asked(), 0);
    advance(Duration::from_secs(2)).await;
    client.list_tools().await.expect("tools");
    assert_eq!(asked(), 3);
}

/// N3: only what has a time to live is kept; clients, and calls, can do without.
#[tokio::test]
async fn what_has_no_time_to_live_is_not_kept() {
    let (client, _, asked) = counted();
    for _ in 0..2 {
        client.list_prompts().await.expect("prompts");
        client.list_tools().fresh().await.expect("tools");
        client.list_tools().meta("com.example/tenant", 1).await.expect("tools");
    }
    assert_eq!(asked(), 2 * (1 + 3 + 3));
    let client = client.cache(0);
    for _ in 0..2 {
        client.list_tools().await.expect("tools");
    }
    assert_eq!(asked(), 6);
}

/// N3: the client drops what it keeps of a list when it is told that the list has changed.
#[tokio::test]
async fn a_changed_list_is_dropped() {
    let (client, catalog, asked) = counted();
    let mut changes = client.listen().tools().resource("app://motto").await.expect("a stream");
    assert_eq!(client.list_tools().await.expect("tools").len(), 6);
    client.read_resource("app://motto").await.expect("the motto");
    asked();
    catalog.add(Tool::new("late", late)).expect("a new tool");
    assert_eq!(changes.next().await.expect("open").expect("a change"), Change::Tools);
    assert_eq!(client.list_tools().await.expect("tools").len(), 7);
    assert_eq!(asked(), 4);
    client.read_resource("app://motto").await.expect("the motto");
    assert_eq!(asked(), 0, "another change than that of the resource");
    catalog.resource_updated("app://motto");
    changes.next().await.expect("open").expect("a change");
    client.read_resource("app://motto").await.expect("the motto");
    assert_eq!(asked(), 1);
}

/// N3: what is kept is found by method and URI alone, and there is a bound to how much is kept.
#[tokio::test]
async fn the_oldest_result_makes_room() {
    let (client, _, asked) = counted();
    let client = client.cache(3);
    client.read_resource("app://motto").await.expect("the motto");
    client.read_resource("app://motto").await.expect("the motto");
    assert_eq!(asked(), 1);
    client.list_tools().await.expect("three pages");
    assert_eq!(asked(), 3);
    client.read_resource("app://motto").await.expect("the motto");
    assert_eq!(asked(), 1, "it had to make room");
}
