//! Cost of decoding, dispatching and encoding one plain call, without a transport: in instructions where valgrind
//! is installed, else in time. Cost of sealing and opening a small state, in time, by suite.
//!
//! `cargo bench -p roundtrip-benches --bench micro`. Instructions are counted by running each case under callgrind
//! twice, with different numbers of calls, and dividing the difference: what starting up costs cancels out.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops when something is wrong"
)]

use std::hint::black_box;
use std::process::Command;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use roundtrip::seal::{
    Binding, BindingParts, Claims, FlowId, Key, Keyring, Suite, Timestamp, TokenLimits, digest_arguments,
};
use roundtrip::server::{Endpoint, Event, Outcome, Peer};
use roundtrip::wire::{ClientRequest, Message, Request};
use roundtrip::{Args, Server, Tool};

const MESSAGE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello world"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"micro","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// A thousand calls more, and nothing else, lie between the two runs of a case.
const FEW: u32 = 100;
const MANY: u32 = 1_100;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

fn endpoint() -> Endpoint {
    let echo = Tool::new("echo", async |Args(Echo { text })| text);
    Server::new("micro", "1.0.0").tool(echo).build().expect("a server")
}

fn decode(message: &[u8]) -> (Request<'_>, ClientRequest<'_>) {
    let Ok(Message::Request(request)) = Message::decode(message) else { panic!("a request") };
    let decoded = ClientRequest::decode(&request.method, request.params).expect("parameters");
    (request, decoded)
}

fn dispatch(endpoint: &Endpoint, request: &Request<'_>, decoded: &ClientRequest<'_>) -> Outcome {
    let mut call = endpoint.begin(request.id.clone(), decoded, &Peer::default());
    match call.poll_event(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Event::Response(outcome)) => outcome,
        other => panic!("an answer at once, not {other:?}"),
    }
}

/// Runs a case so many times.
fn run(case: &str, times: u32) {
    let endpoint = endpoint();
    let (request, decoded) = decode(MESSAGE);
    let answer = dispatch(&endpoint, &request, &decoded);
    for _ in 0..times {
        match case {
            "decode" => drop(black_box(decode(black_box(MESSAGE)))),
            "dispatch" => drop(black_box(dispatch(&endpoint, &request, &decoded))),
            "encode" => {
                let mut out = Vec::with_capacity(256);
                endpoint.encode(&mut out, &request.id, answer.clone());
                black_box(out);
            }
            "clone" => drop(black_box(answer.clone())),
            other => panic!("no such case: {other}"),
        }
    }
}

/// Instructions of one whole run, or `None` without valgrind.
fn instructions(case: &str, times: u32) -> Option<u64> {
    let program = std::env::current_exe().expect("our own path");
    let said = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--case", case, &times.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn measure(case: &str) -> String {
    if let (Some(few), Some(many)) = (instructions(case, FEW), instructions(case, MANY)) {
        return format!("{:>8} instructions", (many - few) / u64::from(MANY - FEW));
    }
    let start = Instant::now();
    run(case, 100_000);
    format!("{:>8} ns (no valgrind here)", start.elapsed().as_nanos() / 100_000)
}

/// Nanoseconds that sealing and opening a state of 200 bytes takes; the quickest of several runs, because other load on the
/// machine can only make one slower.
fn seal_and_open(suite: Suite) -> u128 {
    const RUNS: u32 = 20;
    const TIMES: u32 = 10_000;
    let keyring = Keyring::new([Key::generate([7; 32])]).expect("a key ring").suite(suite);
    let (limits, now) = (TokenLimits::default(), Timestamp::from_unix(1_800_000_000));
    let arguments = digest_arguments(None).expect("a digest");
    let parts = BindingParts {
        audience: "micro",
        method: "tools/call",
        target: "deploy",
        arguments,
        principal: None,
    };
    let binding = Binding::new(parts);
    let claims = Claims::begin(FlowId::new([1; 16]), binding, now, Duration::from_secs(600));
    let once = |nonce: u32| {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&nonce.to_le_bytes());
        let token = keyring.seal(&claims, black_box(&[42; 200]), bytes, &limits).expect("a token");
        black_box(keyring.open(&token, &binding, now, &limits).expect("its state"));
    };
    let run = |run: u32| {
        let start = Instant::now();
        (run * TIMES..(run + 1) * TIMES).for_each(once);
        start.elapsed().as_nanos() / u128::from(TIMES)
    };
    (0..RUNS).map(run).min().expect("a run")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, case, times] = arguments.as_slice()
        && flag == "--case"
    {
        return run(case, times.parse().expect("a number"));
    }
    println!("one tools/call of echo, {} bytes in", MESSAGE.len());
    for (case, note) in [
        ("decode", "bytes to a typed request"),
        ("dispatch", "look-up, arguments, handler, result"),
        ("encode", "result to bytes, a clone of it included"),
        ("clone", "of that clone alone"),
    ] {
        println!("{case:<9} {}  {note}", measure(case));
    }
    println!("a state of 200 bytes, sealed and opened");
    for suite in [Suite::Xaes256Gcm, Suite::XChaCha20Poly1305] {
        println!("seal      {:>8} ns  {suite:?}", seal_and_open(suite));
    }
}
