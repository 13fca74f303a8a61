//! Load generator: starts servers, sends them the same requests in turn, and reports the cost of each answer.
//!
//! ```text
//! load [--calls N] [--rounds N] [--seconds N] [--connections N] [--abandoned N]
//!      [--tasks N] [--stored N] [--disk FOLDER]
//!      [--only plain,flow,rounds,tools,list,memory,abandoned,stdio,parts,tasks,stored,workers]
//!      [--instructions] [--allocations] [--format text|markdown] NAME=COMMAND ...
//! ```
//!
//! COMMAND is split at white space, without quoting; the words `http 0`, `http 0 --tools N` or `stdio` are
//! appended, or put in the place of the word `{args}`. An HTTP server prints `listening on ADDRESS:PORT` on
//! standard output and serves POST `/mcp`; its tools are `echo`, `deploy`, if it can `parts`, and N more. Ratios are to the server
//! named `limit`, or else to the first. A server that lets only callers with access tokens in prints them before, of one length, a line
//! `token TOKEN` each; plain calls present them in turn.
//!
//! ```text
//! load limit=target/release/limit rmcp=benches/peers/rmcp/target/release/rmcp-server
//! ```
//!
//! # What is measured
//!
//! **The processor time of the server process**, user and system together, divided by the calls it answered in
//! that time. Unlike latency or throughput it hardly depends on how fast the generator is. It is taken from the
//! scheduler's account of every thread, in nanoseconds; should a thread end meanwhile, from the process's own
//! account in clock ticks. Servers are asked in turn, A B C A B C, and the median of the rounds is reported with
//! the spread between the cheapest and the dearest round, so that a disturbance hits all of them alike and shows.
//!
//! * `plain`: `tools/call` of `echo` with a short text over 16 keep-alive connections, each with one request
//!   under way. With `--instructions` and `--allocations`, also what a call executes and allocates.
//! * `flow`: `tools/call` of `deploy`, which asks one question, and the retry that answers it; both requests
//!   together are a flow, with its instructions and allocations as above.
//! * `rounds`: a flow of 50 questions, one a round, so 51 requests; there are a fiftieth as many flows as calls.
//! * `tools`: `tools/call` of `echo` with 2 and with 10,000 tools registered.
//! * `list`: `tools/list` of 1,000 tools in one page.
//! * `memory`: resident memory after the start, and with 10,000 keep-alive connections (`--connections`) which
//!   all made one call and then fell silent.
//! * `abandoned`: resident memory before and after 100,000 flows (`--abandoned`) whose question is never answered.
//! * `stdio`: requests per second over pipes with 64 under way. This one is throughput, so the generator's own
//!   cost is in it as far as the two cores do not overlap; the processor time is beside it.
//!
//! One is for servers that send results in parts (the extension `dev.roundtrip/stream`), and runs only if it is named:
//!
//! * `parts`: `tools/call` of `parts`, which sends 10,000 text parts of 100 bytes as events, and then the whole result. The cost is
//!   that of one part; there are a five-hundredth as many calls.
//!
//! Three more are for servers of tasks, and run only if they are named:
//!
//! * `tasks`: calls of `echo` that become tasks, from 64 connections: how many a second, and the processor time of a task from
//!   its creation to its end. Then `tasks/get` of them, beside plain calls of the same server. Every round has a server of its own,
//!   which creates 5,000 tasks (`--tasks`). In the same run, how often a second the file system can write 4 KiB and sync it
//!   (`--disk`).
//! * `stored`: resident memory, and the cost of `tasks/get` and of plain calls, with 10, 1,000 and 100,000 tasks (`--stored`) that
//!   wait for an answer.
//! * `workers`: a server that works on no tasks (`http 0 --at-once 0`), and two processes that do (`work`). The time from an answer to the
//!   moment when the handler has it, which its result says, one task after the other; and the time in which 500 tasks are
//!   created, ask, are answered and end.
//!
//! Each request carries every header and `_meta` field the specification asks of a client. Each answer is
//! checked: the first on every connection in full, later ones for status 200 and their own text, which is a
//! different one in each request. In a flow that is the question's key and message, which name the flow, and at
//! the end the text with the last answer; the `requestState` goes back byte for byte. A wrong answer ends the run with an error, and so does a server that hangs.
//!
//! Instructions are counted in user mode, by the processor where `perf` can; elsewhere by callgrind, from two
//! runs with different numbers of calls whose difference leaves out start-up and connecting. Allocations are
//! counted like that under memcheck. Both slow a server down until it always finds requests waiting, so it is
//! woken less often per call than at full speed; the counts are for comparing, not for predicting time.
//!
//! # What is not measured
//!
//! Latency under load, TLS, HTTP/2, large arguments, tools that work or wait, and the network: the loopback
//! interface's cost is in the system time of every server, `limit` included. A server is confined to one core
//! and the generator to another, where `taskset` allows; how well a server scales over cores does not show.
//! Other load on the machine inflates even processor time, through caches and frequencies: compare within one
//! run only. A server that needs more than `--seconds` for a round is measured on the calls it managed.

mod client;
mod count;
mod fleet;
mod flow;
mod options;
#[path = "../../part.rs"]
mod part;
mod process;
mod report;
mod request;
mod scenario;
mod setting;
mod task;

use std::{env, error::Error, process::ExitCode};

use options::Options;

type Fail = Box<dyn Error + Send + Sync>;

/// Keeps the generator from sleeping. A server that is the slower of the two would have to wake it for each answer, and the kernel's
/// time for that, more than for a plain call, would count as the server's.
async fn stay_awake() {
    loop {
        tokio::task::yield_now().await;
    }
}

fn main() -> ExitCode {
    let result = Options::parse(env::args().skip(1)).and_then(|options| {
        setting::enter()?;
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
            let awake = tokio::spawn(stay_awake());
            let outcome = scenario::run(&options).await;
            awake.abort();
            outcome
        })
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::progress(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
}
