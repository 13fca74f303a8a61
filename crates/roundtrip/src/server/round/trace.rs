//! Trace of each run of a handler, and the mark of a running step: for the replay harness.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
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

/// Branch of a handler: its body, or the resolver with a key. Branches run side by side, each in an order of its own.
pub(crate) type Branch = Option<&'static str>;

/// Runs of a handler, in order.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Vec<TracedRun>>);

/// One run of a handler.
#[derive(Debug, Default)]
struct TracedRun {
    /// Keys that each branch used, in order.
    keys: BTreeMap<Branch, Vec<String>>,
    /// Steps that it ran, and their results.
    steps: Vec<(String, String)>,
    /// Questions that had been answered, and are asked again.
    asked_again: Vec<(String, AskedAgain)>,
}

/// Reason that a question which had been answered is asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskedAgain {
    /// The answer does not fit, and why.
    Unfit(String),
    /// The question is not the one that was answered.
    Changed,
}

impl Trace {
    fn runs(&self) -> MutexGuard<'_, Vec<TracedRun>> {
        lock(&self.0)
    }

    fn run(&self, record: impl FnOnce(&mut TracedRun)) {
        if let Some(run) = self.runs().last_mut() {
            record(run);
        }
    }

    pub(crate) fn begin_run(&self) {
        self.runs().push(TracedRun::default());
    }

    pub(crate) fn key(&self, branch: Branch, key: &str) {
        self.run(|run| run.keys.entry(branch).or_default().push(key.to_owned()));
    }

    pub(crate) fn step(&self, key: &str, result: &str) {
        self.run(|run| run.steps.push((key.to_owned(), result.to_owned())));
    }

    pub(crate) fn ask_again(&self, key: &str, why: AskedAgain) {
        self.run(|run| run.asked_again.push((key.to_owned(), why)));
    }

    /// Returns why the last run asks a question again.
    pub(crate) fn asked_again(&self, key: &str) -> Option<AskedAgain> {
        let runs = self.runs();
        let mut asked_again = runs.last()?.asked_again.iter();
        asked_again.find(|(asked, _)| asked == key).map(|(_, why)| why.clone())
    }

    /// Returns the first step whose result differs in the last two runs.
    pub(crate) fn changed_step(&self) -> Option<String> {
        let runs = self.runs();
        let [.., first, then] = runs.as_slice() else { return None };
        let changed = |(key, result): &&(String, String)| {
            then.steps.iter().any(|(other, changed)| other == key && changed != result)
        };
        first.steps.iter().find(changed).map(|(key, _)| key.clone())
    }

    /// Finds two runs that do not agree: the key that was expected, and the one that was used.
    pub(crate) fn disagreement(&self) -> Option<Disagreement> {
        let runs = self.runs();
        let branches: BTreeSet<Branch> = runs.iter().flat_map(|run| run.keys.keys().copied()).collect();
        branches.iter().find_map(|branch| {
            let runs: Vec<&[String]> =
                runs.iter().filter_map(|run| run.keys.get(branch)).map(Vec::as_slice).collect();
            disagreement(&runs)
        })
    }
}

/// Finds two runs of one branch that do not agree.
fn disagreement(runs: &[&[String]]) -> Option<Disagreement> {
    let longest = runs.iter().max_by_key(|keys| keys.len())?;
    for run in runs {
        let Some(at) = run.iter().zip(*longest).position(|(came, expected)| came != expected) else {
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
