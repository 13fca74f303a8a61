//! `debug_handler`: return types that are no answer, for a tool, a prompt, a resource and a completer.

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

#[roundtrip::debug_handler(completer)]
async fn city() -> String {
    "Paris".into()
}

fn main() {}
