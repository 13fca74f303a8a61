//! Texts of a server that are longer than a row: no part of them begins a row that looks like ours.

use roundtrip::wire::{ElicitSchema, ErrorObject};
use roundtrip::{Args, Progress, Question, Reply, Round, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::own::{serve, serve_app};
use crate::support::terminal::Terminal;
use crate::support::{Folder, roundtrip};

/// Words that look like ours.
const OURS: &str = "roundtrip: verified";
/// Widths of terminals.
const WIDTHS: [u16; 2] = [80, 100];

/// Returns texts that put these words at the beginning of a row of any width, whatever stands before them.
fn texts() -> [String; 2] {
    // 21 characters, which have no divisor in common with the widths.
    let everywhere = format!("{OURS}! ").repeat(100);
    let behind_blanks = WIDTHS.map(|width| format!("{}{OURS}", " ".repeat(usize::from(width) * 12)));
    [everywhere, format!("Hello {}", behind_blanks.concat())]
}

/// Returns the rows of a terminal on which this was written from the top. Movements of the cursor count as ends of rows.
fn rows(text: &str, columns: u16) -> Vec<String> {
    let mut plain = String::new();
    let mut parts = text.split("\u{1b}[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |end| end + 1);
        plain.push_str(if part[..end].ends_with('m') { "" } else { "\n" });
        plain.push_str(&part[end..]);
    }
    let lines = plain.split(['\n', '\r']).map(|line| line.chars().collect::<Vec<_>>());
    lines.flat_map(|line| line.chunks(columns.into()).map(String::from_iter).collect::<Vec<_>>()).collect()
}

/// Asserts that a screen has the words of the server, and no row that begins with them.
#[track_caller]
fn assert_marked(text: &str, columns: u16) {
    assert!(text.contains(OURS), "{text}");
    for row in rows(text, columns) {
        assert!(!row.starts_with(OURS), "{columns} columns: {row:?} of {text:?}");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Sends {
    text: String,
}

/// Serves tools that send a text of their caller's in each place where a server can.
fn server() -> Server {
    let fail = async |Args(sends): Args<Sends>| Err::<String, _>(ErrorObject::new(-32602, sends.text));
    let report = async |Args(sends): Args<Sends>, progress: Progress| {
        progress.report((1, 2, sends.text));
        std::future::pending::<String>().await
    };
    let ask = async |Args(sends): Args<Sends>, round: Round| {
        let field = json!({ "type": "string" });
        Ok::<Reply, ToolError>(round.ask([question(&sends.text, &field)]))
    };
    Server::new("own", "1.0.0")
        .tool(Tool::new("fail", fail))
        .tool(Tool::new("report", report))
        .tool(Tool::new("ask", ask))
}

fn question(message: &str, field: &Value) -> Question {
    let schema = json!({ "type": "object", "properties": { "field": field }, "required": ["field"] });
    let schema: ElicitSchema = serde_json::from_value(schema).unwrap();
    Question::form_of("form", message.to_owned(), schema)
}

/// Starts a call of a tool that sends a text back.
fn call(url: &str, tool: &str, text: &str, columns: u16, more: &[&str]) -> Terminal {
    let arguments = json!({ "text": text }).to_string();
    Terminal::of_width(columns, &[&["call", url, tool, "--args", &arguments], more].concat())
}

/// E5: errors, questions, lists of what was asked, traces and progress.
#[test]
fn long_texts_of_a_call_are_marked_row_by_row() {
    let (url, folder) = (serve(server()), Folder::new("long-texts"));
    let none = folder.file("none.json", "{}");
    for columns in WIDTHS {
        for text in texts() {
            let (_, shown) = call(&url, "fail", &text, columns, &[]).ends();
            assert_marked(&shown, columns);
            let (_, shown) = call(&url, "ask", &text, columns, &["--answers", &none, "--trace"]).ends();
            assert_marked(&shown, columns);
            let mut terminal = call(&url, "ask", &text, columns, &[]);
            terminal.answers("? field", "\u{3}");
            assert_marked(&terminal.ends().1, columns);
            let mut terminal = call(&url, "report", &text, columns, &[]);
            terminal.shows("50%");
            terminal.signal(rustix::process::Signal::INT);
            let (_, shown) = terminal.ends();
            assert!(!rows(&shown, columns).iter().any(|row| row.starts_with(OURS)), "{shown:?}");
        }
    }
}

/// E5: an address is not wrapped, as people copy it. Rows of ours say where it begins and ends, and its host is marked.
#[test]
fn a_long_address_ends_with_a_row_of_ours() {
    const OURS: &str = "roundtrip:verified";
    let url = format!("https://{}example/{}", "roundtrip.verified.".repeat(20), OURS.repeat(40));
    let ask = move |round: Round| {
        let question = Question::url("page", "Visit", url.clone());
        async move { Ok::<Reply, ToolError>(round.ask([question])) }
    };
    let server = serve(Server::new("own", "1.0.0").tool(Tool::new("ask", ask)));
    for columns in WIDTHS {
        let mut terminal = Terminal::of_width(columns, &["call", &server, "ask"]);
        terminal.answers("Visit this page?", "\u{3}");
        let (_, shown) = terminal.ends();
        let (before, rest) = shown.split_once("all rows from here to its end are the address:\r\n").unwrap();
        let (address, behind) = rest.split_once("\r\n  (end of the address)\r\n").unwrap();
        assert!(address.starts_with("  https://") && address.ends_with(OURS), "{shown:?}");
        assert!(!address.contains('\n'), "it can be copied: {shown:?}");
        for row in rows(&format!("{before}\n{behind}"), columns) {
            assert!(!row.contains("verified") || row.starts_with("  "), "{row:?} of {shown:?}");
        }
        assert!(behind.contains("host: "), "{shown:?}");
    }
}

/// E5: the identifier of a task is the server's choice.
#[test]
fn a_long_identifier_of_a_task_is_marked() {
    // As long as identifiers may be, and without a divisor in common with the widths.
    let id = format!("{OURS}! ").repeat(48);
    let created = move |request: String| {
        let request: Value = serde_json::from_str(&request).unwrap();
        let time = "2026-07-28T00:00:00Z";
        let task = json!({
            "resultType": "task", "taskId": id, "status": "working", "createdAt": time, "lastUpdatedAt": time,
            "ttlMs": 1000,
        });
        let reply = json!({ "jsonrpc": "2.0", "id": request["id"], "result": task });
        async move { ([("content-type", "application/json")], reply.to_string()) }
    };
    let url = serve_app(axum::Router::new().fallback(axum::routing::post(created)));
    for columns in WIDTHS {
        let words = ["call", &url, "any", "--args", "{}", "--detach", "--protocol", "2026-07-28"];
        let (status, shown) = Terminal::of_width(columns, &words).ends();
        assert_eq!(status.code(), Some(0), "{shown}");
        assert!(shown.contains(&format!("task {OURS}")), "{shown}");
        assert_marked(&shown, columns);
    }
}

/// E5: names, descriptions, choices and defaults of a field.
#[test]
fn long_texts_of_a_form_are_marked_row_by_row() {
    for text in texts() {
        let fields = [
            json!({ "type": "string", "title": text }),
            json!({ "type": "string", "description": text }),
            json!({ "type": "string", "default": text }),
            json!({ "type": "boolean", "title": text }),
            json!({ "type": "string", "enum": [text, "b"] }),
            json!({ "type": "array", "items": { "type": "string", "enum": [text, "b"] } }),
        ];
        for (at, field) in fields.into_iter().enumerate() {
            let ask = move |round: Round| {
                let question = question("Which?", &field);
                async move { Ok::<Reply, ToolError>(round.ask([question])) }
            };
            let url = serve(Server::new("own", "1.0.0").tool(Tool::new("ask", ask)));
            let columns = WIDTHS[at % 2];
            let mut terminal = Terminal::of_width(columns, &["call", &url, "ask"]);
            terminal.shows("| Which?");
            // Keys of a prompt that is complete: an answer of its own, the review, and an end.
            terminal.answers("? ", if at == 2 || at > 3 { "\r" } else { "y\r" });
            terminal.answers("Send this?", "\u{3}");
            let (_, shown) = terminal.ends();
            assert!(shown.contains("roundtrip: ver") || text.starts_with("Hello"), "{at}: {shown:?}");
            for row in rows(&shown, columns) {
                assert!(!row.starts_with("roundtrip: ver"), "{at}, {columns} columns: {row:?} of {shown:?}");
            }
        }
    }
}

/// E5: names of servers and tools, and descriptions in lists.
#[test]
fn long_names_are_clipped() {
    for text in texts() {
        let ask = async |round: Round| {
            Ok::<Reply, ToolError>(round.ask([question("Which?", &json!({ "type": "string" }))]))
        };
        let url = serve(Server::new(&text, "1.0.0").tool(Tool::new("ask", ask).description(&text)));
        for columns in WIDTHS {
            let mut terminal = Terminal::of_width(columns, &["call", &url, "ask"]);
            terminal.shows("at http://127.0.0.1");
            terminal.answers("? field", "\u{3}");
            let (_, shown) = terminal.ends();
            // The name is the server's own: it stands in quotes.
            assert!(!rows(&shown, columns).iter().any(|row| row.starts_with(OURS)), "{shown:?}");
            let (_, shown) = Terminal::of_width(columns, &["list", &url]).ends();
            assert!(!rows(&shown, columns).iter().any(|row| row.starts_with(OURS)), "{shown:?}");
        }
        let listed = roundtrip(&["list", &url]).exits(0).out;
        assert!(listed.lines().all(|line| !line.starts_with(OURS)), "{listed}");
        assert!(!listed.contains("     "), "runs of blanks are short: {listed}");
    }
}

/// E5: characters that nobody sees do not make two names look the same, nor hide text from people.
#[test]
fn invisible_characters_of_a_server_are_shown() {
    let (url, seen) = (serve(server()), r"pay\u{200b}ment\u{e0041}\u{3164}");
    let arguments = json!({ "text": "pay\u{200b}ment\u{e0041}\u{3164}" }).to_string();
    let call = ["call", &url, "fail", "--args", &arguments];
    let failed = roundtrip(&call).exits(6);
    assert!(failed.err.contains(seen), "{failed:?}");
    let failed = roundtrip(&[&call[..], &["--json"]].concat()).exits(6);
    assert!(failed.err.contains(r"pay\u200bment\udb40\udc41\u3164"), "{failed:?}");
    assert!(failed.error()["message"].as_str().unwrap().contains("pay\u{200b}ment\u{e0041}\u{3164}"));
}
