//! Arguments that derive `Deserialize` alone.

use roundtrip::{Args, Tool};

#[derive(serde::Deserialize)]
struct Greet {
    name: String,
}

async fn greet(Args(greet): Args<Greet>) -> String {
    greet.name
}

fn main() {
    let _ = Tool::new("greet", greet);
}
