//! Proxies that the environment names.

use roundtrip::testing::Issuer;
use roundtrip::{Authorize, Server, Tool};
use serde_json::json;

use super::proxied::behind_proxy;
use super::{Desk, RESOURCE, guarded};
use crate::support::Running;

fn server() -> Server {
    Server::new("files", "1.0.0").tool(Tool::new("list", async || "a file"))
}

/// O49, O50: an issuer on this machine is reached without a proxy, and one whose name leads here from elsewhere is refused ahead
/// of it.
#[test]
fn issuers_on_this_machine_are_not_left_to_a_proxy() {
    let work = async {
        let issuer = Issuer::bind(RESOURCE).await.expect("an issuer");
        let guard = Authorize::at("http://localhost/mcp").issuer(issuer.name()).audience(RESOURCE);
        let desk = Desk { running: Running::start_http(guarded(server(), guard)).await, issuer };
        let answer = desk.call(&desk.token("alice", ""), "list", json!({})).await;
        assert_eq!((answer.status, desk.issuer.key_fetches()), (200, 1));

        let issuer = Issuer::new("https://localhost.", RESOURCE).expect("an issuer");
        let guard = Authorize::at(RESOURCE).issuer(issuer.name());
        let desk = Desk { running: Running::start_http(guarded(server(), guard)).await, issuer };
        assert_eq!(desk.call(&desk.token("alice", ""), "list", json!({})).await.status, 503);
    };
    let test = concat!(module_path!(), "::issuers_on_this_machine_are_not_left_to_a_proxy");
    if let Some(asked) = behind_proxy(test, work) {
        assert!(asked.is_empty(), "{asked:?}");
    }
}
