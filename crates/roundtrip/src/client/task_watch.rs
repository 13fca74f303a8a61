//! [`TaskWatch`]: waits for a task by `subscriptions/listen`, where the server tells of its tasks.

use std::time::Duration;

use roundtrip_core::error::Error;
use roundtrip_core::exchange::{Task, TaskDialect};
use roundtrip_core::wire::{Method, Task as WireTask, TaskStatus};
use tokio::task::coop;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::builder::Client;
use super::change::Change;
use super::listen::{Changes, Listen};

/// Looks at a task before it is listened to: most tasks end sooner, and a stream costs a connection.
const LOOKS: u32 = 4;
/// Shortest time between two looks at a task that is listened to. A stream may break unnoticed.
const LISTENING: Duration = Duration::from_secs(30);

/// Subscription to the changes of one task.
#[derive(Default)]
pub(super) enum TaskWatch {
    /// It was not tried yet.
    #[default]
    Unopened,
    Open(Box<Changes>),
    /// The server does not tell of the task, or no longer does.
    Off,
}

impl TaskWatch {
    /// Waits until it is time to look at a task, or until the server tells of it.
    pub(super) async fn wait<M: Method>(
        &mut self,
        client: &Client,
        task: &mut Task<M>,
        pause: Duration,
    ) -> Result<Option<WireTask>, Error> {
        let begun = Instant::now();
        let mut until = begun + pause;
        match self {
            // A change from before the acknowledgment is seen by the look that is due.
            Self::Unopened if task.looks() >= LOOKS && !pause.is_zero() => {
                *self =
                    timeout_at(until, open(client, task)).await.ok().flatten().map_or(Self::Off, Self::Open);
            }
            // A task that asks nothing but what was answered is looked at as ever, up to its bound.
            Self::Open(_) if task.last_seen().status == TaskStatus::Working && !task.payload_is_due() => {
                until = begun + pause.max(LISTENING);
            }
            _ => {}
        }
        let news = self.news(task.id(), until, begun + pause).await;
        // A look counts its pause itself.
        let counted = if news.is_some() { Duration::ZERO } else { pause };
        task.waited(begun.elapsed().saturating_sub(counted));
        Ok(news)
    }

    /// Returns the task once the server tells of it; `None` when that takes too long. `alone` is the end of the wait should the
    /// server stop telling.
    async fn news(&mut self, id: &str, until: Instant, alone: Instant) -> Option<WireTask> {
        while let Self::Open(changes) = self {
            coop::consume_budget().await;
            match timeout_at(until, changes.next()).await {
                Err(_) => return None,
                Ok(Some(Ok(Change::Task(task)))) if task.task_id == id => return Some(*task),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_)) | None) => *self = Self::Off,
            }
        }
        sleep_until(alone).await;
        None
    }
}

/// Opens the subscription; `None` if the server does not tell of the task.
async fn open<M: Method>(client: &Client, task: &Task<M>) -> Option<Box<Changes>> {
    if task.dialect() == Some(TaskDialect::Sep2322) {
        return None;
    }
    match Listen::new(client).task(task.id()).keep_meta(task.meta()).await {
        Ok(changes) => {
            let agreed = changes.acknowledged().task_ids.iter().any(|agreed| agreed == task.id());
            agreed.then(|| Box::new(changes))
        }
        Err(error) => {
            tracing::debug!(%error, "the server does not tell of its tasks: they are looked at");
            None
        }
    }
}
