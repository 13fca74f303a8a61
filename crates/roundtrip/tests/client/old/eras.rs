//! Finding out which era a server belongs to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use roundtrip::wire::ProtocolVersion;
use roundtrip::{Client, Error, Server};
use serde_json::json;

use super::server::{Old, Reply, Seen as Asked, empty, json_reply};
use crate::fixture::text;
use crate::peer::{Seen, json_reply as plain, next, peer_of_any_era, reply};

/// L6: the client asks in the modern way first, falls back to the handshake, and does so once for all its clones.
#[tokio::test]
async fn an_old_server_is_found_out_once_for_all_clones() {
    let (client, old) = Old::start(|_, _| None).await;
    let clone = client.clone();
    let (first, second) =
        tokio::join!(client.call_tool("a", ()).into_future(), clone.call_tool("b", ()).into_future());
    assert_eq!(text(&first.expect("a result")), "done");
    assert_eq!(text(&second.expect("a result")), "done");
    client.list_tools().timeout(Duration::from_secs(20)).await.expect("tools");
    let posted = old.posted();
    let expected = ["server/discover", "initialize", "notifications/initialized"];
    assert_eq!(posted[..3], expected);
    assert_eq!(posted.len(), 6, "no more than the three calls: {posted:?}");
}

/// L6: a list is not taken for the result of the handshake, nor for an object inside of it.
#[tokio::test]
async fn a_list_does_not_end_the_handshake() {
    let info = json!({ "name": "old", "version": "1" });
    let whole = json!(["2025-11-25", {}, info]);
    let inside = json!({ "protocolVersion": "2025-11-25", "capabilities": [], "serverInfo": info });
    for result in [whole, inside] {
        let (client, _old) = Old::start(move |_, seen| {
            (seen.method() == "initialize").then(|| json_reply(200, &seen.result(&result)))
        })
        .await;
        let error = client.call_tool("a", ()).await.expect_err("no handshake");
        assert!(error.to_string().contains("invalid type: sequence"), "{error}");
    }
}

/// L6: what an old server is sent has nothing modern in it, and names the version that was agreed on.
#[tokio::test]
async fn an_old_server_is_sent_old_words_alone() {
    let (client, old) = Old::speaking("2025-06-18", |_, _| None).await;
    let client = client.info("probe", "7").roots(["file:///here"]);
    client.call_tool("a", json!({ "x": 1 })).meta("com.example/y", 2).on_progress(drop).await.expect("done");
    let greeted = old.wait(|seen| seen.method() == "initialize").await;
    assert_eq!(
        greeted.body["params"],
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "roots": {} },
            "clientInfo": { "name": "probe", "version": "7" },
        })
    );
    assert_eq!(greeted.header("mcp-session-id"), None);
    let called = old.wait(|seen| seen.method() == "tools/call").await;
    let id = &called.body["id"];
    let meta = json!({ "com.example/y": 2, "progressToken": id });
    assert_eq!(called.body["params"], json!({ "name": "a", "arguments": { "x": 1 }, "_meta": meta }));
    assert_eq!(called.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(called.header("mcp-session-id"), Some("session-0"));
    assert_eq!((called.header("mcp-method"), called.header("mcp-name")), (None, None));
}

/// L6: whatever an old server says to what it does not know, and however it says it, it is found out.
#[tokio::test]
async fn no_single_error_is_what_gives_an_old_server_away() {
    let answers: [fn(&Asked) -> Reply; 6] = [
        |seen| json_reply(400, &seen.error(-32600, "Bad Request: Missing session ID")),
        |seen| json_reply(200, &seen.error(-32601, "Method not found")),
        |seen| json_reply(200, &seen.error(-32602, "Invalid request parameters")),
        |_| empty(404),
        |_| empty(405),
        |_| empty(202),
    ];
    for answer in answers {
        let (client, old) =
            Old::start(move |_, seen| (seen.method() == "server/discover").then(|| answer(seen))).await;
        assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), "done");
        assert_eq!(old.posted()[1], "initialize");
    }
}

/// L6: `server/discover` of an old server is answered out of what it said in the handshake.
#[tokio::test]
async fn discovery_of_an_old_server_is_answered_by_its_handshake() {
    let (client, _old) = Old::start(|_, _| None).await;
    let found = client.discover().await.expect("what it is");
    assert_eq!(found.supported_versions, ["2025-11-25"]);
    assert_eq!(found.instructions.as_deref(), Some("be gentle"));
    assert_eq!(found.meta.server_info.expect("a name").name, "old");
    assert!(found.capabilities.tools.is_some());
}

/// L6: an error that only modern servers give means a modern server; nothing falls back.
#[tokio::test]
async fn a_modern_error_means_a_modern_server() {
    let (client, mut seen) = peer_of_any_era(|number, request: &Seen| match number {
        0 => request.error("400 Bad Request", &json!({ "code": -32021, "message": "no" })),
        _ => request.result(&json!({ "resultType": "complete", "tools": [] })),
    })
    .await;
    client.list_tools().await.expect("tools");
    assert_eq!(next(&mut seen).await.body["method"], "server/discover");
    assert_eq!(next(&mut seen).await.body["method"], "tools/list");
}

/// L6: a server that refuses the modern revision and names old ones only is spoken to in one of them.
#[tokio::test]
async fn a_server_that_names_old_revisions_is_spoken_to_in_one() {
    for supported in [json!(["2025-11-25", "2025-06-18"]), json!(["1.0", "2025-11-25"])] {
        let named = supported.clone();
        let (client, old) = Old::start(move |_, seen| {
            let mut refused = seen.error(-32022, "unsupported protocol version");
            refused["error"]["data"] = json!({ "supported": named, "requested": "2026-07-28" });
            (seen.method() == "server/discover").then(|| json_reply(400, &refused))
        })
        .await;
        assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), "done", "{supported}");
        assert_eq!(old.posted()[1], "initialize");
    }
}

/// L6: refusals that have nothing to do with eras are reported, and say nothing of the era.
#[tokio::test]
async fn refusals_for_other_reasons_are_no_evidence() {
    for status in ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests", "503 Service Unavailable"] {
        let (client, mut seen) = peer_of_any_era(move |number, request: &Seen| match number {
            0 => reply(status, "text/plain", "go away"),
            1 => crate::peer::modern(request),
            _ => request.result(&json!({ "resultType": "complete", "tools": [] })),
        })
        .await;
        let error = client.list_tools().await.expect_err(status);
        assert!(error.to_string().contains(status), "{error}");
        client.list_tools().await.expect("tools, the second time");
        for method in ["server/discover", "server/discover", "tools/list"] {
            assert_eq!(next(&mut seen).await.body["method"], method, "{status}");
        }
    }
}

/// L6: a place where nobody speaks the protocol is named as such, in a few requests.
#[tokio::test]
async fn nobody_who_speaks_the_protocol_is_an_error_and_no_loop() {
    let (client, mut seen) =
        peer_of_any_era(|_, _| reply("404 Not Found", "text/html", "<h1>lost?</h1>")).await;
    let error = client.list_tools().await.expect_err("nobody");
    assert!(error.to_string().contains("404 Not Found") && error.to_string().contains("lost?"), "{error}");
    for method in ["server/discover", "initialize"] {
        assert_eq!(next(&mut seen).await.body["method"], method);
    }
    assert!(seen.try_recv().is_err());
}

/// L6: a server that was modern and is not any more is asked anew.
#[tokio::test]
async fn an_era_that_no_longer_holds_is_found_out_anew() {
    static REPLACED: AtomicBool = AtomicBool::new(false);
    let (client, old) = Old::start(|_, seen| {
        let modern = !REPLACED.load(Ordering::SeqCst);
        match seen.method() {
            "server/discover" if modern => {
                let found = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} });
                Some(json_reply(200, &seen.result(&found)))
            }
            "tools/list" if modern => Some(json_reply(200, &seen.result(&json!({ "tools": [] })))),
            _ if seen.header("mcp-session-id").is_none() && seen.method() != "initialize" => Some(empty(400)),
            _ => None,
        }
    })
    .await;
    client.list_tools().await.expect("modern tools");
    REPLACED.store(true, Ordering::SeqCst);
    client.list_tools().await.expect("old tools");
    let posted = old.posted();
    let expected = [
        "tools/list",
        "tools/list",
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/list",
    ];
    assert_eq!(posted[1..], expected);
}

/// L6: a version that is not spoken here is an error that names both sides.
#[tokio::test]
async fn a_version_we_do_not_speak_is_named() {
    for theirs in ["1999-12-31", "2026-07-28"] {
        let (client, _old) = Old::speaking(theirs, |_, _| None).await;
        let error = client.list_tools().await.expect_err("no version in common");
        let Error::PeerIncompatible(why) = &error else { panic!("incompatible, not {error:?}") };
        let why = why.to_string();
        assert!(why.contains(&format!("it speaks {theirs}")) && why.contains("2025-03-26"), "{why}");
    }
}

/// L6: a server that names the versions it has, instead of choosing one, is taken at its word.
#[tokio::test]
async fn a_version_the_server_names_is_tried() {
    let (client, old) = Old::speaking("2025-03-26", |_, seen| {
        let refused = seen.method() == "initialize" && seen.body["params"]["protocolVersion"] != "2025-03-26";
        refused.then(|| {
            let data = json!({ "supported": ["2024-11-05", "2025-03-26"], "requested": "2025-11-25" });
            let error = json!({ "code": -32602, "message": "Unsupported protocol version", "data": data });
            json_reply(200, &json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }))
        })
    })
    .await;
    assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), "done");
    let called = old.wait(|seen| seen.method() == "tools/call").await;
    assert_eq!(called.header("mcp-protocol-version"), Some("2025-03-26"));
}

/// L6: a pinned client asks nobody what they speak; a server that does not speak it is named, with what to do.
#[tokio::test]
async fn a_pinned_client_speaks_one_revision_alone() {
    let (client, old) = Old::start(|_, _| None).await;
    let pinned = client.clone().protocol(ProtocolVersion::V2025_11_25);
    assert_eq!(text(&pinned.call_tool("a", ()).await.expect("a result")), "done");
    assert_eq!(old.posted()[0], "initialize");

    let modern = client.clone().protocol(ProtocolVersion::LATEST);
    let error = modern.call_tool("a", ()).await.expect_err("an old server");
    let Error::PeerIncompatible(why) = &error else { panic!("incompatible, not {error:?}") };
    let why = why.to_string();
    assert!(
        why.contains("it speaks 2025-11-25") && why.contains("2026-07-28 alone") && why.contains("protocol"),
        "{why}"
    );

    let other = client.protocol(ProtocolVersion::V2025_03_26);
    let error = other.call_tool("a", ()).await.expect_err("another version");
    let Error::PeerIncompatible(why) = &error else { panic!("incompatible, not {error:?}") };
    let why = why.to_string();
    assert!(why.contains("it speaks 2025-11-25") && why.contains("2025-03-26 alone"), "{why}");
}

/// L6: a server of both eras is spoken to in either by clients that are told to, and in the modern one by those that are
/// not.
#[tokio::test]
async fn a_pin_says_nothing_to_those_who_have_none() {
    let (client, old) = Old::start(|_, seen| match (seen.method(), seen.header("mcp-session-id")) {
        ("server/discover", _) => {
            let versions = ["2026-07-28", "2025-11-25"];
            let found =
                json!({ "resultType": "complete", "supportedVersions": versions, "capabilities": {} });
            Some(json_reply(200, &seen.result(&found)))
        }
        ("tools/call", None) => Some(json_reply(200, &seen.says("modern"))),
        _ => None,
    })
    .await;
    let pinned = client.clone().protocol(ProtocolVersion::V2025_11_25);
    let modern = client.clone().protocol(ProtocolVersion::LATEST);
    for (client, expected) in [(&pinned, "done"), (&modern, "modern"), (&client, "modern"), (&pinned, "done")]
    {
        assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), expected);
    }
    assert_eq!(old.posted().iter().filter(|method| *method == "initialize").count(), 1);
}

/// L6: pinned to the modern era, an old server is an error that says what it speaks; nothing is run there.
#[tokio::test]
async fn a_client_pinned_to_the_modern_era_says_what_an_old_server_speaks() {
    let (client, old) = Old::start(|_, _| None).await;
    let client = client.protocol(ProtocolVersion::LATEST);
    let error = client.call_tool("a", ()).await.expect_err("an old server");
    let Error::PeerIncompatible(why) = &error else { panic!("incompatible, not {error:?}") };
    let why = why.to_string();
    assert!(why.contains("it speaks 2025-11-25"), "{why}");
    let in_session = |seen: &Asked| seen.header("mcp-session-id").is_some();
    assert!(!old.seen().iter().any(|seen| in_session(seen) && seen.method() == "tools/call"));
}

/// L6: a transport that has no sessions cannot be pinned to a revision that needs one.
#[tokio::test]
async fn a_pin_that_cannot_be_kept_is_reported_by_the_first_call() {
    let client = Client::in_process(Server::new("s", "1")).expect("a server");
    let error = client.protocol(ProtocolVersion::V2025_06_18).list_tools().await.expect_err("no such thing");
    assert!(matches!(&error, Error::ApiMisuse(why) if why.to_string().contains("2025-06-18")), "{error:?}");
}

/// L6: a handshake that is answered with garbage is an error that says so.
#[tokio::test]
async fn a_handshake_answered_with_garbage_is_named() {
    let garbage = [json!({ "protocolVersion": 5 }), json!([]), json!({})];
    for result in garbage {
        let (client, _old) = Old::start(move |_, seen| {
            (seen.method() == "initialize").then(|| json_reply(200, &seen.result(&result)))
        })
        .await;
        let error = client.list_tools().await.expect_err("garbage");
        assert!(
            matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("initialize")),
            "{error:?}"
        );
    }
}

/// L6: a server that says nothing to a handshake costs the call its timeout, and no more.
#[tokio::test]
async fn silence_ends_with_the_calls_patience() {
    let (client, old) = Old::start(|old, seen| match seen.method() {
        "initialize" => {
            let (sender, reply) = super::server::stream();
            *old.general.lock().expect("general") = Some(sender);
            Some(reply)
        }
        "notifications/initialized" => Some(empty(202)),
        "tools/list" => Some(json_reply(200, &seen.result(&json!({ "tools": [] })))),
        _ => None,
    })
    .await;
    let error = client.list_tools().timeout(Duration::from_millis(100)).await.expect_err("silence");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    // The handshake is not cancelled: it goes on for whoever comes next.
    let greeted = old.wait(|seen| seen.method() == "initialize").await;
    let late = old.general.lock().expect("general").take().expect("a stream");
    late.message(&greeted.result(&super::server::greeting("2025-11-25")));
    drop(late);
    client.list_tools().timeout(Duration::from_secs(20)).await.expect("tools");
    let posted = old.posted();
    assert_eq!(posted.iter().filter(|method| *method == "initialize").count(), 1, "{posted:?}");
    assert!(posted.iter().all(|method| method != "notifications/cancelled"), "{posted:?}");
}

/// L6: a server that never answers the question about its era is asked in the old way, and neither calls nor the end of the
/// client wait for it.
#[tokio::test]
async fn a_question_without_an_answer_is_not_waited_for_for_ever() {
    let (client, _old) = Old::start(|_, seen| {
        let mute = seen.method() == "server/discover" || seen.http == http::Method::DELETE;
        mute.then(|| super::server::slow_json(std::future::pending()))
    })
    .await;
    client.list_tools().timeout(Duration::from_secs(40)).await.expect("tools");
    client.close().await;
}

/// L6: a server that is slow to say what it is does not cost later calls what it cost the first one.
#[tokio::test]
async fn whoever_loses_patience_does_not_keep_others_from_finding_out() {
    let (client, _seen) = peer_of_any_era(|number, request: &Seen| {
        if number == 0 {
            std::thread::sleep(Duration::from_millis(300));
            return crate::peer::modern(request);
        }
        plain("200 OK", &json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": { "tools": [] } }))
    })
    .await;
    let error = client.list_tools().timeout(Duration::from_millis(50)).await.expect_err("too slow");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    client.list_tools().await.expect("found out by now");
}
