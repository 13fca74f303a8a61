//! [`Held`]: claims of this process, to be renewed and waited for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Holder, Id};

/// Claims that this process holds.
#[derive(Default)]
pub(super) struct Held(Mutex<HashMap<Id, (Holder, watch::Sender<()>)>>);

impl Held {
    pub(super) fn insert(&self, id: Id, holder: Holder) {
        self.lock().insert(id, (holder, watch::channel(()).0));
    }

    /// Removes a claim, and wakes the requests that wait for its end.
    pub(super) fn remove(&self, id: &Id, holder: &Holder) {
        let mut claims = self.lock();
        if claims.get(id).is_some_and(|(own, _)| own == holder) {
            claims.remove(id);
        }
    }

    /// Waits for the end of a claim. False at once if it is not held here.
    pub(super) async fn ended(&self, id: &Id) -> bool {
        let Some(mut end) = self.lock().get(id).map(|(_, end)| end.subscribe()) else { return false };
        // Nothing is ever sent: the sender is dropped with the claim.
        let _ = end.changed().await;
        true
    }

    pub(super) fn all(&self) -> Vec<(Id, Holder)> {
        self.lock().iter().map(|(id, (holder, _))| (*id, *holder)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, (Holder, watch::Sender<()>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
