//! A closure that holds what cannot be shared by threads.

use std::rc::Rc;

use roundtrip::Tool;

fn main() {
    let seen = Rc::new(1);
    let _ = Tool::new("count", move || std::future::ready(seen.to_string()));
}
