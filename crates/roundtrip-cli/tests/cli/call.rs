//! Calls by the built command, without a terminal.

use serde_json::json;

use crate::support::{Folder, ROUNDTRIP, Served, command, ran, roundtrip};

const BOOKED: &str = "Nopa for 4 on 2026-12-31, deposit 80\n";

fn booking(folder: &Folder) -> String {
    let answers = json!({ "party": { "people": 4 }, "day": { "date": "2026-12-31" } });
    folder.file("booking.json", &answers.to_string())
}

#[test]
fn answers_of_a_file_complete_a_tool_that_asks() {
    let (served, folder) = (Served::start(&[]), Folder::new("answers"));
    let words =
        ["call", &served.url, "book_table", "--arg", "restaurant=Nopa", "--answers", &booking(&folder)];
    let ran = roundtrip(&words).exits(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (BOOKED, ""));
    let ran = roundtrip(&[words.as_slice(), &["--json"]].concat()).exits(0);
    assert_eq!(ran.json()["content"][0]["text"], BOOKED.trim());
    assert_eq!(ran.err, "");
}

/// The same over standard input and output, of a server of either era, and by a name in a configuration file.
#[test]
fn a_server_is_a_command_or_a_name_of_any_era() {
    let folder = Folder::new("endpoints");
    let answers = booking(&folder);
    let call = ["call", "book_table", "--args", r#"{"restaurant": "Nopa"}"#, "--answers", &answers];
    let serve = ["--", ROUNDTRIP, "serve", "--stdio"];
    assert_eq!(roundtrip(&[&call[..], &serve].concat()).exits(0).out, BOOKED);

    let entry = json!({ "command": "${ROUNDTRIP}", "args": ["serve", "--stdio"] });
    let config = folder.file("mcp.json", &json!({ "mcpServers": { "demo": entry } }).to_string());
    let named = ["call", "--config", &config, "demo"];
    let run = command(&[&named[..], &call[1..]].concat()).env("ROUNDTRIP", ROUNDTRIP).output().unwrap();
    assert_eq!(ran(run).exits(0).out, BOOKED);
    let wrong = roundtrip(&["list", "--config", &config, "dmeo"]).exits(2);
    assert!(wrong.err.contains("did you mean `demo`?"), "{wrong:?}");

    // Servers of the handshake eras name no questions: the client does.
    let old = json!({ "elicitation-1": { "people": 4 }, "elicitation-2": { "date": "2026-12-31" } });
    let old = folder.file("old.json", &old.to_string());
    let call =
        ["call", "book_table", "--arg", "restaurant=Nopa", "--protocol", "2025-11-25", "--answers", &old];
    assert_eq!(roundtrip(&[&call[..], &serve].concat()).exits(0).out, BOOKED);
    let served = Served::start(&[]);
    assert_eq!(roundtrip(&[&call[..1], &[&served.url], &call[1..]].concat()).exits(0).out, BOOKED);
}

#[test]
fn without_an_answer_it_fails_closed() {
    let served = Served::start(&[]);
    let ran = roundtrip(&["call", &served.url, "greet"]).exits(10);
    assert!(ran.out.is_empty() && ran.err.contains("name (form): What is your name?"), "{ran:?}");
    let error = roundtrip(&["call", &served.url, "greet", "--json"]).exits(10).error();
    assert_eq!((&error["kind"], &error["exit"]), (&json!("asked"), &json!(10)));
    assert_eq!(error["questions"][0]["key"], "name");
    assert_eq!(error["questions"][0]["schema"]["properties"]["name"]["type"], "string");
}

#[test]
fn rules_answer_for_scripts() {
    let served = Served::start(&[]);
    let files = ["call", &served.url, "delete_files", "--arg", "paths=a", "--arg", "paths=b"];
    let yes = roundtrip(&[&files[..], &["--yes"]].concat()).exits(0);
    assert_eq!(yes.out, "2 files would be gone now\n");
    let no = roundtrip(&[&files[..], &["--decline-all"]].concat()).exits(0);
    assert_eq!(no.out, "nothing was deleted\n", "the tool takes no for an answer");
    let declined = roundtrip(&["call", &served.url, "greet", "--decline-all"]).exits(4);
    assert!(declined.out.contains("declined"), "{declined:?}");
    // There is no default for a name, and no consent to a page by default.
    roundtrip(&["call", &served.url, "greet", "--yes"]).exits(10);
    let page = roundtrip(&["call", &served.url, "connect_account", "--yes"]).exits(10);
    assert!(page.err.contains("connect (url)") && page.err.contains("https://accounts.example/"), "{page:?}");
    assert!(page.err.contains("more than `--yes` can answer"), "{page:?}");
}

#[test]
fn answers_files_that_do_not_fit_are_errors() {
    let (served, folder) = (Served::start(&[]), Folder::new("unfit"));
    let greet = |answers: &str| {
        let file = folder.file("answers.json", answers);
        roundtrip(&["call", &served.url, "greet", "--answers", &file])
    };
    let missing = greet(r#"{ "nmae": { "name": "Ada" } }"#).exits(10);
    assert!(missing.err.contains("`name`") && missing.err.contains("answers.json"), "{missing:?}");
    // Programs are told the questions, to answer them in the next run.
    let empty = folder.file("empty.json", "{}");
    let asked = roundtrip(&["call", &served.url, "greet", "--answers", &empty, "--json"]).exits(10).error();
    assert_eq!((&asked["key"], &asked["questions"][0]["kind"]), (&json!("name"), &json!("form")));
    let unused = greet(r#"{ "name": { "name": "Ada" }, "age": {} }"#).exits(2);
    assert!(unused.err.contains("has not asked `age`"), "{unused:?}");
    assert_eq!(unused.out, "Hello, Ada!\n");
    for unfit in
        [r#"{ "name": { "name": 5 } }"#, r#"{ "name": "maybe" }"#, r#"{ "name": { "name": "" } }"#, "[]", "{"]
    {
        greet(unfit).exits(2);
    }
    let again = greet(r#"{ "name": [{ "name": "Ada" }] }"#).exits(0);
    assert_eq!(again.out, "Hello, Ada!\n");
    roundtrip(&["call", &served.url, "greet", "--answers", "/nowhere/answers.json"]).exits(2);
}

#[test]
fn pages_models_and_roots_are_answered() {
    let (served, folder) = (Served::start(&[]), Folder::new("kinds"));
    let consent = folder.file("consent.json", r#"{ "connect": "accept" }"#);
    let page = roundtrip(&["call", &served.url, "connect_account", "--answers", &consent]).exits(0);
    assert_eq!(page.out, "thank you for visiting\n");
    let poem =
        roundtrip(&["call", &served.url, "poem", "--sampler", "grep -o 'A poem about rounds'"]).exits(0);
    assert_eq!(poem.out, "A poem about rounds\n");
    let failed = roundtrip(&["call", &served.url, "poem", "--sampler", "exit 3"]).exits(1);
    assert!(failed.err.contains("the model failed"), "{failed:?}");
    let folders =
        roundtrip(&["call", &served.url, "folders", "--root", "/srv/a b", "--root", "file:///c"]).exits(0);
    assert_eq!(folders.out, "file:///srv/a%20b\nfile:///c\n");
    // What cannot be answered is not declared, and the server says what it needs.
    for (tool, remedy) in [("poem", "`--sampler COMMAND` or `--model NAME`"), ("folders", "`--root FOLDER`")]
    {
        let missing = roundtrip(&["call", &served.url, tool]).exits(6);
        assert!(missing.err.contains(remedy) && !missing.err.contains("Client::"), "{missing:?}");
    }
}

#[test]
fn lists_prompts_and_resources() {
    let (served, folder) = (Served::start(&[]), Folder::new("offers"));
    let list = roundtrip(&["list", &served.url]).exits(0).out;
    assert!(list.contains("book_table(restaurant)") && list.contains("notes://{topic}"), "{list}");
    let list = roundtrip(&["list", &served.url, "--only", "tools", "--json"]).exits(0).json();
    assert_eq!((list["tools"].as_array().unwrap().len(), list.get("prompts")), (13, None));
    let name = folder.file("name.json", r#"{ "name": { "name": "Ada" } }"#);
    let letter = roundtrip(&["prompt", &served.url, "letter", "--answers", &name]).exits(0);
    assert_eq!(letter.out, "user: Write a short letter to Ada.\n");
    let note = roundtrip(&["read", &served.url, "notes://sea", "--yes"]).exits(0);
    assert_eq!(note.out, "All that is known about sea.\n");
    roundtrip(&["read", &served.url, "other://sea"]).exits(6);
    roundtrip(&["prompt", &served.url, "lettr"]).exits(2);
    let handed = roundtrip(&["call", &served.url, "relay"]).exits(0);
    assert_eq!(handed.out, "handed on 3 times\n");
}

#[test]
fn wrong_words_say_what_is_right() {
    let served = Served::start(&[]);
    let call = |more: &[&str]| roundtrip(&[&["call", &served.url], more].concat());
    for (words, code, text) in [
        (&["book_tabel", "--arg", "restaurant=Nopa"][..], 2, "did you mean `book_table`?"),
        (&["book_tabel", "--args", "{}"], 2, "did you mean `book_table`?"),
        (&["book_table"], 2, "missing arguments: `restaurant`"),
        (&["book_table", "--arg", "restaurant"], 2, "key=value"),
        (&["delete_files", "--args", "{"], 2, "--args"),
        (&["delete_files", "--args", "@/nowhere.json"], 2, "/nowhere.json"),
        (&["delete_files", "--args", r#"{"paths": 5}"#], 1, "paths"),
        (&["one", "two"], 2, "2 words"),
        (&["fail"], 1, ""),
        (&["greet", "--protocol", "1999-01-01"], 2, "the revisions are"),
        (&["greet", "--header", "nothing"], 2, "name: value"),
        (&["greet", "--timeout", "soon"], 2, "seconds"),
    ] {
        let ran = call(words).exits(code);
        assert!(format!("{}{}", ran.out, ran.err).contains(text), "{words:?}: {ran:?}");
    }
    let error = roundtrip(&["call", "--json", "--nonsense"]).exits(2).error();
    assert_eq!(error["kind"], "usage");
    assert!(roundtrip(&["call", "no-url", "greet"]).exits(2).err.contains("--config"));
}

#[test]
fn servers_that_do_not_answer_are_errors_of_transport() {
    let gone = Served::start(&[]).url.clone();
    let error = roundtrip(&["call", &gone, "greet", "--json"]).exits(3).error();
    assert_eq!(error["kind"], "transport");
    roundtrip(&["list", "--", "/nowhere/server"]).exits(3);
    roundtrip(&["list", "--", "sh", "-c", "exit 1"]).exits(3);
    roundtrip(&["list", "--", "sh", "-c", "echo rubbish; exec cat >/dev/null"]).exits(3);
}

/// Lines that are not messages are left aside; a server that writes nothing else is given up, or does not answer.
#[test]
fn rubbish_of_a_server_is_not_an_answer() {
    let banner = format!("echo starting; exec '{ROUNDTRIP}' serve --stdio");
    let list = roundtrip(&["list", "--only", "prompts", "--", "sh", "-c", &banner]).exits(0);
    assert!(list.out.contains("letter"), "{list:?}");
    let some = "echo '{\"jsonrpc\": 5}'; exec sleep 60";
    roundtrip(&["list", "--timeout", "0.5", "--", "sh", "-c", some]).exits(7);
    let given_up = roundtrip(&["list", "--", "yes"]).exits(3);
    assert!(given_up.err.contains("lines in a row that are not messages"), "{given_up:?}");
}

#[test]
fn calls_that_take_too_long_are_given_up() {
    let served = Served::start(&[]);
    let count = ["call", &served.url, "count", "--args", r#"{"to": 1000}"#];
    let late = roundtrip(&[&count[..], &["--deadline", "0.2"]].concat()).exits(7);
    assert!(late.err.contains("not done within"), "{late:?}");
    let silent = ["list", "--json", "--timeout", "0.5", "--", "sleep", "60"];
    assert_eq!(roundtrip(&silent).exits(7).error()["kind"], "gaveUp");
}

/// C6: a server that asks on and on is given up.
#[test]
fn too_many_rounds_are_given_up() {
    let (served, folder) = (Served::start(&[]), Folder::new("rounds"));
    let error = roundtrip(&["call", &served.url, "guess", "--yes", "--json"]).exits(7).error();
    assert!(error["message"].as_str().unwrap().contains("rounds"), "{error}");
    let guesses = folder.file(
        "guesses.json",
        r#"{ "guess-1": { "number": 5 }, "guess-2": { "number": 8 }, "guess-3": { "number": 7 } }"#,
    );
    let right = roundtrip(&["call", &served.url, "guess", "--answers", &guesses]).exits(0);
    assert_eq!(right.out, "7 it is, after 3 guesses\n");
}

/// Each code of the manual's table is in `--help`, and the other way round.
#[test]
fn the_manual_lists_the_exit_codes() {
    let manual = include_str!("../../../../docs/manual/command-line.md");
    let rows = manual.lines().skip_while(|line| !line.starts_with("| exit code |")).skip(2);
    let codes: Vec<u8> = rows
        .map_while(|row| row.strip_prefix("| ")?.split(' ').next())
        .map(|code| code.parse().unwrap())
        .collect();
    let help = roundtrip(&["--help"]).exits(0).out;
    let listed = help.split("Exit codes: ").nth(1).unwrap().split(',');
    let listed: Vec<u8> =
        listed.map(|code| code.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert_eq!(codes, listed);
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 10, 130]);
}

/// E5: text of a server is shown and not obeyed, in results, in errors and as JSON.
#[test]
fn escape_sequences_of_a_server_do_not_reach_the_terminal() {
    let (served, folder) = (Served::start(&[]), Folder::new("escapes"));
    let restaurant = "restaurant=\u{1b}[2J\u{9b}1m\u{202e}\u{7f}";
    let call = ["call", &served.url, "book_table", "--arg", restaurant, "--answers", &booking(&folder)];
    for more in [&[][..], &["--json"], &["--trace"]] {
        let ran = roundtrip(&[&call[..], more].concat()).exits(0);
        let obeyed = |text: &str| text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7f}']);
        assert!(!obeyed(&ran.out) && !obeyed(&ran.err), "{ran:?}");
        assert!(ran.out.contains("[2J"), "{ran:?}");
    }
}

#[test]
fn a_trace_shows_every_round_and_no_state() {
    let (served, folder) = (Served::start(&[]), Folder::new("trace"));
    let call = [
        "call",
        &served.url,
        "book_table",
        "--arg",
        "restaurant=Nopa",
        "--trace",
        "--answers",
        &booking(&folder),
    ];
    let ran = roundtrip(&call).exits(0);
    let lines: Vec<&str> = ran.err.lines().collect();
    let begin = [
        "--> tools/list",
        "<-- complete",
        "--> tools/call book_table",
        "<-- input_required",
        "    party (form",
        "--> `tools/call` of `book_table` with ",
        "<-- input_required",
        "    day (form",
        "--> `tools/call` of `book_table` with ",
        "<-- complete",
    ];
    assert_eq!(lines.len(), begin.len(), "{ran:?}");
    for (line, begin) in lines.iter().zip(begin) {
        assert!(line.starts_with(begin), "{line} should begin with {begin}");
    }
    assert!(lines[3].contains("characters, digest ") && lines.iter().all(|line| line.len() < 160), "{ran:?}");
}

/// The model behind a pipeline ends with the command.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_the_whole_pipeline_of_a_sampler() {
    use rustix::process::{Pid, Signal, kill_process};
    let (served, folder) = (Served::start(&[]), Folder::new("pipeline"));
    let pipe = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let sampler = format!("sh -c 'echo $$ > {pipe}; exec sleep 600' | cat");
    let mut calling = command(&["call", &served.url, "poem", "--sampler", &sampler]);
    let mut calling = calling.stderr(std::process::Stdio::null()).spawn().unwrap();
    let model: u32 = std::fs::read_to_string(&pipe).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_child(&calling), Signal::INT).unwrap();
    assert_eq!(calling.wait().unwrap().code(), Some(130));
    crate::support::goes(model);
}
