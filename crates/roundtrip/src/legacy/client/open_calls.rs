//! Open calls that wait for answers, by their handles.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use indexmap::IndexMap;
use roundtrip_core::wire::InputRequests;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep};

use super::call::OpenCall;
use super::link::SessionLink;
use crate::client::{ApiMisuse, Error, GaveUp};
use crate::lock::lock;

/// Longest time that a call waits for answers.
const EXPIRY: Duration = Duration::from_secs(600);
/// Most calls that wait; those beyond are given up.
const CAPACITY: usize = 256;
/// Prefix of every handle.
const PREFIX: &str = "dev.roundtrip/open-call:";
/// The same, for calls that wait for the result of a task, which they name.
const TASK_PREFIX: &str = "dev.roundtrip/open-call:task:";

/// `requestState` of a round after which the call is simply made again.
pub(super) const AGAIN: &str = "dev.roundtrip/call-again";

/// Calls that wait for answers, by their handles.
pub(super) struct OpenCalls<L: SessionLink>(Mutex<IndexMap<String, Place<L>>>);

/// A waiting call and the task that watches it. Dropping this gives the call up.
struct Place<L: SessionLink> {
    /// Its questions, as they were when the call was stored.
    questions: InputRequests,
    wanted: oneshot::Sender<()>,
    watcher: JoinHandle<Option<OpenCall<L>>>,
}

impl<L: SessionLink> Default for OpenCalls<L> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<L: SessionLink> OpenCalls<L> {
    fn places(&self) -> MutexGuard<'_, IndexMap<String, Place<L>>> {
        lock(&self.0)
    }

    /// Stores a call; returns its handle.
    pub(super) fn keep(&self, call: OpenCall<L>) -> Result<String, Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| ApiMisuse::Other(format!("no randomness to be had: {error}")))?;
        let handle = format!("{PREFIX}{:032x}", u128::from_ne_bytes(random));
        self.keep_as(handle.clone(), call).map(|()| handle)
    }

    /// Stores the call that waits for the result of a task.
    pub(super) fn keep_for_task(&self, task: &str, call: OpenCall<L>) -> Result<(), Error> {
        self.keep_as(format!("{TASK_PREFIX}{task}"), call)
    }

    /// Takes the call that waits for the result of a task, if there is one.
    pub(super) async fn take_for_task(&self, task: &str) -> Option<OpenCall<L>> {
        self.take(&format!("{TASK_PREFIX}{task}")).await.ok()
    }

    /// Returns the questions of a task that wait for answers.
    pub(super) fn questions_of_task(&self, task: &str) -> Option<InputRequests> {
        let places = self.places();
        let place = places.get(&format!("{TASK_PREFIX}{task}")).filter(|place| !place.watcher.is_finished());
        place.map(|place| place.questions.clone()).filter(|questions| !questions.is_empty())
    }

    /// Gives up the call that waits for the result of a task. The task is left as it is.
    pub(super) fn let_task_go(&self, task: &str) {
        self.let_go(&format!("{TASK_PREFIX}{task}"));
    }

    fn keep_as(&self, handle: String, call: OpenCall<L>) -> Result<(), Error> {
        let questions = call.questions();
        let (wanted, until) = oneshot::channel();
        let watcher = tokio::spawn(watch_until_wanted(call, until, sleep(EXPIRY)));
        let mut places = self.places();
        // Expired calls have ended already.
        places.retain(|_, place| !place.watcher.is_finished());
        if places.len() >= CAPACITY {
            // The watcher is dropped with its place, and the call with its watcher.
            return Err(GaveUp::TooManyOpenCalls { allowed: CAPACITY }.into());
        }
        places.insert(handle, Place { questions, wanted, watcher });
        Ok(())
    }

    /// Takes the call of a handle, to go on with it.
    pub(super) async fn take(&self, handle: &str) -> Result<OpenCall<L>, Error> {
        let place = self.places().shift_remove(handle);
        let call = match place {
            Some(Place { wanted, watcher, .. }) => {
                // If the call has ended, its watcher no longer receives this.
                let _ = wanted.send(());
                watcher.await.ok().flatten()
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

    /// Gives up one call.
    pub(super) fn let_go(&self, handle: &str) {
        if handle.starts_with(PREFIX) {
            let place = self.places().shift_remove(handle);
            drop(place);
        }
    }

    /// Gives up all calls.
    pub(super) fn clear(&self) {
        let places = std::mem::take(&mut *self.places());
        drop(places);
    }
}

/// Watches a call until it is wanted; `None` if it was given up before.
async fn watch_until_wanted<L: SessionLink>(
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
