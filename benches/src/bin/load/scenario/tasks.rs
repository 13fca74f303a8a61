//! Tasks: their creation, and looks at them.

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::{sleep, timeout};

use crate::{
    Fail,
    client::Connection,
    fleet::Fleet,
    options::{Contender, Options},
    process::{Place, Server},
    report::{Rounds, Table, number},
    request::Ask,
    scenario::{CONNECTIONS, explain, say, settle},
    task::Created,
};

/// Connections that create tasks.
const CREATORS: usize = 64;

/// Longest time for all tasks to be created.
const WINDOW: Duration = Duration::from_secs(600);

/// Tasks that are looked at to see whether all have ended.
const SAMPLE: usize = 100;

/// Numbers of stored tasks, before the largest.
const FEW: [usize; 2] = [10, 1_000];

/// A server with its tasks.
struct Tasked {
    server: Server,
    place: Place,
    tasks: Arc<Created>,
}

/// Costs of one server, by rounds.
#[derive(Clone, Default)]
struct Costs {
    rate: Rounds,
    create: Rounds,
    get: Rounds,
    plain: Rounds,
}

/// Measures how tasks are created, and what a look at one costs.
pub(super) async fn measure(options: &Options) -> Result<Table, Fail> {
    let mut all = vec![Costs::default(); options.servers.len()];
    let mut syncs = Rounds::default();
    for _ in 0..options.rounds {
        syncs.push(syncs_a_second(&options.disk)?);
        for (contender, costs) in options.servers.iter().zip(&mut all) {
            say("tasks", contender);
            round(options, contender, costs).await.map_err(|error| format!("{}: {error}", contender.name))?;
        }
    }
    let what = format!(
        "{} calls of echo that become tasks, {CREATORS} connections; server CPU time per task, to its end; then per tasks/get, \
         {CONNECTIONS} connections, beside plain calls; the file system made {} syncs of 4 KiB a second (spread {})",
        options.tasks,
        number(syncs.median()),
        syncs.spread(),
    );
    let columns = [
        "server",
        "tasks a second",
        "spread",
        "CPU us",
        "spread",
        "tasks/get, CPU us",
        "spread",
        "x plain call",
    ];
    let mut table = Table::new("Tasks", explain(&what, options), &columns);
    for (contender, Costs { rate, create, get, plain }) in options.servers.iter().zip(&all) {
        let times = get.median() / plain.median();
        let mut cells = vec![contender.name.clone()];
        for rounds in [rate, create, get] {
            cells.extend([number(rounds.median()), rounds.spread()]);
        }
        cells.push(number(times));
        table.row(cells);
    }
    Ok(table)
}

/// Measures one round of one server.
async fn round(options: &Options, contender: &Contender, costs: &mut Costs) -> Result<(), Fail> {
    let tasked = Tasked::start(contender).await?;
    let before = tasked.server.spent()?;
    let start = Instant::now();
    tasked.create(Ask::Task, options.tasks).await?;
    let elapsed = start.elapsed();
    tasked.wait("completed", SAMPLE).await?;
    let created = tasked.tasks.len() as f64;
    costs.rate.push(created / elapsed.as_secs_f64());
    costs.create.push(tasked.server.spent()?.microseconds_since(&before) / created);
    tasked.wait("completed", usize::MAX).await?;
    costs.plain.push(tasked.cost(options, Ask::Echo).await?);
    costs.get.push(tasked.cost(options, Ask::Get("completed")).await?);
    Ok(())
}

/// Measures memory and looks with few and with many tasks that wait.
pub(super) async fn stored(options: &Options) -> Result<Table, Fail> {
    let what = "tasks that wait for an answer: resident memory once all of them wait; server CPU time per tasks/get, and per plain \
                call between the same rounds";
    let columns =
        ["server", "tasks", "resident, MiB", "tasks/get, CPU us", "spread", "plain call, CPU us", "spread"];
    let mut table = Table::new("Stored tasks", explain(what, options), &columns);
    for contender in &options.servers {
        let named = |error| format!("{}: {error}", contender.name);
        let tasked = Tasked::start(contender).await?;
        for count in FEW.into_iter().chain([options.stored]) {
            say(&format!("{count} stored tasks"), contender);
            let missing = count.saturating_sub(tasked.tasks.len());
            tasked.create(Ask::WaitingTask, missing).await.map_err(named)?;
            tasked.wait("input_required", usize::MAX).await.map_err(named)?;
            settle().await;
            let resident = tasked.server.resident()?;
            let (mut get, mut plain) = (Rounds::default(), Rounds::default());
            for _ in 0..options.rounds {
                get.push(tasked.cost(options, Ask::Get("input_required")).await.map_err(named)?);
                plain.push(tasked.cost(options, Ask::Echo).await.map_err(named)?);
            }
            let mut cells = vec![contender.name.clone(), number(tasked.tasks.len() as f64), number(resident)];
            for rounds in [get, plain] {
                cells.extend([number(rounds.median()), rounds.spread()]);
            }
            table.row(cells);
        }
    }
    Ok(table)
}

impl Tasked {
    async fn start(contender: &Contender) -> Result<Self, Fail> {
        let (server, place) = Server::http(contender, 0, &[]).await?;
        Ok(Self { server, place, tasks: Arc::default() })
    }

    /// Creates so many tasks. The connections make one each to begin with.
    async fn create(&self, ask: Ask, count: usize) -> Result<(), Fail> {
        if count == 0 {
            return Ok(());
        }
        let creators = CREATORS.min(count);
        let mut fleet = Fleet::of_tasks(&self.place, ask, creators, &self.tasks).await?;
        let created = fleet.ask(count - creators, WINDOW).await?;
        if creators + created < count {
            return Err(format!("only {created} of {count} tasks were created in time").into());
        }
        Ok(())
    }

    /// Returns the processor time of a request, in microseconds.
    async fn cost(&self, options: &Options, ask: Ask) -> Result<f64, Fail> {
        let mut fleet = Fleet::of_tasks(&self.place, ask, CONNECTIONS, &self.tasks).await?;
        fleet.ask(options.calls / 10, options.window / 10).await?;
        let before = self.server.spent()?;
        let answered = fleet.ask(options.calls, options.window).await?;
        Ok(self.server.spent()?.microseconds_since(&before) / answered as f64)
    }

    /// Waits until tasks have this status: every one of them, or about `most`, which costs the server less.
    async fn wait(&self, status: &'static str, most: usize) -> Result<(), Fail> {
        const LOOK: Duration = Duration::from_millis(20);
        let mut connection = Connection::open(&self.place, Ask::Get(status), Arc::clone(&self.tasks)).await?;
        let count = self.tasks.len();
        let all = async {
            for number in (0..count).rev().step_by(count.div_ceil(most).max(1)) {
                while !connection.sees(number, status).await? {
                    sleep(LOOK).await;
                }
            }
            Ok(())
        };
        timeout(WINDOW, all).await.map_err(|_| "the tasks do not come to rest")?
    }
}

/// Returns how often a second a file of the folder can be written and synced.
fn syncs_a_second(folder: &Path) -> Result<f64, Fail> {
    let path = folder.join(format!("roundtrip-load-{}.sync", std::process::id()));
    let mut file = File::create(&path)?;
    let (start, mut count) = (Instant::now(), 0.0);
    while start.elapsed() < Duration::from_secs(1) {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        count += 1.0;
    }
    let rate = count / start.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate)
}
