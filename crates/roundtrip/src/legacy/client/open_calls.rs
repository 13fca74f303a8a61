//! Calls that wait for answers, by the handle that stands for them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep};

use super::call::OpenCall;
use super::link::Link;
use crate::client::{ApiMisuse, Error, GaveUp};

/// How long a call is held for answers that may never come.
const EXPIRY: Duration = Duration::from_secs(600);
/// How many calls are held; those beyond are given up.
const CAPACITY: usize = 256;
/// What every handle begins with.
const PREFIX: &str = "dev.roundtrip/open-call:";

/// The state of a round whose answers only say that the call may be made again.
pub(super) const AGAIN: &str = "dev.roundtrip/call-again";

pub(super) struct OpenCalls<L: Link>(Mutex<IndexMap<String, Place<L>>>);

/// A call that somebody keeps an eye on. Dropping this gives it up.
struct Place<L: Link> {
    wanted: oneshot::Sender<()>,
    sitter: JoinHandle<Option<OpenCall<L>>>,
}

impl<L: Link> Default for OpenCalls<L> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<L: Link> OpenCalls<L> {
    fn places(&self) -> MutexGuard<'_, IndexMap<String, Place<L>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a call; the handle that stands for it.
    pub(super) fn keep(&self, call: OpenCall<L>) -> Result<String, Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| ApiMisuse::Other(format!("no randomness to be had: {error}")))?;
        let handle = format!("{PREFIX}{:032x}", u128::from_ne_bytes(random));
        let (wanted, until) = oneshot::channel();
        let sitter = tokio::spawn(sit(call, until, sleep(EXPIRY)));
        let mut places = self.places();
        // Those whose time has come are over already.
        places.retain(|_, place| !place.sitter.is_finished());
        if places.len() >= CAPACITY {
            // The sitter goes with its place, and the call with its sitter.
            return Err(GaveUp::TooManyOpenCalls { allowed: CAPACITY }.into());
        }
        places.insert(handle.clone(), Place { wanted, sitter });
        Ok(handle)
    }

    /// The call that a handle stands for, for whoever goes on with it.
    pub(super) async fn take(&self, handle: &str) -> Result<OpenCall<L>, Error> {
        let place = self.places().shift_remove(handle);
        let call = match place {
            Some(Place { wanted, sitter }) => {
                // Where it is over, there is nobody left to hear this.
                let _ = wanted.send(());
                sitter.await.ok().flatten()
            }
            None => None,
        };
        call.ok_or_else(|| {
            ApiMisuse::CallNotOpen(
                "this call was open at a server of an earlier revision, and is no longer: it can be gone on with \
                 by the client that began it alone, once, and for ten minutes; make the call anew"
                    .to_owned(),
            )
            .into()
        })
    }

    /// Nobody will go on with this one.
    pub(super) fn let_go(&self, handle: &str) {
        if handle.starts_with(PREFIX) {
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

/// Keeps an eye on a call until somebody wants it; none where nobody did, and it has been given up.
async fn sit<L: Link>(
    mut call: OpenCall<L>,
    wanted: oneshot::Receiver<()>,
    expiry: Sleep,
) -> Option<OpenCall<L>> {
    let closed = call.session().closed.clone();
    let wanted = tokio::select! {
        wanted = wanted => wanted.is_ok(),
        () = closed.wait() => false,
        () = expiry => false,
        never = call.watch() => match never {},
    };
    wanted.then_some(call)
}
