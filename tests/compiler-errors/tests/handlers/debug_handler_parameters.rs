//! `debug_handler`: parameters that no call can provide, each where it stands; and too many of them.

use roundtrip::{Args, Ask, Caller, Log, Progress, State};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

#[derive(serde::Deserialize)]
struct Bare {
    name: String,
}

#[roundtrip::debug_handler]
async fn greet(_ask: Ask, greet: Greet) -> String {
    greet.name
}

#[roundtrip::debug_handler]
async fn bare(Args(bare): Args<Bare>) -> String {
    bare.name
}

#[roundtrip::debug_handler]
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

fn main() {}
