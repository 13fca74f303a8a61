//! Fields of forms in a pseudo-terminal: left out, cleared, edited, typed as JSON.

use std::collections::BTreeMap;

use roundtrip::{Args, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::own::{serve, serve_form};
use crate::support::terminal::Terminal;

const ERASE: &str = "\u{7f}";
const DOWN: &str = "\u{1b}[B";

#[track_caller]
fn ends(terminal: Terminal, shown: &str) -> String {
    let (status, text) = terminal.ends();
    assert!(status.success() && text.trim_end().ends_with(shown), "no {shown:?} in {text}");
    text
}

/// A field that was left out is asked once, however often others are edited.
#[test]
fn fields_that_are_left_out_are_not_asked_again() {
    let url = serve_form(json!({ "type": "object", "required": ["first"], "properties": {
        "first": { "type": "string", "description": "Needed" },
        "second": { "type": "string", "description": "Not needed" },
    } }));
    let mut terminal = Terminal::start(&["call", &url, "fill"]);
    terminal.answers("Needed", "x\r");
    terminal.answers("Not needed; optional", "\r");
    for letter in ["y", "z"] {
        terminal.answers("Send this?", "Edit\r");
        terminal.answers("Which one?", "\r");
        terminal.answers("Needed", &format!("{ERASE}{letter}\r"));
        terminal.shows(&format!("first: {letter}"));
        terminal.shows("second: -");
    }
    terminal.answers("Send this?", "\r");
    let text = ends(terminal, r#"{"first":"z"}"#);
    assert!(!text.contains("<not answered>"), "{text}");
}

/// After Escape, questions go on with the field that was left.
#[test]
fn fields_that_were_answered_are_not_asked_again_after_escape() {
    let url = serve_form(json!({ "type": "object", "required": ["second"], "properties": {
        "first": { "type": "string", "description": "Not needed" },
        "second": { "type": "string", "description": "Needed" },
    } }));
    let mut terminal = Terminal::start(&["call", &url, "fill"]);
    terminal.answers("Not needed; optional", "\r");
    terminal.answers("Needed", "\u{1b}");
    terminal.answers("What now?", "Go on\r");
    terminal.answers("Needed", "x\r");
    terminal.answers("Send this?", "\r");
    ends(terminal, r#"{"second":"x"}"#);
}

/// Enter leaves an optional list of choices out, though one that is given needs an item.
#[test]
fn optional_choices_are_left_out() {
    let url = serve_form(json!({ "type": "object", "properties": {
        "tags": { "type": "array", "minItems": 1, "description": "Tags",
                  "items": { "type": "string", "enum": ["red", "blue"] } },
        "sure": { "type": "boolean", "title": "Are you sure?" },
    } }));
    let mut terminal = Terminal::start(&["call", &url, "fill"]);
    terminal.answers("Tags; optional", "\r");
    terminal.answers("Are you sure?", "leave\r");
    terminal.shows("tags: -");
    terminal.answers("Send this?", "\r");
    ends(terminal, "{}");
}

/// A value is there to be edited, and can be cleared; a picked choice can be taken back.
#[test]
fn optional_values_are_cleared() {
    let url = serve_form(json!({ "type": "object", "properties": {
        "text": { "type": "string", "description": "Some text" },
        "colour": { "type": "string", "enum": ["red", "blue"] },
    } }));
    let mut terminal = Terminal::start(&["call", &url, "fill"]);
    terminal.answers("Some text", "old\r");
    terminal.answers("colour", &format!("{DOWN}\r"));
    terminal.shows("colour: blue");
    terminal.answers("Send this?", "Edit\r");
    terminal.answers("Which one?", "\r");
    terminal.answers("old", &format!("{}\r", ERASE.repeat(3)));
    terminal.shows("text: -");
    terminal.answers("Send this?", "Edit\r");
    terminal.answers("Which one?", "colour\r");
    terminal.answers("(leave out)", "leave\r");
    terminal.shows("colour: -");
    terminal.answers("Send this?", "\r");
    ends(terminal, "{}");
}

/// E5: a default is shown without what a terminal obeys, and sent as it is.
#[test]
fn a_default_is_sent_as_it_is() {
    let url = serve_form(json!({ "type": "object", "properties": {
        "text": { "type": "string", "default": "def\u{1b}[31m", "description": "Some text" },
    } }));
    let mut terminal = Terminal::start(&["call", &url, "fill"]);
    terminal.shows(r"def\u{1b}[31m");
    terminal.answers("Some text", "\r");
    terminal.answers("Send this?", "Edit\r");
    terminal.answers("Which one?", "\r");
    terminal.answers("Some text", "\r");
    terminal.answers("Send this?", "\r");
    let text = ends(terminal, r#"{"text":"def\u001b[31m"}"#);
    assert!(!text.contains("def\u{1b}[31m"), "{text:?}");
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    shop: String,
    items: BTreeMap<String, u32>,
}

/// An argument that is typed as JSON is checked where it is typed.
#[test]
fn mistyped_json_is_typed_again() {
    let order = async |Args(order): Args<Order>| {
        format!("{} of {:?} at {}", order.items.len(), order.items, order.shop)
    };
    let url = serve(Server::new("own", "1").tool(Tool::new("order", order)));
    let mut terminal = Terminal::start(&["call", &url, "order"]);
    terminal.answers("shop", "Nopa\r");
    terminal.answers("items (JSON)", "{bad\r");
    terminal.answers("give JSON", &ERASE.repeat(4));
    terminal.press("{\"tea\": 2}\r");
    ends(terminal, r#"1 of {"tea": 2} at Nopa"#);
}
