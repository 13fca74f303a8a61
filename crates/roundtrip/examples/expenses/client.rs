//! A client that answers by itself; a real one asks its user.

use roundtrip::{Client, FormRequest};
use serde_json::json;

/// Submits two expenses, one of which has to be approved, and shows what was booked.
pub(crate) async fn visit(client: Client) -> anyhow::Result<()> {
    let client = client.on_form(async |form: FormRequest| {
        println!("? {}", form.message);
        match form.origin.key.as_str() {
            "details" => form.accept(json!({ "category": "travel", "receipt": "R-2026-17" })),
            _ => form.accept(json!({ "confirm": true })),
        }
    });
    for (purpose, euros) in [("train to Porto", 60), ("hotel in Porto", 240)] {
        let expense = json!({ "purpose": purpose, "euros": euros, "month": "2026-11" });
        let booked = client.call_tool("submit", expense).await?;
        println!("{}", booked.content[0].as_text().unwrap_or_default());
    }
    let refused = client.call_tool("delete_all", json!({})).await?;
    println!("! {}", refused.content[0].as_text().unwrap_or_default());
    let prompt = client.get_prompt("report").argument("month", "2026-11").await?;
    println!("{}", prompt.messages[0].content.as_text().unwrap_or_default());
    client.close().await;
    Ok(())
}
