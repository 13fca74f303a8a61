//! `debug_handler`: functions that cannot be handlers, whatever their types.

struct Desk;

#[roundtrip::debug_handler]
fn hello() -> String {
    "hello".into()
}

#[roundtrip::debug_handler]
async fn show<T: ToString>(value: T) -> String {
    value.to_string()
}

#[roundtrip::debug_handler(toll)]
async fn open() -> &'static str {
    "open"
}

impl Desk {
    #[roundtrip::debug_handler]
    async fn ring(self) -> &'static str {
        "ding"
    }
}

#[roundtrip::debug_handler]
struct Bell;

fn main() {}
