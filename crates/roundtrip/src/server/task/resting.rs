//! [`Resting`]: tasks that this process leaves alone for a while.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::lock::lock;
use crate::task::TaskId;

/// Time for which a task is left alone that this process cannot run.
const FIRST: Duration = Duration::from_secs(30);
/// Longest such time: it doubles each time the task is tried in vain.
const LONGEST: Duration = Duration::from_secs(600);
/// Time for which a task is left alone that there is no room for.
const SHORT: Duration = Duration::from_secs(1);
/// Most tasks that are remembered.
const MOST: usize = 10_000;

/// Tasks that this process leaves alone: it cannot run them, or has no room for them. Other processes may take them at once.
#[derive(Debug, Default)]
pub(super) struct Resting(Mutex<HashMap<TaskId, Rest>>);

#[derive(Debug, Clone, Copy)]
struct Rest {
    until: Instant,
    length: Duration,
}

impl Resting {
    /// Leaves a task alone that this process cannot run. Returns false if there are too many of these: then its lease has to
    /// expire before it is due again.
    pub(super) fn leave(&self, id: &TaskId) -> bool {
        let mut resting = lock(&self.0);
        let before = resting.get(id).map(|rest| rest.length);
        let length = before.map_or(FIRST, |before| (before * 2).clamp(FIRST, LONGEST));
        enter(&mut resting, id, length)
    }

    /// Leaves a task alone that there is no room for. Returns false if there are too many of these.
    pub(super) fn wait(&self, id: &TaskId) -> bool {
        enter(&mut lock(&self.0), id, SHORT)
    }

    /// Forgets a task that this process runs, or that is gone.
    pub(super) fn forget(&self, id: &TaskId) {
        lock(&self.0).remove(id);
    }

    /// Returns the tasks that are left alone now. Those whose time is over long since are forgotten.
    pub(super) fn now(&self) -> Vec<TaskId> {
        let mut resting = lock(&self.0);
        let now = Instant::now();
        resting.retain(|_, rest| rest.until + LONGEST > now);
        resting.iter().filter(|(_, rest)| rest.until > now).map(|(id, _)| id.clone()).collect()
    }
}

fn enter(resting: &mut HashMap<TaskId, Rest>, id: &TaskId, length: Duration) -> bool {
    let has_room = resting.len() < MOST || resting.contains_key(id);
    if has_room {
        resting.insert(id.clone(), Rest { until: Instant::now() + length, length });
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T16: a task that cannot be run is tried again after 30 s, then after twice the time, up to ten minutes.
    #[tokio::test(start_paused = true)]
    async fn a_task_is_left_alone_longer_each_time() {
        let (resting, id) = (Resting::default(), TaskId::new([1; 16]));
        assert!(resting.leave(&id));
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            tokio::time::advance(Duration::from_secs(seconds) - Duration::from_millis(1)).await;
            assert_eq!(resting.now().len(), 1, "{seconds}");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(resting.now().is_empty(), "{seconds}");
            assert!(resting.leave(&id));
        }
        resting.forget(&id);
        assert!(resting.now().is_empty() && resting.wait(&id) && resting.now().len() == 1);
        tokio::time::advance(SHORT).await;
        assert!(resting.now().is_empty());
    }
}
