//! Resident memory.

use std::time::Duration;

use crate::{
    Fail,
    fleet::Fleet,
    options::Options,
    process::Server,
    report::{Table, number},
    request::Ask,
    scenario::{CONNECTIONS, say, settle},
    setting,
};

/// Files a process has open beside its connections.
const OTHER_FILES: usize = 200;

/// Longest time for all abandoned flows to begin.
const WINDOW: Duration = Duration::from_secs(600);

pub(super) async fn measure(options: &Options) -> Result<Table, Fail> {
    let size = options.connections;
    let files = setting::open_files()?;
    if files < size + OTHER_FILES {
        return Err(format!(
            "{size} connections need a limit of {} open files and it is {files}; raise `ulimit -Hn` or lower --connections",
            size + OTHER_FILES
        )
        .into());
    }
    let mut table = Table::new(
        "Memory",
        format!(
            "resident memory after the start, and with {size} idle keep-alive connections after one call each; {}",
            setting::machine()
        ),
        &["server", "idle, MiB", "connected, MiB", "KiB a connection"],
    );
    for contender in &options.servers {
        say("memory", contender);
        let named = |error| format!("{}: {error}", contender.name);
        let (server, place) = Server::http(contender, 0, &[]).await?;
        settle().await;
        let idle = server.resident()?;
        let fleet = Fleet::open(&place, Ask::Echo, size).await.map_err(named)?;
        settle().await;
        let connected = server.resident()?;
        drop(fleet);
        let each = (connected - idle) * 1024.0 / size as f64;
        table.row(vec![contender.name.clone(), number(idle), number(connected), number(each)]);
    }
    Ok(table)
}

/// Measures the memory that abandoned flows leave behind.
pub(super) async fn abandoned(options: &Options) -> Result<Table, Fail> {
    let flows = options.abandoned;
    let mut table = Table::new(
        "Abandoned flows",
        format!(
            "resident memory once {CONNECTIONS} connections are open, and after {flows} questions that are never answered; {}",
            setting::machine()
        ),
        &["server", "before, MiB", "after, MiB", "grown, MiB"],
    );
    for contender in &options.servers {
        say("abandoned", contender);
        let named = |error| format!("{}: {error}", contender.name);
        let (server, place) = Server::http(contender, 0, &[]).await?;
        let mut fleet = Fleet::open(&place, Ask::Abandoned, CONNECTIONS).await.map_err(named)?;
        settle().await;
        let before = server.resident()?;
        let asked = fleet.ask(flows, WINDOW).await.map_err(named)?;
        if asked != flows {
            return Err(named(format!("only {asked} of {flows} flows began in time").into()).into());
        }
        settle().await;
        let after = server.resident()?;
        table.row(vec![contender.name.clone(), number(before), number(after), number(after - before)]);
    }
    Ok(table)
}
