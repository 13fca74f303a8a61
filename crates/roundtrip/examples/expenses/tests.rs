//! Tests of the application: every tool that asks survives a replay, and callers do not see each other.

use roundtrip::Client;
use roundtrip::testing::replay;
use serde_json::{Value, json};

use crate::books::Books;
use crate::server::server;

fn expense(euros: u32) -> Value {
    json!({ "purpose": "hotel", "euros": euros, "month": "2026-11" })
}

fn details() -> Value {
    json!({ "category": "meals", "receipt": "R-17" })
}

#[tokio::test]
async fn a_small_expense_is_booked_once() {
    let books = Books::default();
    let script = replay(server(books.clone())).tool("submit", expense(20)).accept("details", details());
    let result = script.await.unwrap();
    assert_eq!(result["structuredContent"]["category"], "meals");
    // The harness has lost replies and repeated rounds on the way.
    assert_eq!(books.of("me", None).len(), 1);
}

#[tokio::test]
async fn a_large_expense_is_approved_first() {
    let call = replay(server(Books::default())).tool("submit", expense(500)).accept("details", details());
    let result = call.accept("approval", json!({ "confirm": false })).await.unwrap();
    assert_eq!(
        (&result["isError"], &result["content"][0]["text"]),
        (&json!(true), &json!("the expense was not approved"))
    );
}

#[tokio::test]
async fn a_wrong_expense_is_refused_with_its_place() {
    let client = Client::in_process(server(Books::default())).unwrap();
    let result = client.call_tool("submit", expense(20_000)).await.unwrap();
    assert!(result.content[0].as_text().unwrap().contains("/euros"), "{result:?}");
    let refused = client.call_tool("delete_all", json!({})).await.unwrap();
    assert_eq!(refused.content[0].as_text(), Some("expenses are kept for ten years"));
}

#[tokio::test]
async fn what_was_booked_can_be_read() {
    let client = Client::in_process(server(Books::default())).unwrap();
    let client = client.on_form(async |form| match form.origin.key.as_str() {
        "details" => form.accept(details()),
        _ => form.accept(json!({ "confirm": true })),
    });
    client.call_tool("submit", expense(20)).await.unwrap();
    client.call_tool("submit", expense(200)).await.unwrap();
    let listed = client.call_tool("list", json!({ "month": "2026-11" })).await.unwrap();
    let listed: Value = serde_json::from_str(listed.structured_content.unwrap().get()).unwrap();
    assert_eq!((&listed["euros"], listed["expenses"].as_array().unwrap().len()), (&json!(220), 2));
    client.read_resource("expenses://by-number/2").await.unwrap();
    client.read_resource("expenses://by-number/3").await.unwrap_err();
    let report = client.get_prompt("report").argument("month", "2026-11").await.unwrap();
    assert!(report.messages[0].content.as_text().unwrap().contains("hotel: 200 euros"));
}
