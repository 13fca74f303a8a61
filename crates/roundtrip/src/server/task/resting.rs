//! [`Resting`]: tasks and accounts that this process leaves alone for a while.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use roundtrip_core::seal::Digest;
use tokio::time::Instant;

use crate::lock::lock;
use crate::task::{TaskId, Waiting};

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
pub(super) struct Resting {
    tasks: Mutex<HashMap<TaskId, Rest>>,
    /// Accounts that there is no room for, and the ends of their rest.
    accounts: Mutex<HashMap<Digest, Instant>>,
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    until: Instant,
    length: Duration,
}

impl Resting {
    /// Leaves a task alone that this process cannot run. Returns false if there are too many of these: then its lease has to
    /// expire before it is due again.
    pub(super) fn leave(&self, id: &TaskId) -> bool {
        let mut resting = lock(&self.tasks);
        let before = resting.get(id).map(|rest| rest.length).filter(|before| *before >= FIRST);
        let length = before.map_or(FIRST, |before| (before * 2).min(LONGEST));
        enter(&mut resting, id, length)
    }

    /// Leaves a task alone that there is no room for, and others of its account. Returns false if there are too many of these.
    pub(super) fn wait(&self, id: &TaskId, account: Digest) -> bool {
        lock(&self.accounts).insert(account, Instant::now() + SHORT);
        let mut resting = lock(&self.tasks);
        // The pause of a task that cannot be run is still known afterwards.
        let length = resting.get(id).map_or(SHORT, |rest| rest.length);
        let is_resting = enter(&mut resting, id, length);
        if let Some(rest) = resting.get_mut(id) {
            rest.until = Instant::now() + SHORT;
        }
        is_resting
    }

    /// Leaves out accounts that there is no room for now.
    pub(super) fn retain(&self, waiting: &mut Vec<Waiting>) {
        let mut accounts = lock(&self.accounts);
        if !accounts.is_empty() {
            let now = Instant::now();
            accounts.retain(|_, until| *until > now);
            waiting.retain(|waiting| !accounts.contains_key(&waiting.account));
        }
    }

    /// Forgets a task that this process runs, or that is gone.
    pub(super) fn forget(&self, id: &TaskId) {
        lock(&self.tasks).remove(id);
    }

    /// Returns the tasks that are left alone now. Those whose time is over long since are forgotten.
    pub(super) fn now(&self) -> Vec<TaskId> {
        let mut resting = lock(&self.tasks);
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
        tokio::time::advance(LONGEST).await;
        let account = Digest::from_bytes([1; Digest::LEN]);
        assert!(resting.wait(&id, account) && resting.now().len() == 1);
        tokio::time::advance(SHORT).await;
        assert!(resting.now().is_empty() && resting.leave(&id));
        tokio::time::advance(LONGEST - Duration::from_millis(1)).await;
        assert_eq!(resting.now().len(), 1, "a lack of room shortens no later pause");
        resting.forget(&id);
        assert!(resting.now().is_empty());
    }

    /// Z3: while there is no room for an account, its tasks are not taken to be given back.
    #[tokio::test(start_paused = true)]
    async fn an_account_without_room_is_left_alone() {
        let (resting, account) = (Resting::default(), |byte| Digest::from_bytes([byte; Digest::LEN]));
        let all = [1, 2].map(|byte| Waiting { kind: account(9), account: account(byte) });
        let left = |resting: &Resting| {
            let mut waiting = all.to_vec();
            resting.retain(&mut waiting);
            waiting.len()
        };
        assert!(left(&resting) == 2 && resting.wait(&TaskId::new([1; 16]), account(1)));
        assert_eq!(left(&resting), 1);
        tokio::time::advance(SHORT).await;
        assert_eq!(left(&resting), 2);
    }
}
