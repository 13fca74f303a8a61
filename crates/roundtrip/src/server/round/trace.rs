//! Trace of the keys that each run of a handler uses, and the mark of a running step: for the replay harness.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};

use crate::lock::lock;

thread_local! {
    /// True while this thread polls a step of `once`.
    static IN_STEP: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn is_in_step() -> bool {
    IN_STEP.get()
}

/// Polls a step with its thread marked as being in a step.
pub(crate) async fn in_step<T>(step: impl Future<Output = T>) -> T {
    let mut step = pin!(step);
    poll_fn(|cx| {
        let _stepping = Stepping(IN_STEP.replace(true));
        step.as_mut().poll(cx)
    })
    .await
}

/// Puts the mark back as it was, also when the step panics: the thread goes on to poll other calls.
struct Stepping(bool);

impl Drop for Stepping {
    fn drop(&mut self) {
        IN_STEP.set(self.0);
    }
}

/// Keys that each run of a handler has used, in order.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Vec<Vec<String>>>);

impl Trace {
    fn runs(&self) -> MutexGuard<'_, Vec<Vec<String>>> {
        lock(&self.0)
    }

    pub(crate) fn begin_run(&self) {
        self.runs().push(Vec::new());
    }

    pub(crate) fn key(&self, key: &str) {
        if let Some(run) = self.runs().last_mut() {
            run.push(key.to_owned());
        }
    }

    /// Finds two runs that do not agree: the key that was expected, and the one that was used.
    pub(crate) fn disagreement(&self) -> Option<Disagreement> {
        let runs = self.runs();
        let longest = runs.iter().max_by_key(|run| run.len())?;
        for run in runs.iter() {
            let Some(at) = run.iter().zip(longest).position(|(came, expected)| came != expected) else {
                continue;
            };
            let (came, expected) = (run[at].clone(), longest[at].clone());
            return Some(if longest.contains(&came) {
                Disagreement::Order { first: expected, then: came }
            } else {
                Disagreement::Volatile { before: expected, now: came }
            });
        }
        None
    }
}

/// Difference between two runs of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Disagreement {
    Order { first: String, then: String },
    Volatile { before: String, now: String },
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Z1: the thread that polled a step which panicked is not taken for one inside a step.
    #[test]
    fn a_step_that_panics_leaves_no_mark_on_its_thread() {
        let mut step = pin!(in_step(poll_fn(|_| -> Poll<()> { panic!("boom") })));
        let polled = catch_unwind(AssertUnwindSafe(|| {
            step.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
        }));
        assert!(polled.is_err());
        assert!(!is_in_step());
    }
}
