//! Processor time per call over HTTP.

use crate::{
    Fail, count,
    fleet::Fleet,
    options::Options,
    part::{PART, PARTS},
    process::Server,
    report::{Rounds, Table, number, progress},
    request::Ask,
    scenario::{CONNECTIONS, empty_rounds, explain},
};

/// A plain call.
pub(super) async fn plain(options: &Options) -> Result<Table, Fail> {
    let what = format!("server CPU time per tools/call of echo, {CONNECTIONS} keep-alive connections");
    table(options, Ask::Echo, "A plain call", &what, &CALL).await
}

/// A call that asks one question.
pub(super) async fn flow(options: &Options) -> Result<Table, Fail> {
    let what = format!(
        "server CPU time per flow of two requests: tools/call of deploy, which asks, and the retry that answers; \
         {CONNECTIONS} keep-alive connections"
    );
    table(options, Ask::Flow(1), "A flow of one question", &what, &Unit { name: "flow", ..CALL }).await
}

/// A result in parts.
pub(super) async fn parts(options: &Options) -> Result<Table, Fail> {
    let what = format!(
        "server CPU time per part of a tools/call that sends {PARTS} text parts of {} bytes and then the whole result; \
         {CONNECTIONS} keep-alive connections",
        PART.len()
    );
    let part = Unit { name: "part", in_call: f64::from(PARTS), time: "CPU ns", microsecond: 1000.0 };
    table(options, Ask::Parts, "A result in parts", &what, &part).await
}

/// Unit whose cost is shown.
struct Unit {
    name: &'static str,
    /// Number of them in a call.
    in_call: f64,
    /// Column of the processor time.
    time: &'static str,
    microsecond: f64,
}

const CALL: Unit = Unit { name: "call", in_call: 1.0, time: "CPU us", microsecond: 1.0 };

/// Measures the cost of a kind of call, and its instructions and allocations if wanted.
async fn table(options: &Options, ask: Ask, title: &str, what: &str, unit: &Unit) -> Result<Table, Fail> {
    let Unit { name, in_call, time, microsecond } = *unit;
    let calls = (options.calls / ask.weight()).max(CONNECTIONS);
    let spent = measure(options, ask, 0, calls).await?;
    let spent: Vec<Rounds> = spent.iter().map(|spent| spent.times(microsecond / in_call)).collect();
    let mut explanation = explain(what, options);
    let mut columns = columns(options);
    columns[1] = time;
    let mut counts: Vec<Vec<String>> = vec![Vec::new(); options.servers.len()];
    if options.instructions {
        columns.push("instructions");
        let counter = if count::by_processor() { "perf" } else { "callgrind" };
        explanation.push_str(&format!("; user-mode instructions per {name} by {counter}"));
        for (server, counts) in options.servers.iter().zip(&mut counts) {
            counts.push(number(count::instructions(server, ask).await? / in_call));
        }
    }
    if options.allocations {
        columns.push("allocations");
        explanation.push_str(&format!("; heap allocations per {name} by memcheck"));
        for (server, counts) in options.servers.iter().zip(&mut counts) {
            counts.push(number(count::allocations(server, ask).await? / in_call));
        }
    }
    let mut table = Table::new(title, explanation, &columns);
    for (index, counts) in counts.into_iter().enumerate() {
        table.row(row(options, &spent, index).into_iter().chain(counts).collect());
    }
    Ok(table)
}

/// Columns that [`rows`] fills.
pub(super) fn columns(options: &Options) -> Vec<&'static str> {
    let limit = options.servers[options.yardstick()].name == "limit";
    vec!["server", "CPU us", if limit { "x limit" } else { "x first" }, "spread"]
}

pub(super) fn rows(table: &mut Table, options: &Options, spent: &[Rounds]) {
    for index in 0..options.servers.len() {
        table.row(row(options, spent, index));
    }
}

fn row(options: &Options, spent: &[Rounds], index: usize) -> Vec<String> {
    let (median, unit) = (spent[index].median(), spent[options.yardstick()].median());
    vec![options.servers[index].name.clone(), number(median), number(median / unit), spent[index].spread()]
}

/// Measures microseconds of processor time per call or flow, for each server.
pub(super) async fn measure(
    options: &Options,
    ask: Ask,
    fillers: usize,
    calls: usize,
) -> Result<Vec<Rounds>, Fail> {
    let mut running = Vec::new();
    for contender in &options.servers {
        progress(&format!("{ask:?} with {fillers} more tools: {}", contender.name));
        let (server, place) = Server::http(contender, fillers, &[]).await?;
        let fleet = Fleet::open(&place, ask, CONNECTIONS).await;
        let mut fleet = fleet.map_err(|error| format!("{}: {error}", contender.name))?;
        fleet.ask(calls, options.window).await.map_err(|error| format!("{}: {error}", contender.name))?;
        running.push((server, fleet));
    }
    let mut spent = empty_rounds(options);
    for _ in 0..options.rounds {
        for (index, (server, fleet)) in running.iter_mut().enumerate() {
            let named = |error| format!("{}: {error}", options.servers[index].name);
            // What the others left in the caches is not this server's fault.
            fleet.ask(calls / 10, options.window / 10).await.map_err(named)?;
            let before = server.spent()?;
            let answered = fleet.ask(calls, options.window).await.map_err(named)?;
            spent[index].push(server.spent()?.microseconds_since(&before) / answered as f64);
        }
    }
    Ok(spent)
}
