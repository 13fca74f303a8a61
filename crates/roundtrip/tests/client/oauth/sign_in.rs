//! Sign-in by a browser, renewal, and the requests that these make.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::client::ApiMisuse;
use roundtrip::oauth::store::MemoryStore;
use roundtrip::oauth::{AssertionRequest, AuthError, HttpUrl, Idp, OAuth, PrivateKey};
use roundtrip::{Error, Server, Tool};
use tokio::sync::mpsc;

use super::world::{World, person, visit};

pub(super) fn greeter() -> Server {
    Server::new("greeter", "1.0.0").tool(Tool::new("hello", async || "hello"))
}

/// O75: the token goes to the server, and to nothing else.
#[tokio::test]
async fn a_call_signs_in_and_goes_on() {
    let world = World::of(greeter()).await;
    let client = world.client(person());
    let result = client.call_tool("hello", ()).await.expect("a result");
    assert_eq!(result.content[0].as_text(), Some("hello"));
    assert_eq!((world.count("/authorize"), world.count("/register"), world.count("/token")), (1, 1, 1));
    for seen in &world.shared().log {
        let is_server = seen.path == "/mcp";
        let token = seen.header("authorization").is_some();
        assert!(is_server || !token, "{seen:?}");
        assert!(!seen.query.values().any(|value| value.starts_with("access-")), "{seen:?}");
    }
    client.call_tool("hello", ()).await.expect("a result");
    assert_eq!(world.count("/token"), 1);
}

/// O54: discovery, registration and token requests go through the author's HTTP client.
#[tokio::test]
async fn the_authors_http_client_makes_every_request() {
    let world = World::of(greeter()).await;
    let marked = [("x-proxy", "ours")].map(|(name, value)| {
        (
            name.parse::<http::HeaderName>().expect("a name"),
            value.parse::<http::HeaderValue>().expect("a value"),
        )
    });
    let own = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .default_headers(marked.into_iter().collect())
        .build()
        .expect("a client");
    let client = world.client(person()).http_client(own);
    client.call_tool("hello", ()).await.expect("a result");
    world.end_tokens();
    client.call_tool("hello", ()).await.expect("a result");
    let log = world.shared().log.clone();
    // The browser is another program.
    let ours: Vec<_> = log.iter().filter(|seen| seen.path != "/authorize").collect();
    assert!(ours.len() >= 6, "{ours:?}");
    assert!(ours.iter().all(|seen| seen.header("x-proxy") == Some("ours")), "{ours:?}");
}

/// O80, O88: calls that need a sign-in at the same time share one.
#[tokio::test]
async fn concurrent_calls_share_one_sign_in() {
    let world = World::of(greeter()).await;
    let client = world.client(person());
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(client.call_tool("hello", ()).into_future())).collect();
    for call in calls {
        call.await.expect("no panic").expect("a result");
    }
    assert_eq!((world.count("/authorize"), world.count("/token")), (1, 1));
}

/// O84: a token that the server refuses is renewed, and no person is asked.
#[tokio::test]
async fn a_refused_token_is_renewed_without_a_browser() {
    let world = World::of(greeter()).await;
    let client = world.client(person());
    client.call_tool("hello", ()).await.expect("a result");
    world.end_tokens();
    client.call_tool("hello", ()).await.expect("a result");
    let grants: Vec<_> = world.seen("/token").iter().map(|seen| seen.form()["grant_type"].clone()).collect();
    assert_eq!(grants, ["authorization_code", "refresh_token"]);
    assert_eq!(world.count("/authorize"), 1);
}

/// O87: a second 401 for the same request, after a fresh token, is final.
#[tokio::test]
async fn a_server_that_refuses_every_token_is_given_up() {
    let world = World::of(greeter()).await;
    world.shared().rejects_all = true;
    let error = world.client(person()).call_tool("hello", ()).await.expect_err("no token helps");
    assert!(matches!(&error, Error::Refused(refusal) if refusal.status == 401), "{error:?}");
    assert_eq!(world.count("/authorize"), 1);
}

/// O86: clients that share a store sign in once.
#[tokio::test]
async fn a_store_outlives_its_client() {
    let world = World::of(greeter()).await;
    let store = MemoryStore::new();
    world.client(person().store(store.clone())).call_tool("hello", ()).await.expect("a result");
    let other = world.client(OAuth::new("Tests").store(store.clone()));
    other.call_tool("hello", ()).await.expect("a result");
    assert_eq!(world.count("/authorize"), 1);
    other.sign_out().await.expect("an empty store");
    let error = other.call_tool("hello", ()).await.expect_err("no browser");
    assert!(matches!(error, Error::SignIn(_)), "{error:?}");
}

/// O74: time that a person takes does not count against the timeout of the request, nor against that of a list.
#[tokio::test]
async fn a_person_may_take_longer_than_a_request() {
    let world = World::of(greeter()).await;
    let slow = OAuth::new("Tests").browser(async |url: HttpUrl| {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        visit(url).await
    });
    let client = world.client(slow).timeout(Duration::from_secs(1));
    assert_eq!(client.list_tools().await.expect("a list").len(), 1);
    client.sign_out().await.expect("an empty store");
    client.call_tool("hello", ()).await.expect("a result");
    assert_eq!(world.count("/authorize"), 2);
}

/// O74: dropping the call ends the wait and frees the port; the next call signs in anew.
#[tokio::test]
async fn dropping_the_call_frees_the_port() {
    let world = World::of(greeter()).await;
    let (send, mut opened) = mpsc::unbounded_channel();
    let client = world.client(OAuth::new("Tests").browser(move |url: HttpUrl| {
        send.send(url).expect("a test that waits");
        async { Ok::<_, std::io::Error>(()) }
    }));
    let call = tokio::spawn(client.call_tool("hello", ()).into_future());
    let url = url::Url::parse(opened.recv().await.expect("a URL").as_str()).expect("a URL");
    let redirect = url.query_pairs().find(|(name, _)| name == "redirect_uri").expect("a redirect URI").1;
    let address = redirect.trim_start_matches("http://").trim_end_matches("/callback").to_owned();
    tokio::net::TcpStream::connect(&address).await.expect("a listener");
    call.abort();
    let freed = async {
        while tokio::net::TcpStream::connect(&address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), freed).await.expect("a free port");
}

/// O68: a refusal of the person is an error with the words of the authorization server.
#[tokio::test]
async fn a_refused_consent_is_told() {
    let world = World::of(greeter()).await;
    world.shared().consent = Some("access_denied");
    let error = world.client(person()).call_tool("hello", ()).await.expect_err("a refusal");
    assert!(
        matches!(&error, Error::NotAuthorized(why) if matches!(**why, AuthError::Callback(_))),
        "{error:?}"
    );
    assert!(error.to_string().contains("access_denied"), "{error}");
    assert_eq!(world.count("/token"), 0);
}

#[tokio::test]
async fn a_browser_that_fails_fails_the_call() {
    let world = World::of(greeter()).await;
    let broken = OAuth::new("Tests").browser(async |_: HttpUrl| Err::<(), _>("no display"));
    let error = world.client(broken).call_tool("hello", ()).await.expect_err("no browser");
    assert!(matches!(error, Error::Handler(_)), "{error:?}");
    assert!(error.to_string().contains("no display"), "{error}");
}

#[tokio::test]
async fn a_browser_that_panics_fails_the_call() {
    let world = World::of(greeter()).await;
    let broken = OAuth::new("Tests")
        .browser(|_: HttpUrl| -> std::future::Ready<Result<(), std::io::Error>> { panic!("no display") });
    let error = world.client(broken).call_tool("hello", ()).await.expect_err("no browser");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

/// O65: a browser that never comes back ends after a time.
#[tokio::test]
async fn a_browser_that_never_comes_back_is_given_up() {
    let world = World::of(greeter()).await;
    let idle = OAuth::new("Tests").patience(Duration::from_millis(50));
    let idle = idle.browser(async |_: HttpUrl| Ok::<_, std::io::Error>(()));
    let error = world.client(idle).call_tool("hello", ()).await.expect_err("no answer");
    assert!(matches!(&error, Error::NotAuthorized(why) if **why == AuthError::NoCallback), "{error:?}");
}

#[tokio::test]
async fn a_sign_in_and_a_header_of_the_authors_are_a_misuse() {
    let world = World::of(greeter()).await;
    let first = world.plain_client().header("Authorization", "Bearer x").oauth(person());
    let second = world.client(person()).header("authorization", "Bearer x");
    for client in [first, second] {
        let error = client.call_tool("hello", ()).await.expect_err("a misuse");
        assert!(matches!(error, Error::ApiMisuse(ApiMisuse::Settings(_))), "{error:?}");
        assert!(error.to_string().contains("authorization"), "{error}");
    }
    assert_eq!(world.shared().log.len(), 0);
}

#[tokio::test]
async fn mistakes_in_the_settings_are_told_before_anything_is_sent() {
    let world = World::of(greeter()).await;
    let mistakes = [
        (OAuth::new("Tests").secret("s"), "OAuth::registered"),
        (OAuth::new("Tests").client_metadata("http://agent.example/client.json"), "https"),
        (OAuth::new("Tests").redirect_uri("http://agent.example/callback"), "redirect URI"),
        (person().redirect_uri("https://agent.example/callback"), "leave `redirect_uri` out"),
        (OAuth::new("Tests").identity("token"), "OAuth::enterprise"),
        (OAuth::new("Tests").scopes(["two words"]), "scope"),
        (OAuth::machine("robot").secret("s"), "add `issuer`"),
        (OAuth::registered("app").signer(Arc::new(PrivateKey::generate().expect("a key"))), "add `issuer`"),
        (OAuth::registered("app").browser(visit), "add `issuer`"),
        (OAuth::enterprise(Idp::at("https://idp.example/token").client("app")).saml("x"), "add `issuer`"),
        (
            OAuth::workload("pod", async |_| Ok::<_, std::io::Error>("a token of the platform")),
            "add `issuer`",
        ),
    ];
    for (oauth, part) in mistakes {
        let error = world.client(oauth).call_tool("hello", ()).await.expect_err("a misuse");
        assert!(matches!(error, Error::ApiMisuse(_)) && error.to_string().contains(part), "{error}");
    }
    assert_eq!(world.shared().log.len(), 0);
}

/// O60: a secret goes to the issuer that the author names, and to another one only where the author says so.
#[tokio::test]
async fn a_secret_needs_its_issuer() {
    let world = World::of(greeter()).await;
    let machine = || OAuth::machine("robot").secret("s3cret");
    for named in
        [machine().issuer(world.issuer()), machine().server_issuer(world.issuer()), machine().any_issuer()]
    {
        world.client(named).call_tool("hello", ()).await.expect("a result");
    }
    assert_eq!(world.count("/token"), 3);
    let error = world.client(machine().issuer("https://login.example")).call_tool("hello", ()).await;
    let error = error.expect_err("another issuer");
    assert!(matches!(error, Error::ApiMisuse(_)) && error.to_string().contains("login.example"), "{error:?}");
    assert_eq!(world.count("/token"), 3);
}

/// O60, O95: the platform's token goes to the issuer that the author names, which it is asked for, and to no other.
#[tokio::test]
async fn a_token_of_the_platform_needs_its_issuer() {
    let world = World::of(greeter()).await;
    let workload = || {
        OAuth::workload("pod", async |request: AssertionRequest| {
            Ok::<_, std::io::Error>(format!("token-for {}", request.issuer()))
        })
    };
    let error = world.client(workload()).call_tool("hello", ()).await.expect_err("no issuer");
    assert!(matches!(error, Error::ApiMisuse(_)) && error.to_string().contains("add `issuer`"), "{error:?}");
    let elsewhere = world.client(workload().issuer("https://login.example")).call_tool("hello", ()).await;
    assert!(elsewhere.expect_err("another issuer").to_string().contains("login.example"));
    assert_eq!(world.count("/token"), 0);
    world.client(workload().issuer(world.issuer())).call_tool("hello", ()).await.expect("a result");
    let sent = world.seen("/token").remove(0).form();
    assert_eq!(sent["assertion"], format!("token-for {}", world.issuer()));
}

/// O1, O75: a server of a handshake era is signed in to in the same way.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn a_legacy_session_signs_in_too() {
    use roundtrip::wire::ProtocolVersion;
    let world = World::of(greeter()).await;
    let client = world.client(person()).protocol(ProtocolVersion::V2025_11_25);
    client.call_tool("hello", ()).await.expect("a result");
    world.end_tokens();
    client.call_tool("hello", ()).await.expect("a result");
    assert_eq!((world.count("/authorize"), world.count("/token")), (1, 2));
    client.close().await;
    let last = world.seen("/mcp").pop().expect("a request");
    assert_eq!(last.method, "DELETE");
    assert!(last.header("authorization").is_some());
}
