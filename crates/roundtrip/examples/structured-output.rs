//! A tool whose answer is data: its schema comes from the type. `cargo run -p roundtrip --example structured-output`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::{Args, Client, Json, Server, Tool, ToolError};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    city: String,
}

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Weather {
    /// Degrees Celsius
    temperature: f64,
    conditions: String,
}

async fn weather(Args(Place { city }): Args<Place>) -> Result<Json<Weather>, ToolError> {
    if city != "Oslo" {
        return Err(ToolError::new(format!("no weather station in {city}: try Oslo")));
    }
    Ok(Json(Weather { temperature: -3.5, conditions: "snow".into() }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("weather", "1.0.0").tool(Tool::new("weather", weather).read_only());
    let client = Client::in_process(server)?;

    let result = client.call_tool("weather", json!({ "city": "Oslo" })).await?;
    let weather: Weather = result.structured_content.ok_or("no structured content")?.to()?;
    println!("{weather:?}");

    let sorry = client.call_tool("weather", json!({ "city": "Atlantis" })).await?;
    println!("error for the model: {}", sorry.content[0].as_text().unwrap_or_default());
    Ok(())
}
