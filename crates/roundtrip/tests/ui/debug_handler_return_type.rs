//! `debug_handler`: return types that are no answer, for a tool, a prompt and a resource.

use roundtrip::wire::ContentBlock;

#[roundtrip::debug_handler]
async fn count() -> usize {
    42
}

#[roundtrip::debug_handler(prompt)]
async fn blocks() -> Vec<ContentBlock> {
    Vec::new()
}

#[roundtrip::debug_handler(resource)]
async fn nothing() {}

fn main() {}
