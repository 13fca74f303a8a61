//! Heads of requests that break the rules of HTTP.

use roundtrip::{Server, Tool};
use serde_json::json;
use tower_service::Service as _;

use crate::support::{Answer, Running, changed, headers, message};

fn server() -> Server {
    Server::new("s", "1").tool(Tool::new("any", async || "ok"))
}

/// Builds a call with its head: a request line, headers in front of the usual ones, and the body.
fn call(line: &str, more: &str) -> String {
    let body = message(1, "tools/call", json!({ "name": "any" }));
    let usual = headers(&body).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
    let body = body.to_string();
    format!("{line}\r\n{more}{usual}Content-Length: {}\r\n\r\n{body}", body.len())
}

async fn answer(running: &Running, request: &str) -> Answer {
    let mut connection = running.connect().await;
    connection.raw(request.as_bytes()).await;
    connection.read().await
}

/// H7: a head has 64 KiB, whatever it is made of and however it arrives.
#[tokio::test]
async fn a_head_past_its_bound_is_refused() {
    const LINE: &str = "POST /mcp HTTP/1.1";
    let running = Running::start(server()).await;
    let host = "Host: localhost\r\n";
    let one = |size| call(LINE, &format!("{host}X-Filler: {}\r\n", "x".repeat(size)));
    assert_eq!(answer(&running, &one(60_000)).await.status, 200);
    for size in [66_000, 70_000, 90_000, 120_000] {
        let many = format!("X-Filler: {}\r\n", "x".repeat(size / 64)).repeat(64);
        let requests = [
            (one(size), &[431][..]),
            (call(LINE, &format!("{host}{many}")), &[431]),
            (call(&format!("POST /mcp?{} HTTP/1.1", "x".repeat(size)), host), &[414, 431]),
            (call(&format!("GET /{} HTTP/1.1", "x".repeat(size)), host), &[414, 431]),
        ];
        for (request, expected) in &requests {
            for _ in 0..3 {
                let mut connection = running.connect().await;
                connection.raw(request.as_bytes()).await;
                let status = connection.head().await.status;
                assert!(expected.contains(&status), "{size}: {status} for {}", &request[..40]);
            }
        }
    }
    // Behind another call, in one piece with the end of it.
    let long =
        call(LINE, host).replace("\"_meta\"", &format!("\"filler\":\"{}\",\"_meta\"", "x".repeat(200_000)));
    let (head, body) = long.split_once("\r\n\r\n").expect("a head");
    let length = head.find("Content-Length").expect("a length");
    let long = format!("{}Content-Length: {}\r\n\r\n{body}", &head[..length], body.len());
    for size in [66_000, 70_000, 90_000] {
        let mut connection = running.connect().await;
        connection.raw(format!("{}{long}{}", call(LINE, host), one(size)).as_bytes()).await;
        for status in [200, 200] {
            assert_eq!(connection.read().await.status, status, "{size}");
        }
        assert_eq!(connection.head().await.status, 431, "{size}");
    }
}

/// H7: blanks around values and empty lines ahead of a request have an end too, 128 KiB with the rest of the head.
#[tokio::test]
async fn blanks_in_a_head_have_an_end() {
    const LINE: &str = "POST /mcp HTTP/1.1";
    let running = Running::start(server()).await;
    let blanks = |size| call(LINE, &format!("Host: localhost\r\nX-Filler:{}x\r\n", " ".repeat(size)));
    let lines = |size: usize| format!("{}{}", "\r\n".repeat(size / 2), call(LINE, "Host: localhost\r\n"));
    for request in [blanks(60_000), lines(60_000)] {
        assert_eq!(answer(&running, &request).await.status, 200);
    }
    for request in [blanks(140_000), blanks(1_000_000), lines(140_000), lines(1_000_000)] {
        let mut connection = running.connect().await;
        connection.raw(request.as_bytes()).await;
        assert_eq!(connection.head().await.status, 431);
    }
}

/// H6: a request of HTTP/1.1 names one host (RFC 9112, 3.2). With two, a proxy in front may have checked the other.
#[tokio::test]
async fn a_request_names_one_host() {
    let running = Running::start(server()).await;
    for (line, hosts, status) in [
        ("POST /mcp HTTP/1.1", &["localhost"][..], 200),
        ("POST /mcp HTTP/1.1", &[], 400),
        ("POST /mcp HTTP/1.1", &["localhost", "localhost"], 400),
        ("POST /mcp HTTP/1.1", &["localhost", "evil.example"], 400),
        ("POST /mcp HTTP/1.1", &["evil.example", "localhost"], 400),
        ("POST http://localhost/mcp HTTP/1.1", &[], 400),
        ("POST /elsewhere HTTP/1.1", &[], 400),
        ("POST /elsewhere HTTP/1.1", &["localhost", "evil.example"], 400),
        ("POST /mcp HTTP/1.0", &[], 200),
    ] {
        let more = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect::<String>();
        let answer = answer(&running, &call(line, &more)).await;
        assert_eq!(answer.status, status, "{line} {hosts:?}");
        assert_eq!(answer.json().get("error").is_some(), status != 200);
    }
}

/// H6: a target that is a whole URL names the host, and `Host` is ignored (RFC 9112, 3.2.2).
#[tokio::test]
async fn the_target_names_the_host_if_it_can() {
    let running = Running::start(server()).await;
    for (target, host, status) in [
        ("http://evil.example/mcp", "localhost", 403),
        ("http://localhost:80@evil.example/mcp", "localhost", 403),
        ("http://localhost:8000/mcp", "evil.example", 200),
        ("http://localhost:8000/mcp", "localhost:8000", 200),
    ] {
        let request = call(&format!("POST {target} HTTP/1.1"), &format!("Host: {host}\r\n"));
        assert_eq!(answer(&running, &request).await.status, status, "{target} {host}");
    }
}

/// H6: so it is for a mounted service that checks hosts. A service that does not leaves the head to the stack in front.
#[tokio::test]
async fn a_mounted_service_takes_one_host_too() {
    let http = server().into_http().expect("a server");
    let body = message(1, "tools/call", json!({ "name": "any" }));
    for (target, hosts, loopback) in [
        ("/mcp", &[][..], 400),
        ("/mcp", &["localhost", "evil.example"], 400),
        ("http://evil.example/mcp", &["localhost"], 403),
        ("/mcp", &["localhost"], 200),
    ] {
        for (http, status) in [(http.clone(), 200), (http.clone().loopback_only(), loopback)] {
            let request = http::Request::post(target);
            let request = hosts.iter().fold(request, |request, host| request.header("Host", *host));
            let request = headers(&body)
                .iter()
                .fold(request, |request, (name, value)| request.header(name.as_str(), value.as_str()));
            let request = request.body(body.to_string()).expect("a request");
            let response = http.clone().call(request).await.expect("an answer");
            assert_eq!(response.status(), status, "{target} {hosts:?}");
        }
    }
}

/// H8: a body that is compressed is 415, and the answer says what is taken.
#[tokio::test]
async fn a_compressed_body_is_refused() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    let body = message(1, "tools/call", json!({ "name": "any" }));
    for (coding, status) in [
        ("gzip", 415),
        ("identity, br", 415),
        ("deflate", 415),
        ("", 200),
        ("identity", 200),
        ("Identity", 200),
    ] {
        let sent = changed(&body, "Content-Encoding", Some(coding));
        let answer = connection.post(&sent, body.to_string().as_bytes()).await;
        assert_eq!(answer.status, status, "{coding}");
        assert_eq!(answer.header("accept-encoding"), (status == 415).then_some("identity"));
        assert_eq!(answer.json().get("error").is_some(), status == 415);
    }
    let mut twice = changed(&body, "Content-Encoding", Some("identity"));
    twice.push(("Content-Encoding".into(), "gzip".into()));
    assert_eq!(connection.post(&twice, body.to_string().as_bytes()).await.refusal().0, 415);
}
