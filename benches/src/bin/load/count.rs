//! Counts instructions and allocations: with `perf` if the processor allows it, else with valgrind.

use std::{env, fs, path::PathBuf, process, time::Duration};

use tokio::{process::Command, time::sleep};

use crate::{
    Fail,
    fleet::Fleet,
    options::Contender,
    process::{Server, end},
    report::progress,
    request::Ask,
    scenario::CONNECTIONS,
    setting::succeeds,
};

/// Two numbers of calls whose difference is counted under valgrind. The smaller one is large enough for buffers and
/// tables to reach their final size.
const FEW: usize = 500;
const MANY: usize = 2_500;

/// Longest time for a round under valgrind, which slows a server down some fifty times.
const WINDOW: Duration = Duration::from_secs(300);

/// Counts user-mode instructions per call or flow.
pub(crate) async fn instructions(contender: &Contender, ask: Ask) -> Result<f64, Fail> {
    progress(&format!("counting instructions of {}", contender.name));
    if by_processor() {
        return perf(contender, ask).await;
    }
    let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    difference(contender, ask, &tool, |line| line.split_once("Collected :").map(|(_, count)| count)).await
}

/// Counts heap allocations per call or flow.
pub(crate) async fn allocations(contender: &Contender, ask: Ask) -> Result<f64, Fail> {
    progress(&format!("counting allocations of {}", contender.name));
    let tool = ["--tool=memcheck", "--leak-check=no", "--undef-value-errors=no"];
    difference(contender, ask, &tool, |line| {
        let (_, usage) = line.split_once("total heap usage:")?;
        usage.split_once(" allocs").map(|(count, _)| count)
    })
    .await
}

/// Returns whether the processor counts instructions here; many virtual machines do not allow it.
pub(crate) fn by_processor() -> bool {
    let probe = ["stat", "-x", ",", "-e", "instructions:u", "true"];
    let output = process::Command::new("perf").args(probe).output();
    output.is_ok_and(|output| {
        let said = String::from_utf8_lossy(&output.stderr);
        said.lines().any(|line| counted(line).is_some())
    })
}

/// Reads the count in a line of `perf stat -x ,`; `None` if the event is not supported.
fn counted(line: &str) -> Option<f64> {
    line.contains("instructions").then(|| line.split(',').next()?.parse().ok())?
}

async fn perf(contender: &Contender, ask: Ask) -> Result<f64, Fail> {
    const CALLS: usize = 20_000;
    let log = log_file("perf");
    let (server, place) = Server::http(contender, 0, &[]).await?;
    let mut fleet = Fleet::open(&place, ask, CONNECTIONS).await?;
    fleet.ask(FEW.div_ceil(ask.weight()), WINDOW).await?;
    let mut command = Command::new("perf");
    command
        .args(["stat", "-x", ",", "-e", "instructions:u", "-p", &server.pid().to_string(), "-o"])
        .arg(&log);
    let counter = command.kill_on_drop(true).spawn()?;
    // perf does not say when it has attached; until then and after it the server is idle.
    sleep(Duration::from_millis(500)).await;
    let calls = fleet.ask(CALLS / ask.weight(), WINDOW).await?;
    end(counter, "-INT").await?;
    let said = fs::read_to_string(&log)?;
    fs::remove_file(&log)?;
    let total = said.lines().find_map(counted).ok_or("perf counted nothing")?;
    Ok(total / calls as f64)
}

async fn difference(
    contender: &Contender,
    ask: Ask,
    tool: &[&str],
    count: impl Fn(&str) -> Option<&str>,
) -> Result<f64, Fail> {
    if !succeeds("valgrind", &["--version"]) {
        return Err("counting needs valgrind, which is not installed".into());
    }
    let mut totals = [0.0; 2];
    // With every connection, a heavy call is made often enough before the first one that counts.
    let calls = [FEW, MANY].map(|calls| calls.div_ceil(ask.weight()));
    for (total, calls) in totals.iter_mut().zip(calls) {
        let log = log_file("valgrind");
        let mut under = vec!["valgrind".to_owned(), format!("--log-file={}", log.display())];
        under.extend(tool.iter().map(|&word| word.to_owned()));
        let (server, place) = Server::http(contender, 0, &under).await?;
        let mut fleet = Fleet::open(&place, ask, CONNECTIONS).await?;
        let answered = fleet.ask(calls, WINDOW).await?;
        if answered != calls {
            return Err(format!("only {answered} of {calls} calls were answered in time").into());
        }
        server.end().await?;
        let said = fs::read_to_string(&log)?;
        fs::remove_file(&log)?;
        let found = said.lines().find_map(&count).ok_or("valgrind did not say what it counted")?;
        *total = found.trim().replace(',', "").parse()?;
    }
    Ok((totals[1] - totals[0]) / (calls[1] - calls[0]) as f64)
}

fn log_file(tool: &str) -> PathBuf {
    env::temp_dir().join(format!("roundtrip-load-{}-{tool}.log", process::id()))
}
