//! A plain function where an async one is meant.

use roundtrip::Tool;

fn hello() -> String {
    "hello".into()
}

fn main() {
    let _ = Tool::new("hello", hello);
}
