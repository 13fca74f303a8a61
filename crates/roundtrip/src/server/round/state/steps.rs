//! Steps of `once` and looks of `until`: beginning, recalling and remembering them.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use roundtrip_core::round::{Found, Kind};
use roundtrip_core::seal::Digest;

use super::{AskError, Branch, Inner, RoundState, remove};

/// Most steps of a task.
const MAX_STEPS: usize = 10_000;

/// Guard of a running step.
#[derive(Debug)]
pub(crate) struct StepGuard {
    round: Arc<RoundState>,
    key: String,
}

impl StepGuard {
    /// Polls the step; inside it nothing can be asked meanwhile.
    pub(crate) async fn run<F: Future>(&self, effect: F) -> F::Output {
        let mut effect = pin!(effect);
        poll_fn(|cx| {
            let _stepping = Stepping::begin(&self.round);
            effect.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        let mut inner = self.round.lock();
        remove(&mut inner.running, &self.key);
        RoundState::stir(inner);
    }
}

/// Guard of a step that is being polled on this thread.
struct Stepping<'a>(&'a RoundState, ThreadId);

impl<'a> Stepping<'a> {
    fn begin(round: &'a RoundState) -> Self {
        let thread = thread::current().id();
        round.lock().stepping.push(thread);
        Self(round, thread)
    }
}

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        remove(&mut self.0.lock().stepping, &self.1);
    }
}

/// State of a step when the handler reaches it.
#[derive(Debug)]
pub(crate) enum Begun<R> {
    /// The step ran in an earlier round: its value, or the failure it was told to remember.
    Remembered(Result<String, String>),
    /// The step is to run now.
    Run(R),
    /// The journal is one of another version: the task is left to others, and the handler is dropped.
    Left,
}

impl RoundState {
    /// Begins a step, or returns the result it had in an earlier round. Looking, registering and keeping its idempotency
    /// key are one change under one lock: two tasks that hold one `Ask` cannot both begin it, and none can once the round
    /// is over.
    pub(crate) fn begin_step(
        self: &Arc<Self>,
        branch: Branch,
        key: &str,
    ) -> Result<Begun<(StepGuard, String)>, AskError> {
        self.traced(branch, key);
        if self.leaves(key) {
            return Ok(Begun::Left);
        }
        let mut inner = self.open()?;
        if let Some(remembered) = inner.recall_step(key)? {
            return Ok(Begun::Remembered(remembered));
        }
        if self.keeper().is_some() {
            inner.count_step()?;
        }
        // A step that began before and did not end well is repeated under the key it had then.
        let begun = inner.journal.peek(key).map(|found| found.value.to_owned());
        let idempotency_key = begun.unwrap_or_else(|| {
            let idempotency_key =
                inner.idempotency_key(key, |answer, fresh| !fresh || inner.depends(branch, answer));
            inner.journal.remember(Kind::Begun, key, None, &idempotency_key);
            idempotency_key
        });
        inner.running.push(key.to_owned());
        inner.stepped = true;
        drop(inner);
        Ok(Begun::Run((StepGuard { round: Arc::clone(self), key: key.to_owned() }, idempotency_key)))
    }

    /// Begins a look of `until`, or returns what an earlier round found. A look has no effect that would need an
    /// idempotency key.
    pub(crate) fn begin_look(
        self: &Arc<Self>,
        branch: Branch,
        key: &str,
    ) -> Result<Begun<StepGuard>, AskError> {
        self.traced(branch, key);
        if self.leaves(key) {
            return Ok(Begun::Left);
        }
        let mut inner = self.open()?;
        if let Some(remembered) = inner.recall_step(key)? {
            return Ok(Begun::Remembered(remembered));
        }
        inner.running.push(key.to_owned());
        Ok(Begun::Run(StepGuard { round: Arc::clone(self), key: key.to_owned() }))
    }

    /// Leaves the task to others if its journal has something else under the key of a step: another version has written it (T16).
    pub(super) fn leaves(&self, key: &str) -> bool {
        let is_step = |kind| matches!(kind, Kind::Begun | Kind::Step | Kind::Failed);
        let is_other = |found: Found<'_>| !found.used && !is_step(found.kind);
        self.keeper().is_some()
            && self.lock().journal.peek(key).is_some_and(is_other)
            && self.leave_for(key, "a step")
    }

    /// Keeps the result of a step for every later round.
    ///
    /// # Errors
    /// Fails if the round is over: its journal is sealed or gone, so the step will run again under its idempotency key.
    pub(crate) fn remember(&self, kind: Kind, key: &str, value: &str) -> Result<(), AskError> {
        let mut inner = self.open().inspect_err(|_| {
            tracing::error!(
                key,
                "a step ended after its round: its result is lost and it will run again; await steps in the handler"
            );
        })?;
        inner.journal.forget(key);
        inner.journal.remember(kind, key, None, value);
        if let Some(trace) = &self.trace {
            trace.step(key, value);
        }
        Ok(())
    }

    /// Returns the idempotency key of a step that depends on these answers alone.
    pub(crate) fn idempotency_key(&self, key: &str, answers: &[&str]) -> String {
        self.lock().idempotency_key(key, |answer, _| answers.contains(&answer))
    }

    /// Returns whether this round has begun a step.
    pub(crate) fn has_stepped(&self) -> bool {
        self.lock().stepped
    }
}

impl Inner {
    /// Counts a step of a task. Its journal is stored step by step, and a client's list may be long.
    fn count_step(&mut self) -> Result<(), AskError> {
        let steps = self.steps.get_or_insert_with(|| {
            let is_step = |kind| matches!(kind, Kind::Begun | Kind::Step | Kind::Failed);
            self.journal.entries().filter(|(kind, ..)| is_step(*kind)).count()
        });
        *steps += 1;
        if *steps <= MAX_STEPS {
            return Ok(());
        }
        let error = AskError::Misuse(format!(
            "more than {MAX_STEPS} steps in one task: do more in each step, or make several tasks"
        ));
        Err(self.misuse.get_or_insert(error).clone())
    }

    /// Returns the result of a step in an earlier round: its value, or the failure it was told to remember. Fails where the
    /// key is in use. `None` is a step that has not begun, or that began and has no result.
    pub(super) fn recall_step(&mut self, key: &str) -> Result<Option<Result<String, String>>, AskError> {
        if self.uses(key) {
            return Err(self.twice(key));
        }
        match self.journal.find(key) {
            None | Some(Found { kind: Kind::Begun, .. }) => Ok(None),
            Some(Found { kind: Kind::Step, value, used: false, .. }) => Ok(Some(Ok(value.to_owned()))),
            Some(Found { kind: Kind::Failed, value, used: false, .. }) => Ok(Some(Err(value.to_owned()))),
            Some(_) => Err(self.twice(key)),
        }
    }

    /// Derives the idempotency key of a step from its flow, its key and the answers it depends on, given their keys and whether
    /// they were settled in this round. Without the answers, a token presented twice with other answers would give two
    /// different effects one key.
    fn idempotency_key(&self, key: &str, depends: impl Fn(&str, bool) -> bool) -> String {
        let mut settled: Vec<_> = self.journal.settled().collect();
        settled.retain(|(answered, .., fresh)| depends(answered, *fresh));
        settled.sort_unstable_by_key(|(answered, ..)| *answered);
        let kinds: Vec<[u8; 1]> = settled.iter().map(|(_, kind, ..)| [*kind as u8]).collect();
        let mut parts = vec![self.flow.as_bytes().as_slice(), key.as_bytes()];
        for ((answered, _, value, _), kind) in settled.iter().zip(&kinds) {
            parts.extend([answered.as_bytes(), kind, value.as_bytes()]);
        }
        Digest::of("step", &parts).to_string()
    }
}
