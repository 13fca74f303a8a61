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

/// A URL runs nothing: it needs no consent, and takes no command.
#[test]
fn a_saved_url_takes_no_command() {
    let (served, folder) = (Served::start(&[]), Folder::new("urls"));
    let flow = folder.path("flow.json");
    roundtrip(&["call", &served.url, "greet", "--save", &flow]).exits(10);
    let refused = roundtrip(&["resume", &flow, "--", "sh", "-c", "exit 1"]).exits(2);
    assert!(refused.err.contains("takes no command"), "{refused:?}");
    assert_eq!(roundtrip(&["resume", &flow, "--decline-all"]).exits(4).err, "");
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
}
