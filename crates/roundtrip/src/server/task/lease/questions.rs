//! Questions that a task shows while its handler runs on, and their answers.

use super::{Held, Lease, Next, give_up};
use crate::lock::lock;
use crate::server::round::ShownQuestions;
use crate::task::{Millis, Record};

impl Lease {
    /// Stores the questions that the handler asks while it runs, for as long as it is polled.
    pub(crate) async fn show_questions(&self) {
        loop {
            self.shows.notified().await;
            let mut held = self.held.lock().await;
            self.deliver(&mut held).await;
        }
    }

    /// Stores the questions that the handler has asked since the last change. A run that ends drops this future: what it asks then is
    /// stored with its end.
    async fn show_new(&self, held: &mut Held) {
        loop {
            let shown = std::mem::take(&mut *lock(&self.shown));
            if shown.is_empty() {
                return;
            }
            if apply(&mut held.record.clone(), &shown, Millis::now()) {
                let change = |record: &mut Record, now| {
                    apply(record, &shown, now);
                };
                self.change_held(held, Next::Held, change).await;
            }
        }
    }

    /// Hands answers over to the handler, once its journal has them in the store: the same change removes their questions.
    pub(super) async fn deliver(&self, held: &mut Held) {
        let Some(round) = self.round.get() else { return };
        // First: a question may have been dropped, and another asked under its key.
        self.show_new(held).await;
        let given = round.give(&held.record.responses());
        if given.is_empty() {
            return;
        }
        let settle = |record: &mut Record, now| record.settle(&given, now);
        if self.change_held(held, Next::Held, settle).await {
            round.settle(&given);
        }
    }
}

/// Shows questions in a record. Returns whether that changes it.
fn apply(record: &mut Record, shown: &[ShownQuestions], now: Millis) -> bool {
    let mut is_news = false;
    for ShownQuestions { asked, withdrawn, max_rounds } in shown {
        is_news |= record.show(asked.clone(), withdrawn, now);
        give_up(record, *max_rounds, now);
    }
    is_news
}
