//! A lease as the keeper of its round's journal.

use std::sync::Arc;

use roundtrip_core::seal::BoxFuture;

use super::{Lease, Next, Stop};
use crate::lock::lock;
use crate::server::round::{Keeper, Moment, ParkedRound, ShownQuestions};

impl Keeper for Lease {
    fn keep(self: Arc<Self>, moment: Moment) -> BoxFuture<'static, bool> {
        Box::pin(async move {
            if self.admission.is_draining() {
                self.change(Next::GivenBack, |_, _| {}).await;
            } else {
                self.append().await;
            }
            if moment == Moment::Before {
                self.holds().await;
            }
            // A cancelled handler ends the steps that run, and begins no other.
            self.stop.borrow().is_none()
        })
    }

    fn park(&self, parked: ParkedRound) {
        *lock(&self.parked) = Some(parked);
    }

    fn show(&self, shown: ShownQuestions) {
        lock(&self.shown).push(shown);
        self.shows.notify_one();
    }

    fn leave(&self, why: String) {
        *lock(&self.misfit) = Some(why);
        self.stop(Stop::Misfit);
    }
}

impl Lease {
    /// Takes the round that the handler has ended.
    pub(crate) fn take_parked(&self) -> Option<ParkedRound> {
        lock(&self.parked).take()
    }

    /// Returns whether the task is to be left to others.
    pub(crate) fn is_misfit(&self) -> bool {
        *self.stop.borrow() == Some(Stop::Misfit)
    }

    /// Returns the description of what the task is left for.
    pub(crate) fn misfit(&self) -> String {
        lock(&self.misfit).clone().unwrap_or_default()
    }
}
