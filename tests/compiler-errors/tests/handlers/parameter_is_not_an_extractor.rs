//! A bare type where `Args` or `State` is meant.

use roundtrip::Tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(greet: Greet) -> String {
    greet.name
}

fn main() {
    let _ = Tool::new("greet", greet);
}
