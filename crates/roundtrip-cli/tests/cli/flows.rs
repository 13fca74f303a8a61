//! Flows, tasks, streams and tokens by the built command, over several processes.

use serde_json::{Value, json};

use crate::support::{Folder, ROUNDTRIP, Served, command, ran, roundtrip};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn a_saved_call_is_resumed_by_another_process() {
    let (served, folder) = (Served::start(&[]), Folder::new("saved"));
    let (flow, party) =
        (folder.path("flow.json"), folder.file("party.json", r#"{ "party": { "people": 4 } }"#));
    let saved =
        roundtrip(&["call", &served.url, "book_table", "-a", "restaurant=Nopa", "--save", &flow]).exits(10);
    assert!(saved.err.contains("How many people?") && saved.err.contains("roundtrip resume"), "{saved:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&flow).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Saved again at the next question: the file has the answers so far, sealed.
    let again = roundtrip(&["resume", &flow, "--answers", &party, "--save", &flow, "--json"]);
    assert_eq!(again.code, 10, "{again:?}");
    assert_eq!(again.error()["questions"][0]["key"], "day");
    let day = folder.file("day.json", r#"{ "day": { "date": "2026-12-31" } }"#);
    let done = roundtrip(&["resume", &flow, "--answers", &day]).exits(0);
    assert_eq!(done.out, "Nopa for 4 on 2026-12-31, deposit 80\n");
    let error = roundtrip(&["resume", &flow, "--json"]).exits(10).error();
    assert_eq!(error["questions"][0]["key"], "day");
}

#[test]
fn prompts_and_resources_are_saved_too() {
    let (served, folder) = (Served::start(&[]), Folder::new("saved-offers"));
    let flow = folder.path("flow.json");
    roundtrip(&["read", &served.url, "notes://sea", "--save", &flow]).exits(10);
    assert_eq!(roundtrip(&["resume", &flow, "--yes"]).exits(0).out, "All that is known about sea.\n");
    roundtrip(&["prompt", &served.url, "letter", "--save", &flow]).exits(10);
    let name = folder.file("name.json", r#"{ "name": { "name": "Ada" } }"#);
    assert!(roundtrip(&["resume", &flow, "--answers", &name]).exits(0).out.contains("letter to Ada"));
}

#[test]
fn files_that_hold_no_flow_are_refused() {
    let (served, folder) = (Served::start(&[]), Folder::new("corrupt"));
    let flow = folder.path("flow.json");
    roundtrip(&["call", &served.url, "greet", "--save", &flow]).exits(10);
    let good = std::fs::read_to_string(&flow).unwrap();
    let saved: Value = serde_json::from_str(&good).unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut changed = saved.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed.to_string()
    };
    for (text, why) in [
        (String::new(), "EOF"),
        (good[..good.len() / 2].to_owned(), "EOF"),
        ("{}".to_owned(), "missing field"),
        (json!({ "jsonrpc": "2.0" }).to_string(), "unknown field"),
        (changed("/format", json!("other")), "format"),
        (changed("/version", json!(99)), "99"),
        (changed("/pending", json!({})), ""),
        (changed("/pending/method", json!("tools/list")), "tools/list"),
        (changed("/server", json!("x")), ""),
    ] {
        let file = folder.file("changed.json", &text);
        let ran = roundtrip(&["resume", &file]).exits(2);
        assert!(ran.err.contains(why) && ran.err.contains("changed.json"), "{text}: {ran:?}");
    }
    // A state that the server has not sealed is refused by the server.
    let name = folder.file("name.json", r#"{ "name": { "name": "Ada" } }"#);
    let forged = folder.file("forged.json", &changed("/pending/state", json!("AAAA")));
    let words = ["resume", &forged, &served.url, "--answers", &name, "--json"];
    let error = roundtrip(&words).exits(6).error();
    assert_eq!(error["code"], -32602);
    roundtrip(&["resume", "/nowhere/flow.json"]).exits(2);
}

/// A call of the handshake eras is open in one process.
#[test]
fn calls_of_old_servers_are_not_saved() {
    let (served, folder) = (Served::start(&[]), Folder::new("old"));
    let flow = folder.path("flow.json");
    let ran =
        roundtrip(&["call", &served.url, "greet", "--protocol", "2025-11-25", "--save", &flow]).exits(10);
    assert!(ran.err.contains("cannot be saved") && !std::path::Path::new(&flow).exists(), "{ran:?}");
}

#[test]
fn a_task_is_waited_for() {
    let served = Served::start(&[]);
    let ran = roundtrip(&["call", &served.url, "report", "--yes"]).exits(0);
    assert_eq!(ran.out, "42 rows published\n");
    // A call that stops says how its task goes on.
    let stopped = roundtrip(&["call", &served.url, "report", "--json"]).exits(10).error();
    let id = stopped["taskId"].as_str().unwrap();
    let wait = format!("roundtrip task wait --id {id} {}", served.url);
    assert!(stopped["message"].as_str().unwrap().contains(&wait), "{stopped}");
    assert_eq!(
        roundtrip(&["task", "wait", "--id", id, &served.url, "--yes"]).exits(0).out,
        "42 rows published\n"
    );
}

#[test]
fn a_task_is_answered_by_other_processes() {
    let (served, folder) = (Served::start(&[]), Folder::new("task"));
    let started = roundtrip(&["call", &served.url, "report", "--detach", "--json"]).exits(0).json();
    let id = started["taskId"].as_str().unwrap();
    let task = |what: &str, more: &[&str]| roundtrip(&[&["task", what, &served.url, id], more].concat());
    // It asks as soon as it has read the archive.
    let asks = task("wait", &["--json"]).exits(10).error();
    assert_eq!(asks["questions"][0]["key"], "publish");
    let status = task("status", &[]).exits(0);
    assert!(status.out.contains("input_required") && status.out.contains("Publish 42 rows?"), "{status:?}");
    let no = folder.file("no.json", r#"{ "publish": { "confirm": false } }"#);
    let answered = task("answer", &["--answers", &no]).exits(0);
    assert!(answered.out.starts_with(&format!("task {id}  ")), "{answered:?}");
    assert_eq!(task("wait", &[]).exits(0).out, "kept back\n");
    let late = task("answer", &["--answers", &no]).exits(1);
    assert!(late.err.contains("asks nothing: it is completed"), "{late:?}");
    task("cancel", &[]).exits(0);
    roundtrip(&["task", "status", &served.url, "no-such-task"]).exits(6);
}

/// Servers choose identifiers, some of them at random from an alphabet with a hyphen.
#[test]
fn an_identifier_is_never_an_option() {
    let served = Served::start(&[]);
    for id in ["-0abc", "--json", "--", "--answers=answers.json"] {
        for named in [vec!["--id".to_owned(), id.to_owned()], vec![format!("--id={id}")]] {
            let words: Vec<&str> = named.iter().map(String::as_str).collect();
            let ran = roundtrip(&[&["task", "status", &served.url], &words[..]].concat()).exits(6);
            assert!(ran.err.contains("does not know the task of `tools/call`,"), "{ran:?}");
        }
    }
    let ran = roundtrip(&["task", "status", &served.url, "-0abc"]).exits(2);
    assert!(ran.err.contains("--id=ID") && !ran.err.contains("-- -0"), "{ran:?}");
    let ran = roundtrip(&["call", &served.url, "-0abc"]).exits(2);
    assert!(ran.err.contains("unexpected argument") && !ran.err.contains("-- -0"), "{ran:?}");
    roundtrip(&["task", "status", &served.url, "one", "--id", "two"]).exits(2);
}

#[test]
fn a_cancelled_task_is_a_failure() {
    let served = Served::start(&[]);
    let started = roundtrip(&["call", &served.url, "report", "--detach"]).exits(0).out;
    let id = started.strip_prefix("task ").unwrap().split_whitespace().next().unwrap();
    roundtrip(&["task", "cancel", &served.url, id]).exits(0);
    let ran = roundtrip(&["task", "wait", &served.url, id]).exits(1);
    assert!(ran.err.contains("cancelled"), "{ran:?}");
}

/// Parts are printed as they come, over a round that asks, and the whole is not printed again.
#[test]
fn a_stream_is_printed_once() {
    let served = Served::start(&[]);
    let ran = roundtrip(&["call", &served.url, "story", "--yes"]).exits(0);
    assert_eq!(ran.out, "A crate was lost at sea. It was found.\n");
    let ran = roundtrip(&["call", &served.url, "story", "--yes", "--json"]).exits(0);
    assert_eq!(ran.json()["content"][0]["text"], "A crate was lost at sea. It was found.");
}

#[test]
fn keys_open_tokens() {
    let folder = Folder::new("keys");
    let (keys, flow) = (folder.path("keys.txt"), folder.path("flow.json"));
    roundtrip(&["keys", "new", "--output", &keys]).exits(0);
    roundtrip(&["keys", "new", "--output", &keys]).exits(2);
    let served = Served::start(&["--keys", &keys]);
    let party = folder.file("party.json", r#"{ "party": { "people": 4 }, "day": "decline" }"#);
    roundtrip(&["call", &served.url, "book_table", "-a", "restaurant=Nopa", "--save", &flow]).exits(10);
    let state = |file: &str| {
        let saved: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        saved["pending"]["state"].as_str().unwrap().to_owned()
    };
    let token = state(&flow);
    let opened = roundtrip(&["flow", "open", &token, "--keys", &keys, "--json"]).exits(0).json();
    assert_eq!(
        (&opened["round"], &opened["open"], &opened["expired"]),
        (&json!(1), &json!(["party"]), &json!(false))
    );
    let mut bound: Vec<&String> = opened["binding"].as_object().unwrap().keys().collect();
    bound.sort();
    assert_eq!(bound, ["arguments", "audience", "client", "principal", "target"]);
    let shown = roundtrip(&["flow", "open", &format!("@{flow}"), "--keys", &keys]).exits(0).out;
    assert!(shown.contains("open       party"), "{shown}");
    let declined = roundtrip(&["resume", &flow, "--answers", &party]).exits(4);
    assert!(declined.out.contains("declined"), "{declined:?}");

    let other = folder.path("other.txt");
    roundtrip(&["keys", "new", "--output", &other]).exits(0);
    let refused = roundtrip(&["flow", "open", &token, "--keys", &other]).exits(2);
    assert!(refused.err.contains("not on the ring"), "{refused:?}");
    let (before, after) = token.split_at(token.len() / 2);
    let forged = format!("{before}{}{}", if after.starts_with('A') { 'B' } else { 'A' }, &after[1..]);
    roundtrip(&["flow", "open", &forged, "--keys", &keys]).exits(2);
}

/// Answers and results of steps are people's: they are shown on request alone.
#[test]
fn answers_in_a_token_are_masked() {
    let folder = Folder::new("masked");
    let keys = folder.path("keys.txt");
    roundtrip(&["keys", "new", "--output", &keys]).exits(0);
    let served = Served::start(&["--keys", &keys]);
    let (flow, next) = (folder.path("flow.json"), folder.path("next.json"));
    roundtrip(&["call", &served.url, "book_table", "-a", "restaurant=Nopa", "--save", &flow]).exits(10);
    // Nothing but the first question is answered, so the next one stops it.
    let party = folder.file("party.json", r#"{ "party": { "people": 7 } }"#);
    let stopped = roundtrip(&["resume", &flow, "--answers", &party, "--save", &next]);
    assert_eq!(stopped.code, 10, "{stopped:?}");
    let open = |more: &[&str]| {
        roundtrip(&[&["flow", "open", &format!("@{next}"), "--keys", &keys, "--json"], more].concat())
            .exits(0)
            .json()
    };
    let masked = open(&[]);
    assert_eq!((&masked["round"], &masked["open"]), (&json!(2), &json!(["day"])));
    assert!(!masked.to_string().contains("140"), "{masked}");
    let shown = open(&["--show-answers"]);
    let journal = shown["journal"].as_array().unwrap();
    let entry = |key: &str| journal.iter().find(|entry| entry["key"] == key).unwrap();
    assert_eq!((&entry("deposit")["value"], &entry("deposit")["kind"]), (&json!(140), &json!("step")));
    assert_eq!(entry("party")["kind"], "answer");
}

#[test]
fn keys_are_rotated_in_three_steps() {
    let folder = Folder::new("rotation");
    let keys = folder.path("keys.txt");
    roundtrip(&["keys", "new", "--output", &keys]).exits(0);
    let ids = || -> Vec<String> {
        let checked = roundtrip(&["keys", "check", &keys, "--json"]).exits(0).json();
        serde_json::from_value(checked["keys"].clone()).unwrap()
    };
    let old = ids();
    for phase in ["--promote", "--retire"] {
        roundtrip(&["keys", "rotate", &keys, phase]).exits(2);
    }
    roundtrip(&["keys", "rotate", &keys]).exits(0);
    let added = ids();
    assert_eq!((added.len(), &added[0]), (2, &old[0]));
    roundtrip(&["keys", "rotate", &keys, "--promote"]).exits(0);
    assert_eq!(ids(), [added[1].clone(), added[0].clone()]);
    roundtrip(&["keys", "rotate", &keys, "--retire"]).exits(0);
    assert_eq!(ids(), [added[1].clone()]);
    let short = folder.file("short.txt", "AAAA");
    let wrong = roundtrip(&["keys", "check", &short]).exits(2);
    assert!(!wrong.err.contains("AAAA"), "{wrong:?}");
    let mut by_env = command(&["keys", "check", "env:SOME_KEYS"]);
    by_env.env("SOME_KEYS", std::fs::read_to_string(&keys).unwrap());
    assert!(ran(by_env.output().unwrap()).exits(0).out.contains("seals and opens"));
}

#[test]
fn clients_are_told_how_to_start_the_server() {
    let folder = Folder::new("config");
    for client in ["claude", "cursor", "vscode"] {
        let printed = roundtrip(&["serve", "--stdio", "--print-config", client]).exits(0).out;
        let config = folder.file("config.json", &printed);
        let list = roundtrip(&["list", "--config", &config, "roundtrip-demo", "--only", "prompts"]).exits(0);
        assert!(list.out.contains("letter"), "{client}: {list:?}");
    }
    let keys = folder.path("keys.txt");
    roundtrip(&["keys", "new", "--output", &keys]).exits(0);
    let sealed =
        roundtrip(&["serve", "--stdio", "--keys", &keys, "--print-config", "claude"]).exits(0).json();
    assert_eq!(sealed["mcpServers"]["roundtrip-demo"]["args"], json!(["serve", "--stdio", "--keys", keys]));
    let any = roundtrip(&["serve", "--http", "0.0.0.0:9000", "--print-config", "claude"]).exits(0).json();
    assert_eq!(any["mcpServers"]["roundtrip-demo"]["url"], "http://127.0.0.1:9000/mcp");
    let http = roundtrip(&["serve", "--print-config", "vscode"]).exits(0).json();
    assert_eq!(http["servers"]["roundtrip-demo"]["url"], "http://127.0.0.1:8000/mcp");
    assert!(
        roundtrip(&["serve", "--stdio"]).exits(0).out.is_empty(),
        "nothing but messages, and none was asked: {ROUNDTRIP}"
    );
}

/// Registries are told of the version that is published, of arguments that start the server, and of a name that its page repeats.
#[test]
fn registries_are_told_how_to_start_the_server() {
    let description: Value = serde_json::from_str(include_str!("../../../../server.json")).unwrap();
    let package = &description["packages"][0];
    assert_eq!((&description["version"], &package["version"]), (&json!(VERSION), &json!(VERSION)));
    assert_eq!(package["identifier"], env!("CARGO_PKG_NAME"));
    let page = include_str!("../../README.md");
    assert!(page.contains(&format!("`mcp-name: {}`", description["name"].as_str().unwrap())));
    let arguments = package["packageArguments"].as_array().unwrap().iter();
    let arguments =
        arguments.map(|argument| argument["value"].as_str().or(argument["name"].as_str()).unwrap());
    let server: Vec<&str> = arguments.collect();
    let list = roundtrip(&[&["list", "--only", "prompts", "--", ROUNDTRIP], &server[..]].concat()).exits(0);
    assert!(list.out.contains("letter"), "{list:?}");
}
