//! Calls that wait for answers, by the handle that stands for them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use tokio::task::AbortHandle;

use super::call::OpenCall;
use super::link::Link;
use crate::client::Error;

/// How long a call is held for answers that may never come.
const EXPIRY: Duration = Duration::from_secs(600);
/// How many calls are held; the oldest make way for those beyond.
const CAPACITY: usize = 256;
/// What every handle begins with.
const PREFIX: &str = "dev.roundtrip/open-call:";

/// The state of a round whose answers only say that the call may be made again.
pub(super) const AGAIN: &str = "dev.roundtrip/call-again";

pub(super) struct Held<L: Link>(Mutex<IndexMap<String, Place<L>>>);

struct Place<L: Link> {
    call: OpenCall<L>,
    /// Lets go of it when its time has come.
    _expiry: Expiry,
}

/// A clock that stops when it is dropped.
struct Expiry(Option<AbortHandle>);

impl Drop for Expiry {
    fn drop(&mut self) {
        if let Some(clock) = self.0.take() {
            clock.abort();
        }
    }
}

impl<L: Link> Default for Held<L> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<L: Link> Held<L> {
    fn places(&self) -> MutexGuard<'_, IndexMap<String, Place<L>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a call; the handle that stands for it.
    pub(super) fn keep(self: &Arc<Self>, call: OpenCall<L>) -> Result<String, Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| Error::ApiMisuse(format!("no randomness to be had: {error}")))?;
        let handle = format!("{PREFIX}{:032x}", u128::from_ne_bytes(random));
        let expiry = tokio::runtime::Handle::try_current().ok().map(|runtime| {
            let (held, handle) = (Arc::downgrade(self), handle.clone());
            let time = tokio::time::sleep(EXPIRY);
            let expire = async move {
                time.await;
                if let Some(held) = held.upgrade() {
                    held.let_go(&handle);
                }
            };
            runtime.spawn(expire).abort_handle()
        });
        let mut places = self.places();
        let oldest = if places.len() >= CAPACITY { places.shift_remove_index(0) } else { None };
        places.insert(handle.clone(), Place { call, _expiry: Expiry(expiry) });
        drop(places);
        drop(oldest);
        Ok(handle)
    }

    /// The call that a handle stands for, for whoever goes on with it.
    pub(super) fn take(&self, handle: &str) -> Result<OpenCall<L>, Error> {
        let place = self.places().shift_remove(handle);
        place.map(|place| place.call).ok_or_else(|| {
            Error::ApiMisuse(
                "this call was open at a server of an earlier revision, and is no longer: it can be gone on with \
                 by the client that began it alone, once, and for ten minutes; make the call anew"
                    .to_owned(),
            )
        })
    }

    /// Nobody will go on with this one.
    pub(super) fn let_go(&self, handle: &str) {
        if handle.starts_with(PREFIX) {
            // Not under the lock: dropping a call tells the server.
            let place = self.places().shift_remove(handle);
            drop(place);
        }
    }

    /// Nobody will go on with any.
    pub(super) fn clear(&self) {
        let places = std::mem::take(&mut *self.places());
        drop(places);
    }
}
