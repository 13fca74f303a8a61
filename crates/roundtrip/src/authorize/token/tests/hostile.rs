//! Issuers over real sockets: a good one, and hostile ones.

use roundtrip_core::auth::AuthRequest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::authorize::token::fetch::{Fetch as _, HttpFetch};

/// A resource on this machine, whose issuer may be there too.
const LOCAL: &str = "http://127.0.0.1:1/mcp";

fn policy(resource: &str) -> UrlPolicy {
    UrlPolicy::new(HttpUrl::parse(resource).unwrap(), false).unwrap()
}

fn over_http(issuer: &Issuer, resource: &str) -> CheckerSettings {
    CheckerSettings {
        rules: ClaimRules::new(LOCAL),
        policy: policy(resource),
        fetch: None,
        ..settings(issuer)
    }
}

/// A server that answers every request with the same bytes, and then again and again with others.
async fn server(head: String, endless: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = head.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                if stream.read(&mut request).await.is_ok() && stream.write_all(head.as_bytes()).await.is_ok()
                {
                    while !endless.is_empty() && stream.write_all(endless.as_bytes()).await.is_ok() {}
                }
            });
        }
    });
    url
}

async fn checked_with_keys_at(url: String, http: Option<reqwest::Client>) -> Result<Arc<Claims>, CheckError> {
    let issuer = Issuer::new("http://127.0.0.1:2", LOCAL).unwrap();
    let mut settings = CheckerSettings { http, ..over_http(&issuer, LOCAL) };
    settings.issuers[0].jwks = Some(url);
    TokenChecker::new(settings).check(&alice(&issuer).sign()).await
}

/// O23, O26: over HTTP, keys are found and opaque tokens introspected; an issuer that stops is an outage.
#[tokio::test]
async fn an_issuer_is_reached_over_http() {
    let issuer = Issuer::bind(LOCAL).await.unwrap();
    issuer.set_max_age(Duration::from_secs(600));
    let introspection = vec![issuer.introspection()];
    let checker = TokenChecker::new(CheckerSettings { introspection, ..over_http(&issuer, LOCAL) });
    assert!(checker.check(&alice(&issuer).sign()).await.is_ok());
    assert!(checker.check(&alice(&issuer).opaque()).await.is_ok());
    assert_eq!((issuer.metadata_fetches(), issuer.key_fetches(), issuer.introspections()), (1, 1, 1));
    issuer.stop();
    let checked = checker.check(&alice(&issuer).opaque()).await;
    assert_eq!(checked.unwrap_err(), CheckError::Unavailable);
}

/// O23: an issuer on this machine is for resources on this machine.
#[tokio::test]
async fn a_public_resource_has_no_issuer_on_this_machine() {
    let issuer = Issuer::bind(LOCAL).await.unwrap();
    let checker = TokenChecker::new(over_http(&issuer, RESOURCE));
    assert_eq!(checker.check(&alice(&issuer).sign()).await.unwrap_err(), CheckError::Unavailable);
    assert_eq!(issuer.metadata_fetches(), 0);
}

/// O23: an issuer that nobody listens for is an outage.
#[tokio::test]
async fn a_closed_port_is_an_outage() {
    let issuer = Issuer::bind(LOCAL).await.unwrap();
    let (settings, token) = (over_http(&issuer, LOCAL), alice(&issuer).sign());
    drop(issuer);
    tokio::task::yield_now().await;
    assert_eq!(TokenChecker::new(settings).check(&token).await.unwrap_err(), CheckError::Unavailable);
}

/// O25: a response without an end is not read to its end.
#[tokio::test]
async fn endless_responses_are_cut_off() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"keys\": [".to_owned();
    let url = server(head, "                                ").await;
    assert_eq!(checked_with_keys_at(url, None).await.unwrap_err(), CheckError::Unavailable);
}

/// O25: a redirect is not followed, whatever the author's HTTP client does.
#[tokio::test]
async fn redirects_are_not_followed() {
    let keys = Issuer::new("http://127.0.0.1:2", LOCAL).unwrap().published_keys().to_string();
    let length = keys.len();
    let target =
        server(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{keys}"), "")
            .await;
    let found =
        format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let url = server(found, "").await;
    for http in [None, Some(reqwest::Client::new())] {
        let checked = checked_with_keys_at(url.clone(), http).await;
        assert_eq!(checked.unwrap_err(), CheckError::Unavailable);
    }
    // The keys at the target are read where they are asked for; they are others than those of the token.
    let checked = checked_with_keys_at(target, None).await;
    assert_eq!(checked.unwrap_err(), CheckError::Refused(TokenRefusal::Signature));
}

/// Checks which names are refused, with an HTTP client of the author's or without.
async fn refuses_private_names(http: Option<reqwest::Client>) {
    let error = async |resource: &str, url: &str| {
        let request = AuthRequest::get(HttpUrl::parse(url).unwrap());
        HttpFetch::new(policy(resource), http.clone()).send(request).await.unwrap_err()
    };
    let refused = error(RESOURCE, "https://localhost.:1/keys").await;
    assert!(refused.contains("private network"), "{refused}");
    for (resource, url) in [
        (LOCAL, "https://localhost:1/keys"),
        (LOCAL, "https://localhost.:1/keys"),
        ("https://localhost./mcp", "https://localhost.:1/keys"),
        (RESOURCE, "https://no-such-name.invalid/keys"),
    ] {
        let closed = error(resource, url).await;
        assert!(!closed.contains("private network"), "{resource} {url}: {closed}");
    }
}

/// O23: a name that resolves to this machine, or into a private network, is not connected to.
#[tokio::test]
async fn names_of_private_addresses_are_not_connected_to() {
    refuses_private_names(None).await;
}

/// O23: names are looked up ahead of an HTTP client of the author's, which has a resolver of its own.
#[tokio::test]
async fn names_are_checked_ahead_of_the_authors_client() {
    refuses_private_names(Some(reqwest::Client::builder().no_proxy().build().unwrap())).await;
}
