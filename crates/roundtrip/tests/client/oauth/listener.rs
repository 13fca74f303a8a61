//! The loopback listener of a sign-in.

use std::time::Duration;

use roundtrip::oauth::store::MemoryStore;
use roundtrip::oauth::{HttpUrl, OAuth};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::sign_in::greeter;
use super::world::{World, visit};

/// Sends a request as it stands, and returns the response.
async fn raw(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    stream.write_all(request.as_bytes()).await.expect("a connection");
    let mut response = String::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut response)).await;
    read.expect("an answer in time").expect("an answer");
    response
}

/// Returns the parameter of a URL.
fn parameter(url: &HttpUrl, name: &str) -> String {
    let url = url::Url::parse(url.as_str()).expect("a URL");
    let found = url.query_pairs().find(|(found, _)| found == name).expect("the parameter");
    found.1.into_owned()
}

/// O71, O65: the listener is on 127.0.0.1, has one path, checks `Host`, reflects nothing, drops callbacks of others, and ends
/// with the callback of its sign-in.
#[tokio::test]
async fn the_listener_takes_its_own_callback_alone() {
    let world = World::of(greeter()).await;
    let (send, mut opened) = mpsc::unbounded_channel();
    let client = world.client(OAuth::new("Tests").browser(move |url: HttpUrl| {
        send.send(url).expect("a test that waits");
        async { Ok::<_, std::io::Error>(()) }
    }));
    let call = tokio::spawn(client.call_tool("hello", ()).into_future());
    let url = opened.recv().await.expect("a URL");
    let (redirect, state) = (parameter(&url, "redirect_uri"), parameter(&url, "state"));
    let address =
        redirect.strip_prefix("http://").expect("http").strip_suffix("/callback").expect("one path");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let foreign = [
        format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n"),
        format!("GET /favicon.ico HTTP/1.1\r\nhost: {address}\r\n\r\n"),
        format!("GET /callback HTTP/1.1\r\nhost: {address}\r\n\r\n"),
        format!("GET /callback?code=1&state=guess&iss={} HTTP/1.1\r\nhost: {address}\r\n\r\n", world.base),
        format!("GET /callback?code=%3Cb%3Ex&state={state} HTTP/1.1\r\nhost: evil.example\r\n\r\n"),
        format!(
            "POST /callback?code=1&state={state} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\n\r\n"
        ),
    ];
    for request in &foreign {
        let response = raw(address, request).await;
        assert!(response.starts_with("HTTP/1.1 404"), "{request}: {response}");
        assert!(
            !response.contains("guess") && !response.contains("b%3E") && !response.contains("<b>"),
            "{response}"
        );
    }
    // A connection that sends nothing does not hold up the others.
    let _silent = TcpStream::connect(address).await.expect("a listener");
    assert!(!call.is_finished());
    visit(url).await.expect("a page");
    call.await.expect("no panic").expect("a result");
    TcpStream::connect(address).await.expect_err("the listener has ended");
}

/// O72: a registration is used again at its port, and made anew where the port is taken.
#[tokio::test]
async fn a_registration_is_used_again_where_its_port_is_free() {
    let world = World::of(greeter()).await;
    let store = MemoryStore::new();
    let client = world.client(OAuth::new("Tests").browser(visit).store(store));
    let redirect = |number: usize| world.seen("/authorize")[number].query["redirect_uri"].clone();
    for _ in 0..2 {
        client.call_tool("hello", ()).await.expect("a result");
        client.sign_out().await.expect("an empty store");
    }
    assert_eq!((world.count("/authorize"), world.count("/register")), (2, 1));
    assert_eq!(redirect(0), redirect(1));
    let address = redirect(0).trim_start_matches("http://").trim_end_matches("/callback").to_owned();
    let _taken = TcpListener::bind(address).await.expect("the port");
    client.call_tool("hello", ()).await.expect("a result");
    assert_eq!((world.count("/authorize"), world.count("/register")), (3, 2));
    assert_ne!(redirect(0), redirect(2));
}
