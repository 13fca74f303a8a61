//! The traits can be somewhere else.
#![expect(clippy::unwrap_used, reason = "a test")]

mod vendored {
    pub(crate) use roundtrip_core::form;
}

#[derive(roundtrip_macros::Choice)]
#[choice(crate = "crate::vendored::form")]
enum Seat {
    Window,
}

#[derive(roundtrip_macros::Form)]
#[form(crate = "vendored::form", key = "table", message = "Where?")]
struct Table {
    seat: Seat,
}

fn main() {
    use vendored::form::{Asks, Choice, Form};
    assert_eq!(Table::KEY, "table");
    let content = serde_json::json!({ "seat": "window" });
    assert_eq!(Table::from_content(content.as_object().unwrap()).unwrap().seat.value(), "window");
}
