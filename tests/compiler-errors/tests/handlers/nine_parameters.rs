//! One parameter more than a handler may have.

use roundtrip::{Ask, Caller, Log, Progress, State, Tool};

async fn busy(
    _ask: Ask,
    _caller: Caller,
    _log: Log,
    _progress: Progress,
    _a: State<u8>,
    _b: State<u16>,
    _c: State<u32>,
    _d: State<u64>,
    _e: State<i8>,
) -> &'static str {
    "busy"
}

fn main() {
    let _ = Tool::new("busy", busy);
}
