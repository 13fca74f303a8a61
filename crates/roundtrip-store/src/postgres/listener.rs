//! Changes of tasks between instances, by `NOTIFY` and `LISTEN`.
//!
//! A change is announced after its commit, by a statement of its own: commits that announce something wait for each other in
//! PostgreSQL, and these would wait for the disk meanwhile. What is lost between the two is found by looking: workers do so every
//! second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use roundtrip::seal::BoxFuture;
use roundtrip::task::{ChangedTask, TaskId};
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::connections::Connections;
use super::error;
use crate::StoreError;
use crate::retry::retry;
use crate::tasks::{Elsewhere, Heard, Origin};

/// Name of the channel. Channels are the database's, tables a schema's: the number of the table tells them apart.
const CHANNEL: &str = "SELECT 'roundtrip_task_' || 'roundtrip_task'::regclass::oid";
const NOTIFY: &str = "SELECT pg_notify('roundtrip_task_' || 'roundtrip_task'::regclass::oid, change) \
                      FROM unnest($1::text[]) AS change";

/// Announcement that any task may have changed.
const ANY: &str = "*";

/// End of an announcement of a task that no worker can take.
const NOT_DUE: &str = " -";

/// Changes that may wait to be announced, and most that are announced at once.
const QUEUE: usize = 1_024;
const BATCH: usize = 256;

/// Pause before a database that cannot be listened to is tried again. Meanwhile, followers look for themselves this often.
const PAUSE: Duration = Duration::from_secs(1);

/// Time without a word after which the connection is checked, and time for its answer.
const SILENCE: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(8);

/// Announces changes to other instances.
#[derive(Debug)]
pub(super) struct Announcer {
    changes: mpsc::Sender<String>,
    /// True if a change was not announced.
    missed: Arc<AtomicBool>,
    origin: String,
}

impl Announcer {
    /// Starts the task. It ends with this.
    pub(super) fn start(connections: Arc<Connections>, origin: Origin) -> Self {
        let ((changes, queue), missed) = (mpsc::channel(QUEUE), Arc::new(AtomicBool::new(false)));
        tokio::spawn(announce(queue, connections, Arc::clone(&missed)));
        Self { changes, missed, origin: shown(origin) }
    }

    pub(super) fn tell(&self, task: &ChangedTask) {
        if self.changes.try_send(announcement(&self.origin, task)).is_err() {
            self.missed.store(true, Ordering::Relaxed);
        }
    }
}

async fn announce(mut queue: mpsc::Receiver<String>, connections: Arc<Connections>, missed: Arc<AtomicBool>) {
    let mut changes = Vec::new();
    while queue.recv_many(&mut changes, BATCH).await > 0 {
        if missed.swap(false, Ordering::Relaxed) {
            changes.push(ANY.to_owned());
        }
        while let Err(error) = retry(|| connections.run(sqlx::query(NOTIFY).bind(&changes))).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "changes of tasks cannot be announced");
            changes = vec![ANY.to_owned()];
            sleep(PAUSE).await;
        }
        changes.clear();
    }
}

/// Returns the text that announces a change.
fn announcement(origin: &str, ChangedTask { id, version, is_due }: &ChangedTask) -> String {
    let end = if *is_due { "" } else { NOT_DUE };
    format!("{origin} {id} {version}{end}")
}

fn shown(origin: Origin) -> String {
    format!("{:016x}", u64::from_be_bytes(origin))
}

/// Listens to the announcements of other instances, on a connection of its own.
pub(super) struct OtherInstances {
    pub(super) options: PgConnectOptions,
    pub(super) origin: Origin,
}

impl Elsewhere for OtherInstances {
    fn listen<'a>(&'a self, heard: &'a Heard) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            loop {
                if let Err(error) = self.follow(heard).await {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "changes cannot be listened to"
                    );
                }
                heard.any();
                sleep(PAUSE).await;
            }
        })
    }
}

impl OtherInstances {
    /// Listens until the connection breaks.
    async fn follow(&self, heard: &Heard) -> Result<(), StoreError> {
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(ANSWER);
        let pool = pool.max_lifetime(None).idle_timeout(None).connect_lazy_with(self.options.clone());
        let mut listener = PgListener::connect_with(&pool).await.map_err(error)?;
        listener.eager_reconnect(false);
        let channel: String = sqlx::query_scalar(CHANNEL).fetch_one(&mut listener).await.map_err(error)?;
        listener.listen(&channel).await.map_err(error)?;
        // Something may have changed before.
        heard.any();
        let own = shown(self.origin);
        loop {
            match timeout(SILENCE, listener.try_recv()).await {
                Ok(Ok(Some(notification))) => pass_on(notification.payload(), &own, heard),
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(failed)) => return Err(error(failed)),
                // A connection may be dead without saying so. What comes while it is asked is kept for the next turn.
                Err(_) => match timeout(ANSWER, listener.execute("SELECT 1")).await {
                    Ok(answered) => answered.map(|_| ()).map_err(error)?,
                    Err(_) => return Err(StoreError::TimedOut),
                },
            }
        }
    }
}

/// Passes an announcement on, unless it is this instance's own.
fn pass_on(announced: &str, own: &str, heard: &Heard) {
    let mut words = announced.split(' ');
    let (origin, id, version) = (words.next(), words.next(), words.next());
    if origin == Some(own) {
        return;
    }
    match (id.and_then(TaskId::parse), version.and_then(|version| version.parse().ok())) {
        (Some(id), Some(version)) => {
            let is_due = !announced.ends_with(NOT_DUE);
            heard.changed(ChangedTask { id, version, is_due });
        }
        _ => heard.any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K3: another instance hears what was announced, whether the task is due, and that anything may have changed if it cannot read
    /// an announcement.
    #[tokio::test]
    async fn an_announcement_is_heard_as_it_was_made() {
        let (heard, mut changes) = Heard::followed();
        let id = TaskId::new([7; 16]);
        for is_due in [true, false] {
            let task = ChangedTask { id: id.clone(), version: 9, is_due };
            pass_on(&announcement("other", &task), "own", &heard);
            let seen = changes.recv().await.unwrap().unwrap();
            assert_eq!((seen.id, seen.version, seen.is_due), (id.clone(), 9, is_due));
            pass_on(&announcement("own", &task), "own", &heard);
        }
        for unreadable in [ANY, "", "other", "other id 9", &format!("other {id} x"), &format!("other {id}")] {
            pass_on(unreadable, "own", &heard);
            assert!(changes.recv().await.unwrap().is_none(), "{unreadable}");
        }
        assert!(changes.try_recv().is_err(), "its own changes are not news");
        // A process of the release before announces no more than this.
        pass_on(&format!("other {id} 9"), "own", &heard);
        assert!(changes.recv().await.unwrap().unwrap().is_due);
    }
}
