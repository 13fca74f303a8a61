//! The query of a server's URL, which may be a key.

use roundtrip::Client;

use super::sign_in::greeter;
use super::world::{World, person};
use crate::logged::logged;

/// O62, O75: a key in the query of the server goes to the server, and neither to the issuer, to the browser nor to the log.
#[test]
fn a_key_in_the_query_stays_with_the_server() {
    let log = logged(async {
        let world = World::of(greeter()).await;
        let client = Client::http(format!("{}/mcp?key=hush", world.base)).expect("a URL");
        let client = client.oauth(person().server_issuer(world.issuer()));
        client.call_tool("hello", ()).await.expect("a result");
        world.end_grants();
        client.call_tool("hello", ()).await.expect("a result");
        assert_eq!(world.count("/authorize"), 2);
        for seen in &world.shared().log {
            let is_server = seen.path == "/mcp";
            assert_eq!(seen.query.contains_key("key"), is_server, "{seen:?}");
            assert!(is_server || !format!("{seen:?}").contains("hush"), "{seen:?}");
        }
        let resource = format!("{}/mcp", world.base);
        assert_eq!(world.seen("/authorize")[0].query["resource"], resource);
        assert_eq!(world.seen("/token")[0].form()["resource"], resource);
    });
    assert!(log.contains("the grant is over") && !log.contains("hush"), "{log}");
}

#[test]
fn a_url_that_cannot_be_called_is_shown_without_its_secrets() {
    for url in ["ftp://alice:hush@tools.example/mcp?key=hush", "tools.example/mcp?key=hush"] {
        let error = Client::http(url).expect_err("not of HTTP");
        assert!(error.to_string().contains("tools.example/mcp"), "{error}");
        assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
    }
}
