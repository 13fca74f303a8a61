//! Introspections under way: one for each token, in a queue that all callers share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip_core::auth::Claims;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::memory::TokenDigest;
use super::{CheckError, PATIENCE};
use crate::lock::lock;
use crate::server::{Budget, Owner, Reservation};

/// Greatest number of tokens that endpoints are asked about at once.
const MOST_AT_ONCE: usize = 64;
/// Greatest number of tokens under way: those, and others that wait for their turn.
const MOST_UNDER_WAY: usize = 256;
/// Time that an endpoint needs at least: with less of it left, it is not asked.
const LEAST_LEFT: Duration = Duration::from_secs(1);

/// Verdict about a token.
pub(super) type Verdict = Result<Arc<Claims>, CheckError>;

/// Introspections under way, by the digests of their tokens.
pub(super) struct Flights {
    running: Mutex<HashMap<TokenDigest, watch::Sender<Option<Verdict>>>>,
    /// Places of tokens under way. One caller has at most half of what the others leave.
    places: Arc<Budget>,
    at_once: Semaphore,
}

impl Default for Flights {
    fn default() -> Self {
        let (places, at_once) = (Budget::new(MOST_UNDER_WAY), Semaphore::new(MOST_AT_ONCE));
        Self { running: Mutex::default(), places, at_once }
    }
}

impl Flights {
    /// Waits for the verdict about a token: that of the introspection under way, or else of `ask`, which counts
    /// against a caller. It is a task of its own: the request that began it may be dropped.
    pub(super) async fn verdict<F>(
        self: &Arc<Self>,
        digest: TokenDigest,
        owner: &Owner,
        ask: impl FnOnce() -> F,
    ) -> Verdict
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        let mut verdict = self.join(digest, owner, ask)?;
        let waited = timeout(PATIENCE, verdict.wait_for(Option::is_some)).await;
        // A flight without a verdict has ended with its runtime.
        let verdict = waited.ok().and_then(Result::ok).and_then(|verdict| verdict.clone());
        verdict.unwrap_or(Err(CheckError::Unavailable))
    }

    fn join<F>(
        self: &Arc<Self>,
        digest: TokenDigest,
        owner: &Owner,
        ask: impl FnOnce() -> F,
    ) -> Result<watch::Receiver<Option<Verdict>>, CheckError>
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        let mut running = lock(&self.running);
        if let Some(verdict) = running.get(&digest) {
            return Ok(verdict.subscribe());
        }
        let place = self.places.reserve(owner, 1).ok_or(CheckError::Unavailable)?;
        let (verdict, receiver) = watch::channel(None);
        running.insert(digest, verdict.clone());
        // Outside of the lock: a runtime that shuts down drops the task at once, and that ends the flight.
        drop(running);
        let flight = Flight { flights: Arc::clone(self), digest, verdict, _place: place };
        drop(tokio::spawn(flight.run(ask())));
        Ok(receiver)
    }
}

/// An introspection under way. It ends when this is dropped, whatever becomes of its task.
struct Flight {
    flights: Arc<Flights>,
    digest: TokenDigest,
    verdict: watch::Sender<Option<Verdict>>,
    _place: Reservation,
}

impl Flight {
    async fn run(self, ask: impl Future<Output = Verdict>) {
        let end = Instant::now() + PATIENCE;
        let asked = match self.turn(end - LEAST_LEFT).await {
            Some(_turn) => timeout_at(end, ask).await.ok(),
            None => None,
        };
        self.verdict.send_replace(Some(asked.unwrap_or(Err(CheckError::Unavailable))));
    }

    /// Waits for its turn. `None` means that there is none in time, or that nobody waits for the verdict.
    async fn turn(&self, latest: Instant) -> Option<SemaphorePermit<'_>> {
        let mut turn = std::pin::pin!(timeout_at(latest, self.flights.at_once.acquire()));
        loop {
            tokio::select! {
                biased;
                turn = &mut turn => return turn.ok().and_then(Result::ok),
                () = self.verdict.closed() => {
                    if self.is_left() {
                        return None;
                    }
                }
            }
        }
    }

    /// Takes the flight out of the list if nobody waits for it. Under the lock nobody can join it.
    fn is_left(&self) -> bool {
        let mut running = lock(&self.flights.running);
        let is_left = self.verdict.receiver_count() == 0;
        if is_left {
            running.remove(&self.digest);
        }
        is_left
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut running = lock(&self.flights.running);
        // Another flight of the same token may have begun since this one was left.
        if running.get(&self.digest).is_some_and(|verdict| verdict.same_channel(&self.verdict)) {
            running.remove(&self.digest);
        }
    }
}
