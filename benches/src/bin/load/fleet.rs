//! Many connections that send requests at the same time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::timeout};

use crate::{Fail, client::Connection, process::Place, request::Ask, task::Created};

/// Longest time for one answer before the server counts as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Most connections opened at once; more would overflow the queue of a listening socket.
const OPENED_AT_ONCE: usize = 64;

/// Open connections, each of which has been answered once.
#[derive(Debug)]
pub(crate) struct Fleet {
    connections: Vec<Connection>,
}

impl Fleet {
    pub(crate) async fn open(place: &Place, ask: Ask, size: usize) -> Result<Self, Fail> {
        Self::of_tasks(place, ask, size, &Arc::default()).await
    }

    /// Opens connections that share tasks with others.
    pub(crate) async fn of_tasks(
        place: &Place,
        ask: Ask,
        size: usize,
        tasks: &Arc<Created>,
    ) -> Result<Self, Fail> {
        let mut connections = Vec::with_capacity(size);
        while connections.len() < size {
            let mut opening = JoinSet::new();
            for number in connections.len()..size.min(connections.len() + OPENED_AT_ONCE) {
                let (place, tasks) = (place.clone(), Arc::clone(tasks));
                opening.spawn(async move {
                    let mut connection = Connection::open(&place, ask, tasks).await?;
                    connection.call(number).await?;
                    Ok(connection)
                });
            }
            connections.extend(finish(opening, PATIENCE).await?);
        }
        Ok(Self { connections })
    }

    /// Makes this many calls, or stops after this time. Returns the number of answers.
    pub(crate) async fn ask(&mut self, calls: usize, window: Duration) -> Result<usize, Fail> {
        let asked = Arc::new(AtomicUsize::new(0));
        let answered = Arc::new(AtomicUsize::new(0));
        let deadline = Instant::now() + window;
        let mut asking = JoinSet::new();
        for mut connection in self.connections.drain(..) {
            let (asked, answered) = (Arc::clone(&asked), Arc::clone(&answered));
            asking.spawn(async move {
                while Instant::now() < deadline {
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    if number >= calls {
                        break;
                    }
                    connection.call(number).await?;
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok(connection)
            });
        }
        self.connections = finish(asking, window + PATIENCE).await?;
        Ok(answered.load(Ordering::Relaxed))
    }
}

async fn finish(
    mut tasks: JoinSet<Result<Connection, Fail>>,
    patience: Duration,
) -> Result<Vec<Connection>, Fail> {
    let all = async {
        let mut connections = Vec::with_capacity(tasks.len());
        while let Some(connection) = tasks.join_next().await {
            connections.push(connection??);
        }
        Ok(connections)
    };
    timeout(patience, all).await.map_err(|_| "the server hangs: answers are overdue")?
}
