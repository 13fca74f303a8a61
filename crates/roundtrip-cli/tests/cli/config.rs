//! Configuration files of other clients: values that are typed, and files of variables.

use serde_json::{Value, json};

use crate::support::{Folder, ROUNDTRIP, Served, roundtrip};

/// Writes a file with the server `shop`.
fn config(folder: &Folder, server: &Value, inputs: &Value) -> String {
    folder.file("mcp.json", &json!({ "servers": { "shop": server }, "inputs": inputs }).to_string())
}

/// Variables of a file reach the server; those of the entry come before them.
#[cfg(unix)]
#[test]
fn a_file_of_variables_is_read() {
    let folder = Folder::new("env-file");
    folder.file(
        "server.env",
        &format!(
            "# the server\n\nexport PROGRAM='{ROUNDTRIP}'\nWORD=\"serve\" # what it does\nOPTION=--nonsense\n"
        ),
    );
    let server = json!({
        "command": "sh", "args": ["-c", "exec \"$PROGRAM\" \"$WORD\" \"$OPTION\""],
        "envFile": "${workspaceFolder}/server.env", "env": { "OPTION": "--stdio" },
    });
    let file = config(&folder, &server, &json!([]));
    let list = roundtrip(&["list", "--config", &file, "shop", "--only", "prompts"]).exits(0);
    assert!(list.out.contains("letter"), "{list:?}");
    std::fs::remove_file(folder.path("server.env")).unwrap();
    let missing = roundtrip(&["list", "--config", &file, "shop"]).exits(2);
    assert!(missing.err.contains("server.env") && missing.err.contains("`shop`"), "{missing:?}");
    folder.file("server.env", "FINE=1\nnot a variable\n");
    let wrong = roundtrip(&["list", "--config", &file, "shop"]).exits(2);
    assert!(wrong.err.contains("server.env") && wrong.err.contains("line 2"), "{wrong:?}");
}

/// A device has no end, and a pipe may never have a beginning: neither is read.
#[cfg(unix)]
#[test]
fn files_that_are_not_regular_are_refused() {
    let folder = Folder::new("endless");
    let pipe = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for endless in ["/dev/zero", &pipe] {
        let refused = roundtrip(&["list", "--config", endless, "shop"]).exits(2);
        assert!(refused.err.contains("regular file"), "{refused:?}");
        let file = config(&folder, &json!({ "command": "true", "envFile": endless }), &json!([]));
        let refused = roundtrip(&["list", "--config", &file, "shop"]).exits(2);
        assert!(refused.err.contains("regular file") && refused.err.contains("envFile"), "{refused:?}");
    }
    let long = folder.file("long.json", &" ".repeat(1024 * 1024 + 1));
    let refused = roundtrip(&["list", "--config", &long, "shop"]).exits(2);
    assert!(refused.err.contains("1048576 bytes"), "{refused:?}");
}

/// Without a terminal, defaults stand for what would be typed or picked.
#[test]
fn defaults_of_inputs_are_taken_without_a_terminal() {
    let (served, folder) = (Served::start(&[]), Folder::new("defaults"));
    let pick = |default: Value| {
        let input = json!({ "id": "url", "type": "pickString", "options": ["http://a", &served.url], "default": default });
        let file = config(&folder, &json!({ "url": "${input:url}" }), &json!([input]));
        roundtrip(&["list", "--config", &file, "shop"])
    };
    pick(json!(served.url)).exits(0);
    let none = pick(Value::Null).exits(2);
    assert!(none.err.contains("`${input:url}` has to be typed"), "{none:?}");
    let editors = json!([{ "id": "url", "type": "command", "command": "editor.url" }]);
    let file = config(&folder, &json!({ "url": "${input:url}" }), &editors);
    let refused = roundtrip(&["list", "--config", &file, "shop"]).exits(2);
    assert!(refused.err.contains("`command`"), "{refused:?}");
}

#[cfg(unix)]
mod terminal {
    use rustix::process::Signal;

    use super::*;
    use crate::support::terminal::Terminal;

    #[track_caller]
    fn ends(terminal: Terminal, code: i32) -> String {
        let (status, text) = terminal.ends();
        assert_eq!(status.code(), Some(code), "{text}");
        text
    }

    fn asking(folder: &Folder) -> String {
        let input = json!({ "id": "url", "type": "promptString", "description": "Where\u{1b}[2J is it?" });
        config(folder, &json!({ "url": "${input:url}" }), &json!([input]))
    }

    const PROMPT: &str = r"Where\u{1b}[2J is it?";

    /// A typed value is asked for once. E5: the file's text is shown and not obeyed.
    #[test]
    fn inputs_are_typed() {
        let (served, folder) = (Served::start(&[]), Folder::new("typed"));
        let mut terminal = Terminal::start(&["list", "--config", &asking(&folder), "shop"]);
        terminal.answers(PROMPT, &format!("{}\r", served.url));
        terminal.shows("letter");
        let text = ends(terminal, 0);
        assert!(!text.contains("Where\u{1b}"), "{text:?}");
    }

    #[test]
    fn inputs_are_picked() {
        let (served, folder) = (Served::start(&[]), Folder::new("picked"));
        let options = json!(["http://127.0.0.1:1/mcp", { "label": "the \u{1b}demo", "value": served.url }]);
        let input =
            json!({ "id": "url", "type": "pickString", "description": "Which one?", "options": options });
        let file = config(&folder, &json!({ "url": "${input:url}" }), &json!([input]));
        let mut terminal = Terminal::start(&["list", "--config", &file, "shop"]);
        terminal.shows("Which one?");
        terminal.answers(r"the \u{1b}demo", "demo\r");
        terminal.shows("letter");
        ends(terminal, 0);
    }

    /// Ctrl-C, Escape, signals and the deadline do at these prompts what they do at others.
    #[test]
    fn prompts_for_inputs_end_as_others_do() {
        let folder = Folder::new("given-up");
        let file = asking(&folder);
        let list = ["list", "--config", &file, "shop"];
        let mut terminal = Terminal::start(&list);
        terminal.answers(PROMPT, "a\u{3}");
        terminal.shows("roundtrip: interrupted");
        ends(terminal, 130);
        let mut terminal = Terminal::start(&list);
        terminal.answers(PROMPT, "\u{1b}");
        terminal.shows("roundtrip: cancelled");
        ends(terminal, 4);
        for command in [&list[..], &["whoami", "--config", &file, "shop"]] {
            let mut terminal = Terminal::start(command);
            terminal.answers(PROMPT, "a");
            terminal.shows("a");
            terminal.signal(Signal::TERM);
            terminal.shows("roundtrip: interrupted");
            assert_eq!(terminal.process.wait().unwrap().code(), Some(130));
            assert!(terminal.is_restored());
        }
        let mut terminal =
            Terminal::start(&["call", "--deadline", "0.5", "--config", &file, "shop", "greet"]);
        terminal.shows(PROMPT);
        terminal.shows("not done within 500ms");
        assert_eq!(terminal.process.wait().unwrap().code(), Some(7));
        assert!(terminal.is_restored());
    }
}
