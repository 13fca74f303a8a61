//! [`WatchedTasks`]: subscriptions by the tasks that they watch.

use std::collections::HashMap;

/// Index from tasks to the subscriptions that watch them: a change of a task costs what watches it, not what is open.
#[derive(Debug, Default)]
pub(super) struct WatchedTasks {
    /// Keys of subscriptions, by the identifiers of tasks.
    by_task: HashMap<String, Vec<u64>>,
    /// Identifiers of tasks, by the keys of subscriptions.
    by_subscription: HashMap<u64, Vec<String>>,
}

impl WatchedTasks {
    /// Sets the tasks that a subscription watches.
    pub(super) fn set(&mut self, subscription: u64, tasks: &[String]) {
        self.remove(subscription);
        if tasks.is_empty() {
            return;
        }
        for task in tasks {
            self.by_task.entry(task.clone()).or_default().push(subscription);
        }
        self.by_subscription.insert(subscription, tasks.to_vec());
    }

    /// Adds a task to those that a subscription watches.
    #[cfg(feature = "legacy")]
    pub(super) fn add(&mut self, subscription: u64, task: &str) {
        let watching = self.by_task.entry(task.to_owned()).or_default();
        if !watching.contains(&subscription) {
            watching.push(subscription);
            self.by_subscription.entry(subscription).or_default().push(task.to_owned());
        }
    }

    /// Removes a subscription.
    pub(super) fn remove(&mut self, subscription: u64) {
        for task in self.by_subscription.remove(&subscription).unwrap_or_default() {
            if let Some(watching) = self.by_task.get_mut(&task) {
                watching.retain(|other| *other != subscription);
                if watching.is_empty() {
                    self.by_task.remove(&task);
                }
            }
        }
    }

    /// Returns the subscriptions that watch a task.
    pub(super) fn of(&self, task: &str) -> &[u64] {
        self.by_task.get(task).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z3: a subscription that ends, or watches other tasks, leaves nothing behind.
    #[test]
    fn a_subscription_leaves_nothing_behind() {
        let mut watched = WatchedTasks::default();
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        watched.set(1, &ids(&["a", "b"]));
        watched.set(2, &ids(&["b"]));
        assert_eq!((watched.of("a"), watched.of("b"), watched.of("c")), (&[1][..], &[1, 2][..], &[][..]));
        watched.set(1, &ids(&["c"]));
        assert_eq!((watched.of("a"), watched.of("b"), watched.of("c")), (&[][..], &[2][..], &[1][..]));
        #[cfg(feature = "legacy")]
        {
            watched.add(1, "a");
            watched.add(1, "a");
            assert_eq!((watched.of("a"), watched.of("c")), (&[1][..], &[1][..]));
        }
        watched.remove(1);
        watched.set(2, &[]);
        assert!(watched.by_task.is_empty() && watched.by_subscription.is_empty());
    }
}
