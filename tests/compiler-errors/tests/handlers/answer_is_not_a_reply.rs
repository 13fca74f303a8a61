//! A return type that says nothing about how to show it.

use roundtrip::Tool;

async fn count() -> usize {
    42
}

fn main() {
    let _ = Tool::new("count", count);
}
