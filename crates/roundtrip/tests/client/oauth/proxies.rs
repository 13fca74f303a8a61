//! Proxies that the environment names.

use roundtrip::Client;
use roundtrip::oauth::{HttpUrl, OAuth};

use super::proxied::behind_proxy;
use super::sign_in::greeter;
use super::world::World;

/// A browser that uses no proxy.
async fn visit(url: HttpUrl) -> Result<(), reqwest::Error> {
    reqwest::Client::builder().no_proxy().build()?.get(url.as_str()).send().await.map(drop)
}

/// O49, O75: what is sent to this machine stays on it: calls, tokens, codes and verifiers. Other hosts are reached by the proxy.
#[test]
fn no_proxy_sees_what_is_sent_to_this_machine() {
    let work = async {
        let world = World::of(greeter()).await;
        let client = world.client(OAuth::new("Tests").browser(visit));
        client.call_tool("hello", ()).await.expect("a result");
        world.end_tokens();
        client.call_tool("hello", ()).await.expect("a result");
        assert_eq!((world.count("/authorize"), world.count("/token")), (1, 2));
        assert!(world.plain_client().call_tool("hello", ()).await.is_err(), "it has no token");
        let remote = Client::http("http://tools.example/mcp").expect("a URL");
        remote.call_tool("hello", ()).await.expect_err("the proxy refuses");
    };
    let test = concat!(module_path!(), "::no_proxy_sees_what_is_sent_to_this_machine");
    if let Some(asked) = behind_proxy(test, work) {
        assert!(!asked.is_empty(), "the proxy is for other hosts");
        assert!(asked.iter().all(|line| line == "POST http://tools.example/mcp HTTP/1.1"), "{asked:?}");
    }
}

/// O50: a name that leads into a private network is refused ahead of a proxy, which would resolve it by itself.
#[test]
fn a_private_name_is_not_left_to_a_proxy() {
    let work = async {
        let world = World::of(greeter()).await;
        world.shared().names = Some("https://localhost.");
        let client = world.client(OAuth::new("Tests").browser(visit));
        let error = client.call_tool("hello", ()).await.expect_err("a private name");
        assert!(error.to_string().contains("private networks"), "{error}");
    };
    let test = concat!(module_path!(), "::a_private_name_is_not_left_to_a_proxy");
    if let Some(asked) = behind_proxy(test, work) {
        assert!(asked.is_empty(), "{asked:?}");
    }
}
