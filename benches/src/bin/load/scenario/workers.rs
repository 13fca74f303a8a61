//! Tasks that one process takes in and two others work on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    Fail,
    client::Connection,
    fleet::PATIENCE,
    options::{Contender, Options},
    process::{Place, Server},
    report::{Rounds, Table, number},
    request::Ask,
    scenario::{say, settle},
    setting, task,
};

/// Tasks that are finished side by side.
const TASKS: usize = 500;
/// Connections that finish them.
const CLIENTS: usize = 64;
/// Tasks whose answer is timed.
const ANSWERS: usize = 100;
/// Pause between two looks at a task.
const PAUSE: Duration = Duration::from_millis(2);

const ANSWER: &str = r#","inputResponses":{"go":{"action":"accept","content":{"confirm":true}}}"#;

pub(super) async fn measure(options: &Options) -> Result<Table, Fail> {
    let what = format!(
        "{TASKS} tasks of one question each, created, answered and looked at by {CLIENTS} connections to a process that works on none, \
         worked on by two others; before it, {ANSWERS} tasks one after the other, from the answer to the handler that has it; {}",
        setting::machine()
    );
    let columns = ["server", "all tasks, s", "answer, ms: median", "95 of 100"];
    let mut table = Table::new("Workers", what, &columns);
    for contender in &options.servers {
        say("workers", contender);
        let (seconds, delays) =
            two_workers(contender).await.map_err(|error| format!("{}: {error}", contender.name))?;
        table.row(vec![
            contender.name.clone(),
            number(seconds),
            number(delays.median()),
            number(delays.most()),
        ]);
    }
    Ok(table)
}

async fn two_workers(contender: &Contender) -> Result<(f64, Rounds), Fail> {
    let (_front, place) = Server::listening(contender, &["http", "0", "--at-once", "0"], &[]).await?;
    let _workers = [Server::worker(contender)?, Server::worker(contender)?];
    settle().await;
    let mut connection = Connection::open(&place, Ask::WaitingTask, Arc::default()).await?;
    let mut delays = Rounds::default();
    for _ in 0..ANSWERS {
        delays.push(timeout(PATIENCE, one(&mut connection)).await.map_err(|_| "a task does not end")??);
    }
    let start = Instant::now();
    all(&place).await?;
    Ok((start.elapsed().as_secs_f64(), delays))
}

/// Finishes all tasks.
async fn all(place: &Place) -> Result<(), Fail> {
    let begun = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (begun, place) = (Arc::clone(&begun), place.clone());
        clients.spawn(async move {
            let mut connection = Connection::open(&place, Ask::WaitingTask, Arc::default()).await?;
            while begun.fetch_add(1, Ordering::Relaxed) < TASKS {
                one(&mut connection).await?;
            }
            Ok::<_, Fail>(())
        });
    }
    let all = async {
        while let Some(client) = clients.join_next().await {
            client??;
        }
        Ok(())
    };
    timeout(PATIENCE * 2, all).await.map_err(|_| "the tasks do not end")?
}

/// Finishes one task. Returns the time from its answer to the handler that has it, in milliseconds.
async fn one(connection: &mut Connection) -> Result<f64, Fail> {
    let answer = connection.call_task("resume", "{}").await?;
    let id = task::created(answer).ok_or_else(|| format!("no task: {answer}"))?.to_owned();
    until(connection, &id, "input_required").await?;
    let answered = micros();
    connection.about_task("tasks/update", &id, ANSWER).await?;
    let ended = until(connection, &id, "completed").await?;
    let resumed: f64 = task::string(&ended, "text").ok_or("no result")?.parse()?;
    Ok((resumed - answered) / 1e3)
}

/// Looks at a task until it has this status.
async fn until(connection: &mut Connection, id: &str, status: &str) -> Result<String, Fail> {
    loop {
        let answer = connection.about_task("tasks/get", id, "").await?;
        if task::has(answer, id, status) {
            return Ok(answer.to_owned());
        }
        if !task::is(answer, "working") && !task::is(answer, "input_required") {
            return Err(format!("not {status}: {answer}").into());
        }
        sleep(PAUSE).await;
    }
}

fn micros() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros() as f64
}
