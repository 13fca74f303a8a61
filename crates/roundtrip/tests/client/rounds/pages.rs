//! Web pages that servers want people to visit: which of them a handler gets to see.

use std::sync::{Arc, Mutex};

use roundtrip::client::ClientLimits;
use roundtrip::{Error, UrlRequest};
use serde_json::{Value, json};

use super::script::{asks, done, page, replies};

fn page_at(url: &str) -> Value {
    let mut question = page();
    question["params"]["url"] = json!(url);
    question
}

/// E5: a page that is not on the web ends the call before any handler sees it, and before anybody who takes questions by
/// hand does; the error says what was wrong with it.
#[tokio::test]
async fn a_url_that_is_not_of_http_reaches_no_handler() {
    let refused = [
        ("javascript:alert(1)", "scheme"),
        ("JavaScript:alert(1)", "scheme"),
        ("data:text/html,<b>login</b>", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("ftp://x.example/", "scheme"),
        ("vscode://open?x", "scheme"),
        ("/relative", "relative URL"),
        ("x.example/in", "relative URL"),
        ("", "relative URL"),
        ("https:x.example", "absolute"),
        ("https:\\\\x.example", "absolute"),
        ("https://", "host"),
        ("https://x.example:99999/", "port"),
        ("java\nscript:alert(1)", "control characters"),
        (" https://x.example", "blanks"),
        ("https://x.example/\u{1b}[31m", "control characters"),
    ];
    for (url, why) in refused {
        let question = asks([("login", page_at(url))], Some("s"));
        let (client, log) = replies([question.clone(), question]);
        let client = client.on_url(async |page: UrlRequest| -> roundtrip::client::UrlAnswer {
            panic!("sent to {}", page.url)
        });
        let by_hand = client.call_tool("book", ()).once().await.map(drop);
        for error in [client.call_tool("book", ()).await.map(drop), by_hand] {
            let Err(Error::PeerMisbehaved(said)) = &error else { panic!("misbehaved, not {error:?}") };
            let said = said.to_string();
            assert!(said.contains("`login` (url)") && said.contains(why), "{said}");
            assert!(!said.chars().any(char::is_control), "{said}");
        }
        assert_eq!(log.len(), 2, "nothing is answered");
    }
}

/// E5: a URL has a largest length, which can be set, and the error does not repeat it.
#[tokio::test]
async fn a_url_of_a_mebibyte_reaches_no_handler() {
    let mut short = ClientLimits::default();
    short.url_bytes = 30;
    for (length, limits) in [(1 << 20, ClientLimits::default()), (31, short)] {
        let url = format!("https://x.example/{}", "x".repeat(length - 18));
        let (client, _log) = replies([asks([("login", page_at(&url))], Some("s"))]);
        let client = client.limits(limits).on_url(async |page: UrlRequest| page.consent());
        let error = client.call_tool("book", ()).await.expect_err("too long");
        let Error::PeerMisbehaved(why) = &error else { panic!("misbehaved, not {error:?}") };
        let why = why.to_string();
        assert!(why.contains(&format!("{length} bytes")) && why.len() < 300, "{why}");
    }
}

/// E5: pages on the web are seen as they were written.
#[tokio::test]
async fn pages_on_the_web_are_seen_as_they_were_written() {
    let urls = [
        "https://x.example",
        "HTTPS://X.example/In?a=b&c=%20#d",
        "http://127.0.0.1:8080/cb",
        "https://bücher.example/ü",
        "https://[::1]/",
    ];
    for url in urls {
        let (client, _log) = replies([asks([("login", page_at(url))], Some("s")), done()]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let client = client.on_url(move |page: UrlRequest| {
            noted.lock().expect("seen").push(page.url.clone());
            async move { page.consent() }
        });
        client.call_tool("book", ()).await.expect("a result");
        assert_eq!(*seen.lock().expect("seen"), [url]);
    }
}
