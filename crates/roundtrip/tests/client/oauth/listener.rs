//! The loopback listener of a sign-in.

use std::time::Duration;

use roundtrip::Error;
use roundtrip::oauth::store::MemoryStore;
use roundtrip::oauth::{HttpUrl, OAuth};
use roundtrip::wire::CallToolResult;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

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
    let (call, url, address) = begun(&world).await;
    let state = parameter(&url, "state");
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
        let response = raw(&address, request).await;
        assert!(response.starts_with("HTTP/1.1 404"), "{request}: {response}");
        assert!(
            !response.contains("guess") && !response.contains("b%3E") && !response.contains("<b>"),
            "{response}"
        );
    }
    // A connection that sends nothing does not hold up the others.
    let _silent = TcpStream::connect(&address).await.expect("a listener");
    assert!(!call.is_finished());
    visit(url).await.expect("a page");
    call.await.expect("no panic").expect("a result");
    TcpStream::connect(&address).await.expect_err("the listener has ended");
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

/// A sign-in whose browser is the test: its call, the URL of the browser, and the address of the listener.
async fn begun(world: &World) -> (JoinHandle<Result<CallToolResult, Error>>, HttpUrl, String) {
    let (send, mut opened) = mpsc::unbounded_channel();
    let client = world.client(OAuth::new("Tests").browser(move |url: HttpUrl| {
        send.send(url).expect("a test that waits");
        async { Ok::<_, std::io::Error>(()) }
    }));
    let call = tokio::spawn(client.call_tool("hello", ()).into_future());
    let url = opened.recv().await.expect("a URL");
    let redirect = parameter(&url, "redirect_uri");
    let address = redirect.trim_start_matches("http://").trim_end_matches("/callback").to_owned();
    (call, url, address)
}

/// O65: a callback that cannot be read has no `state` to show that it is ours: it is dropped, and the wait continues.
#[tokio::test]
async fn an_unreadable_callback_of_a_stranger_ends_no_sign_in() {
    let world = World::of(greeter()).await;
    let (call, url, address) = begun(&world).await;
    let many = "&a=1".repeat(200);
    let long = "x".repeat(17 * 1024);
    for query in ["%ff", "a=%zz", &many, &long] {
        let response =
            raw(&address, &format!("GET /callback?{query} HTTP/1.1\r\nhost: {address}\r\n\r\n")).await;
        assert!(response.starts_with("HTTP/1.1 404"), "{query}: {response}");
    }
    assert!(!call.is_finished());
    visit(url).await.expect("a page");
    call.await.expect("no panic").expect("a result");
}

/// O71: a page that has an image or a frame at the listener is not a browser that comes back.
#[tokio::test]
async fn a_request_for_a_part_of_a_page_is_no_callback() {
    let world = World::of(greeter()).await;
    let (call, url, address) = begun(&world).await;
    let state = parameter(&url, "state");
    for part in ["image", "script", "empty", "iframe"] {
        let request = format!(
            "GET /callback?error=access_denied&state={state}&iss={} HTTP/1.1\r\nhost: {address}\r\nsec-fetch-dest: {part}\r\n\r\n",
            world.base
        );
        let response = raw(&address, &request).await;
        assert!(response.starts_with("HTTP/1.1 404"), "{part}: {response}");
    }
    assert!(!call.is_finished());
    let browser = reqwest::Client::new().get(url.as_str()).header("sec-fetch-dest", "document");
    browser.send().await.expect("a page");
    call.await.expect("no panic").expect("a result");
}

/// O71: connections that send nothing, or never the end of a request, do not keep the callback out.
#[tokio::test]
async fn idle_connections_do_not_keep_the_callback_out() {
    let world = World::of(greeter()).await;
    let (call, url, address) = begun(&world).await;
    let mut idle = Vec::new();
    for number in 0..128 {
        let mut stream = TcpStream::connect(&address).await.expect("a listener");
        if number % 2 == 0 {
            stream.write_all(b"GET /callback?").await.ok();
        }
        idle.push(stream);
    }
    let come_back = async {
        visit(url).await.expect("a page");
        call.await.expect("no panic").expect("a result");
    };
    tokio::time::timeout(Duration::from_secs(5), come_back).await.expect("no wait for the others");
}

/// O71: a request whose head does not end is given up after a second.
#[tokio::test]
async fn a_head_without_end_is_given_up() {
    let world = World::of(greeter()).await;
    let (call, _, address) = begun(&world).await;
    let mut slow = TcpStream::connect(&address).await.expect("a listener");
    slow.write_all(b"GET /callback HTTP/1.1\r\nhost: ").await.expect("a connection");
    let mut silent = TcpStream::connect(&address).await.expect("a listener");
    for stream in [&mut slow, &mut silent] {
        let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut Vec::new())).await;
        ended.expect("an end in time").ok();
    }
    call.abort();
}
