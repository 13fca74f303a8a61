//! Polls of tasks whose results are small and large.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    Fail,
    client::Connection,
    options::{Contender, Options},
    process::Server,
    report::{Rounds, Table, number},
    request::Ask,
    scenario::{explain, say},
    task,
};

/// Bytes of a result.
const SIZES: [usize; 2] = [1_024, 4 * 1_024 * 1_024];

/// Polls of one kind in a round.
const POLLS: usize = 300;

/// Time for which a task is polled before it counts: processors that have rested are slower at first.
const WARM_UP: Duration = Duration::from_millis(300);

/// Pause between two looks at a task that is to end.
const PAUSE: Duration = Duration::from_millis(5);

/// Latencies of polls, by their rounds.
#[derive(Clone, Default)]
struct Latencies {
    works: Rounds,
    hidden: Rounds,
    shown: Rounds,
}

/// Measures how long `tasks/get` takes for results of several sizes.
pub(super) async fn measure(options: &Options) -> Result<Table, Fail> {
    let what = "time from tasks/get to its answer, one after the other on one connection: of a task that works, of one that has ended \
                in the dialect that shows no result (SEP-2322), and with the result";
    let columns = [
        "server",
        "result, bytes",
        "works, us",
        "spread",
        "ended, not shown, us",
        "spread",
        "ended, shown, us",
        "spread",
    ];
    let mut table = Table::new("Polls and results", explain(what, options), &columns);
    let mut all = vec![[(); SIZES.len()].map(|()| Latencies::default()); options.servers.len()];
    for _ in 0..options.rounds {
        for (contender, latencies) in options.servers.iter().zip(&mut all) {
            say("polls and results", contender);
            round(contender, latencies).await.map_err(|error| format!("{}: {error}", contender.name))?;
        }
    }
    for (contender, latencies) in options.servers.iter().zip(&all) {
        for (bytes, Latencies { works, hidden, shown }) in SIZES.iter().zip(latencies) {
            let mut cells = vec![contender.name.clone(), number(*bytes as f64)];
            for rounds in [works, hidden, shown] {
                cells.extend([number(rounds.median()), rounds.spread()]);
            }
            table.row(cells);
        }
    }
    Ok(table)
}

async fn round(contender: &Contender, latencies: &mut [Latencies; SIZES.len()]) -> Result<(), Fail> {
    let (_server, place) = Server::http(contender, 0, &[]).await?;
    let mut connection = Connection::open(&place, Ask::Get("completed"), Arc::default()).await?;
    for (bytes, latencies) in SIZES.into_iter().zip(latencies) {
        let works = begin(&mut connection, bytes, false).await?;
        let ended = begin(&mut connection, bytes, true).await?;
        while !task::is(connection.about_task("tasks/get", &ended, "").await?, "completed") {
            sleep(PAUSE).await;
        }
        latencies
            .works
            .push(poll(&mut connection, async |polled| polled.gets(&works, "working").await).await?);
        latencies
            .hidden
            .push(poll(&mut connection, async |polled| polled.gets_bare(&ended, "completed").await).await?);
        latencies
            .shown
            .push(poll(&mut connection, async |polled| polled.gets(&ended, "completed").await).await?);
    }
    Ok(())
}

/// Begins a task with a result of this size, and returns its id. One that does not end works for as long as the server is there.
async fn begin(connection: &mut Connection, bytes: usize, ends: bool) -> Result<String, Fail> {
    let arguments = format!(r#"{{"bytes":{bytes},"ends":{ends}}}"#);
    let answer = connection.call_task("report", &arguments).await?;
    Ok(task::created(answer).ok_or_else(|| format!("no task: {answer}"))?.to_owned())
}

/// Returns the median time of a poll, in microseconds.
async fn poll(
    connection: &mut Connection,
    mut once: impl AsyncFnMut(&mut Connection) -> Result<bool, Fail>,
) -> Result<f64, Fail> {
    let (begin, mut times, mut counted) = (Instant::now(), Rounds::default(), 0);
    while counted < POLLS {
        let start = Instant::now();
        if !once(connection).await? {
            return Err("a task has another status than it should".into());
        }
        if start.duration_since(begin) >= WARM_UP {
            times.push(start.elapsed().as_secs_f64() * 1e6);
            counted += 1;
        }
    }
    Ok(times.median())
}
