//! Scenarios that are measured, one per file.

mod calls;
mod memory;
mod results;
mod stdio;
mod tasks;
mod workers;

use std::time::Duration;

use crate::{
    Fail,
    options::{Contender, Options},
    report::{Rounds, Table, number, progress},
    request::Ask,
    setting,
};

/// Connections that send requests at the same time.
pub(crate) const CONNECTIONS: usize = 16;

/// Number of tools that every server has: `echo` and `deploy`. Some have `parts` too.
const OWN_TOOLS: usize = 2;

/// Questions in a long flow.
const ROUNDS: usize = 50;

/// Runs the scenarios the options name and prints a table for each.
pub(crate) async fn run(options: &Options) -> Result<(), Fail> {
    if options.wants("plain") {
        calls::plain(options).await?.print(options.markdown);
    }
    if options.wants("flow") {
        calls::flow(options).await?.print(options.markdown);
    }
    if options.wants("rounds") {
        let flows = (options.calls / ROUNDS).max(CONNECTIONS);
        let spent = calls::measure(options, Ask::Flow(ROUNDS), 0, flows).await?;
        let explanation = explain("server CPU time per flow of 51 requests, one question a round", options);
        let mut table = Table::new("A flow of 50 rounds", explanation, &calls::columns(options));
        calls::rows(&mut table, options, &spent);
        table.print(options.markdown);
    }
    if options.wants("tools") {
        let few = calls::measure(options, Ask::Echo, 0, options.calls).await?;
        let many = calls::measure(options, Ask::Echo, 10_000 - OWN_TOOLS, options.calls).await?;
        let mut table = Table::new(
            "tools/call with 2 and with 10,000 tools",
            explain("server CPU time per call of echo", options),
            &["server", "2 tools, us", "10,000 tools, us", "x"],
        );
        for ((server, few), many) in options.servers.iter().zip(few).zip(many) {
            let (few, many) = (few.median(), many.median());
            table.row(vec![server.name.clone(), number(few), number(many), number(many / few)]);
        }
        table.print(options.markdown);
    }
    if options.wants("list") {
        let spent = calls::measure(options, Ask::List(1_000), 1_000 - OWN_TOOLS, options.calls).await?;
        let explanation = explain("server CPU time per list, in one page", options);
        let mut table = Table::new("tools/list of 1,000 tools", explanation, &calls::columns(options));
        calls::rows(&mut table, options, &spent);
        table.print(options.markdown);
    }
    if options.wants("memory") {
        memory::measure(options).await?.print(options.markdown);
    }
    if options.wants("abandoned") {
        memory::abandoned(options).await?.print(options.markdown);
    }
    if options.wants("stdio") {
        stdio::measure(options).await?.print(options.markdown);
    }
    if options.wants("parts") {
        calls::parts(options).await?.print(options.markdown);
    }
    if options.wants("tasks") {
        tasks::measure(options).await?.print(options.markdown);
    }
    if options.wants("stored") {
        tasks::stored(options).await?.print(options.markdown);
    }
    if options.wants("results") {
        results::measure(options).await?.print(options.markdown);
    }
    if options.wants("workers") {
        workers::measure(options).await?.print(options.markdown);
    }
    Ok(())
}

/// Returns one line on what a table shows, and on the machine.
fn explain(what: &str, options: &Options) -> String {
    format!("{what}; median of {} alternating rounds; {}", options.rounds, setting::machine())
}

fn empty_rounds(options: &Options) -> Vec<Rounds> {
    vec![Rounds::default(); options.servers.len()]
}

fn say(what: &str, server: &Contender) {
    progress(&format!("{what}: {}", server.name));
}

/// Time for a server to become idle.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}
