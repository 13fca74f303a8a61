//! Keys of several instances: what the log says where they do not share any.

use roundtrip::server::SetupError;
use roundtrip::{Ask, Asked, Form, Prompt, Resource, ResourceTemplate, Round, Server, Tool};

use crate::logged::logged;
use crate::seal::{DONE, assert_refused, named, remember, ring, secret, sure};
use crate::support::Call;

#[derive(Form)]
#[form(key = "sure", message = "Sure?")]
struct Sure {
    sure: bool,
}

/// The beginning of the warning.
const ALONE: &str = "a random key of its own";

fn asking() -> [Server; 6] {
    let new = || Server::new("vault", "1");
    let ask = async |ask: Ask| ask.confirm("sure", "?").await.map(|sure| sure.to_string());
    [
        new().tool(Tool::new("t", ask)),
        new().tool(Tool::new("t", async |Asked(Sure { sure }): Asked<Sure>| sure.to_string())),
        new().tool(Tool::new("t", async |round: Round| round.number().to_string())),
        new().prompt(Prompt::new("p", ask)),
        new().resource(Resource::new("test://r", "r", ask)),
        new().template(ResourceTemplate::new("test://r/{id}", "r", ask)),
    ]
}

/// S1: a server on HTTP whose handlers can ask, and that was given no keys, says once at its start what follows.
#[test]
fn a_server_that_asks_with_a_key_of_its_own_says_so_once_at_its_start() {
    for server in asking() {
        let log = logged(async {
            let http = server.into_http().expect("a server");
            drop(http.clone().bind("127.0.0.1:0").await.expect("an address"));
        });
        assert_eq!(log.matches(ALONE).count(), 1, "{log}");
        let warning = log.lines().find(|line| line.contains(ALONE)).expect("a line");
        for part in ["WARN", "restart", "another instance", "`Keyring`", "`Server::seal`"] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
    }
}

/// S1: nothing is said where nothing follows: with keys, without questions, without other instances, or without a start.
#[test]
fn a_server_that_shares_its_keys_or_never_asks_says_nothing() {
    let log = logged(async {
        for server in asking() {
            server.seal(ring(&[1])).into_http().expect("a server");
        }
        for server in asking() {
            server.build().expect("a server");
        }
        Server::new("s", "1").tool(Tool::new("t", async || "done")).into_http().expect("a server");
        let mistaken = Server::new("s", "1").tool(Tool::new("t", remember)).tool(Tool::new("t", remember));
        let _: SetupError = mistaken.into_http().expect_err("a mistake");
    });
    assert!(!log.contains(ALONE), "{log}");
}

/// S6: the log tells a token of another instance, or from before a restart, from one that was forged, and says what
/// instances need that carry on each other's flows.
#[test]
fn the_log_tells_another_instance_from_a_forged_token() {
    let shared = "instances that carry on each other's flows share a `Keyring`";
    let call = Call::tool("remember");
    let own_key =
        || Server::new("vault", "1").tool(Tool::new("remember", remember)).build().expect("a server");
    let log = logged(async {
        let first = call.begin(&own_key()).await;
        assert_refused(&call.answer(&own_key(), &first, secret()).await, "another instance");
    });
    assert!(log.contains(shared) && log.contains("restart") && !log.contains("forged"), "{log}");

    let log = logged(async {
        let endpoint = own_key();
        let first = call.begin(&endpoint).await;
        let state = first.state().expect("state");
        let (kept, last) = state.split_at(state.len() - 2);
        let forged = format!("{kept}{}", if last == "AA" { "BA" } else { "AA" });
        assert_refused(&call.send(&endpoint, Some(&forged), Some(secret())).await, "forged");
    });
    assert!(log.contains("changed or forged") && !log.contains(shared), "{log}");

    let log = logged(async {
        let (one, other) = (named("vault", ring(&[1])), named("vault", ring(&[1])));
        let first = call.begin(&one).await;
        let second = call.answer(&other, &first, secret()).await;
        assert_eq!(call.answer(&one, &second, sure()).await.text(), DONE);
    });
    assert!(!log.contains("refused"), "{log}");
}
