//! Old servers as child processes: this test binary once more, playing one.

use std::io::{BufRead as _, Write as _};
use std::sync::{Arc, Mutex};

use roundtrip::wire::ProtocolVersion;
use roundtrip::{Change, Client, Error, FormRequest, Turn};
use serde_json::{Value, json};
use tokio::process::Command;

use super::server::{form, greeting};
use crate::fixture::text;
use crate::stdio::{Scratch, spread_over_lines};

const PART: &str = "ROUNDTRIP_TEST_OLD_PART";

fn child(part: &str) -> Client {
    Client::stdio(command(part))
}

fn command(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command
        .args(["--quiet", "--nocapture", "--exact", "old::stdio::plays_its_part_when_started_as_a_child"])
        .env(PART, part);
    command
}

fn say(message: &Value) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}").expect("somebody listens");
    stdout.flush().expect("somebody listens");
}

/// Not a test of its own: the server that the others start.
#[test]
fn plays_its_part_when_started_as_a_child() {
    let Ok(part) = std::env::var(PART) else { return };
    let mut lines = std::io::stdin().lock().lines();
    let mut next = || -> Option<Value> { Some(serde_json::from_str(&lines.next()?.ok()?).expect("json")) };
    while let Some(message) = next() {
        let reply = |result: Value| say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        let content = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let refuse = |code: i64| {
            say(
                &json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": code, "message": "no" } }),
            );
        };
        match (message["method"].as_str().unwrap_or_default(), &*part) {
            ("server/discover", "silent") => {}
            ("server/discover", "dies") => std::process::exit(7),
            ("server/discover", "slow") => {
                std::thread::sleep(std::time::Duration::from_millis(3500));
                reply(json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }));
            }
            ("server/discover", _) => refuse(-32602),
            ("initialize", "slow" | "neither") => refuse(-32601),
            ("initialize", "oldest") => reply(greeting("2024-11-05")),
            ("initialize", _) => reply(greeting("2025-11-25")),
            ("tools/call", _) => match message["params"]["name"].as_str().unwrap_or_default() {
                "ask" => {
                    say(&form("q", "Who?"));
                    let answer = loop {
                        let Some(answer) = next() else { return };
                        if answer["id"] == "q" {
                            break answer;
                        }
                    };
                    reply(content(&answer["result"]["content"]["name"].to_string()));
                }
                "hang" => {}
                "leave" => say(&form("left", "Anybody?")),
                // Asks while another call is under way, so that nobody can tell whose question it is.
                "ask both" => {
                    say(&form("q", "Who?"));
                    say(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
                    let mut answers = Vec::new();
                    while answers.len() < 2 {
                        let Some(answer) = next() else { return };
                        if answer.get("method").is_none() {
                            answers.push(answer);
                        }
                    }
                    answers.sort_by_key(|answer| answer["id"].to_string());
                    reply(content(&format!(
                        "{} {}",
                        answers[0]["result"], answers[1]["result"]["content"]["name"]
                    )));
                }
                "change" => {
                    say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                    let uri = json!({ "uri": "app://motto" });
                    say(
                        &json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": uri }),
                    );
                    reply(content("changed"));
                }
                "die" => std::process::exit(3),
                "flood" => {
                    for id in 0..2000 {
                        say(&form(id, "Who?"));
                    }
                    reply(content("flooded"));
                }
                _ => reply(content("done")),
            },
            ("resources/subscribe" | "resources/unsubscribe", _) => reply(json!({})),
            ("tools/list", _) => reply(json!({ "tools": [], "_meta": { "x": message["params"] } })),
            _ => {}
        }
    }
    if let Some(file) = std::env::var_os("FILE") {
        std::fs::write(file, "gone\n").expect("a file");
    }
}

fn ada(client: Client) -> Client {
    client.on_form(async |form: FormRequest| form.accept(json!({ "name": "Ada" })))
}

/// L6: on stdio an old server is found out by its error, by its silence, and by its death, and then greeted.
#[tokio::test]
async fn an_old_child_is_found_out_however_it_takes_the_question() {
    for part in ["plain", "silent", "dies", "oldest"] {
        let client = child(part);
        assert_eq!(text(&client.call_tool("a", ()).await.expect(part)), "done", "{part}");
        let expected = if part == "oldest" { "2024-11-05" } else { "2025-11-25" };
        assert_eq!(client.discover().await.expect("what it is").supported_versions, [expected]);
        client.close().await;
    }
}

/// L6: a modern server that takes its time is still a modern one, though it was greeted in the old way by then.
#[tokio::test]
async fn a_slow_modern_child_is_not_taken_for_an_old_one() {
    let client = child("slow");
    let error = client.call_tool("no such", ()).await;
    assert_eq!(text(&error.expect("a result")), "done");
    let page = client.request::<roundtrip::wire::ListTools>(()).await.expect("tools");
    let meta = page.meta.extra["x"]["_meta"].to_string();
    assert!(meta.contains("2026-07-28"), "{meta}");
    client.close().await;
}

/// L6: a child that answers neither question is named as such; a child of another era than the pinned one too.
#[tokio::test]
async fn a_child_that_speaks_neither_era_or_not_the_pinned_one_is_named() {
    let error = child("neither").list_tools().await.expect_err("neither");
    assert!(
        matches!(&error, Error::PeerIncompatible(why) if why.to_string().contains("neither")),
        "{error:?}"
    );
    let error = child("plain").protocol(ProtocolVersion::LATEST).list_tools().await.expect_err("an old one");
    assert!(
        matches!(&error, Error::PeerIncompatible(why) if why.to_string().contains("it speaks 2025-11-25")),
        "{error:?}"
    );
    let client = child("plain").protocol(ProtocolVersion::V2025_11_25);
    client.list_tools().await.expect("the one it speaks");
}

/// L6: dropping the last clone ends an old child too, though it is listened to all the time.
#[tokio::test]
async fn dropping_the_client_ends_an_old_child() {
    let file = Scratch::new("old-drop");
    let mut command = command("plain");
    command.env("FILE", &file.0);
    let client = ada(Client::stdio(command));
    client.list_tools().await.expect("tools");
    drop(client);
    assert_eq!(file.written().await, "gone\n");
}

/// L7: a child asks on the pipe, and the handler answers; by hand too.
#[tokio::test]
async fn a_child_asks_in_the_midst_of_a_call() {
    let client = ada(child("plain"));
    assert_eq!(text(&client.call_tool("ask", ()).await.expect("a result")), "\"Ada\"");
    let Turn::Asked(pending) = client.call_tool("ask", ()).one_round().await.expect("a turn") else {
        panic!("asked")
    };
    let pending = pending.answer("elicitation-1", json!({ "name": "Bob" })).expect("it fits");
    let turn = client.resume(pending).await.expect("a turn");
    assert!(matches!(turn, Turn::Done(result) if text(&result) == "\"Bob\""));
    client.close().await;
}

/// L7: a call that somebody has left open does not take the questions of the next one.
#[tokio::test]
async fn a_question_is_for_the_call_that_waits_for_the_server() {
    let client = ada(child("plain"));
    let left = client.call_tool("leave", ()).one_round().await.expect("a turn");
    assert!(matches!(left, Turn::Asked(_)));
    let rounds = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&rounds);
    let call = client.call_tool("ask", ()).on_round(move |_| {
        *counted.lock().expect("rounds") += 1;
        Ok::<(), Error>(())
    });
    assert_eq!(text(&call.await.expect("a result")), "\"Ada\"");
    assert_eq!(*rounds.lock().expect("rounds"), 1);
    client.close().await;
}

/// L6: a process can be told once what its client can do: one that can do more gets a process of its own, and calls under
/// way stay where they are.
#[tokio::test]
async fn a_client_that_can_do_more_gets_another_process() {
    let plain = child("plain");
    plain.list_tools().await.expect("tools");
    let hanging = tokio::spawn(plain.call_tool("hang", ()).into_future());
    tokio::task::yield_now().await;
    assert_eq!(text(&ada(plain.clone()).call_tool("ask", ()).await.expect("a result")), "\"Ada\"");
    assert_eq!(text(&plain.call_tool("a", ()).await.expect("a result")), "done");
    assert!(!hanging.is_finished());
    plain.close().await;
    assert!(hanging.await.expect("no panic").is_err());
}

/// L7: where several calls are under way nobody knows whose question it is: the handlers answer it where it comes.
#[tokio::test]
async fn a_question_of_unknown_owner_is_answered_by_the_handlers() {
    let client = ada(child("plain"));
    client.list_tools().await.expect("tools");
    let rounds = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&rounds);
    let hanging = tokio::spawn(client.call_tool("hang", ()).into_future());
    let both = client.call_tool("ask both", ()).on_round(move |_| {
        *counted.lock().expect("rounds") += 1;
        Ok::<(), Error>(())
    });
    // The other call has to be under way by then: its task runs up to its first wait.
    tokio::task::yield_now().await;
    assert_eq!(text(&both.await.expect("a result")), "{} \"Ada\"");
    assert_eq!(*rounds.lock().expect("rounds"), 0, "no round of either call");
    client.close().await;
    assert!(hanging.await.expect("no panic").is_err());
}

/// L6: changes come on the pipe, and a child that dies is started and greeted anew for the next call.
#[tokio::test]
async fn changes_come_on_the_pipe_and_a_dead_child_is_greeted_anew() {
    let client = child("plain");
    let mut changes = client.listen().tools().resource("app://motto").await.expect("a stream");
    client.call_tool("change", ()).await.expect("a result");
    assert_eq!(changes.next().await.expect("open").expect("a change"), Change::Tools);
    let change = changes.next().await.expect("open").expect("a change");
    assert_eq!(change, Change::Resource { uri: "app://motto".to_owned() });

    let error = client.call_tool("die", ()).await.expect_err("it dies");
    assert!(error.to_string().contains("exit status: 3"), "{error}");
    assert!(changes.next().await.expect("an error").is_err());
    assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), "done");
    client.close().await;
    assert!(matches!(client.list_tools().await, Err(Error::Closed)), "closed is closed");
}

/// L7: a flood of questions on the pipe is bounded, and the call it comes with is still answered.
#[tokio::test]
async fn a_flood_on_the_pipe_does_not_drown_the_call() {
    let client = ada(child("plain"));
    match client.call_tool("flood", ()).max_rounds(200).await {
        Ok(result) => assert_eq!(text(&result), "flooded"),
        Err(error) => assert!(matches!(error, Error::GaveUp(_)), "{error}"),
    }
    assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), "done");
    client.close().await;
}

/// I1: arguments that are spread over lines are one request to an old server, too.
#[tokio::test]
async fn a_models_line_breaks_forge_no_request_to_an_old_server() {
    let client = child("plain");
    let done = client.call_tool("x", spread_over_lines()).await.expect("an answer");
    assert_eq!(text(&done), "done");
    client.close().await;
}
