//! Counter of effects, for test doubles of the outside world.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::lock::lock;
use crate::server::is_in_step;

/// Counter of effects. Put it behind the test doubles of the outside world, and call [`happened`](Self::happened)
/// where the real thing would act.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<BTreeMap<String, Seen>>>);

#[derive(Clone, Copy)]
struct Seen {
    inside: usize,
    outside: usize,
    place: &'static Location<'static>,
}

impl Effects {
    /// Creates a counter without effects.
    pub fn new() -> Self {
        Self::default()
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        lock(&self.0)
    }

    /// Counts an effect.
    #[track_caller]
    pub fn happened(&self, what: impl Into<String>) {
        let place = Location::caller();
        let mut seen = self.seen();
        let entry = seen.entry(what.into()).or_insert(Seen { inside: 0, outside: 0, place });
        if is_in_step() {
            entry.inside += 1;
        } else {
            entry.outside += 1;
            entry.place = place;
        }
    }

    /// Returns how often an effect happened.
    pub fn count(&self, what: &str) -> usize {
        self.seen().get(what).map_or(0, |seen| seen.inside + seen.outside)
    }

    /// Returns the first effect that happened more than once outside a step: its name, its count and its place.
    pub(super) fn repeated(&self) -> Option<(String, usize, &'static Location<'static>)> {
        let seen = self.seen();
        seen.iter()
            .find(|(_, seen)| seen.outside > 1)
            .map(|(what, seen)| (what.clone(), seen.outside, seen.place))
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.seen().keys()).finish()
    }
}
