//! Questions of a task that are shown while its handler runs on: beside a step, a look of `until` or a resolver.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use roundtrip_core::round::Pin;
use roundtrip_core::wire::Raw;

use super::{Inner, RoundState, wake_all};
use crate::server::round::keeper::ShownQuestions;

impl Inner {
    /// Takes a question back that no future waits for. An answer that is not stored yet does not count.
    pub(super) fn withdraw_shown(&mut self, key: &str) {
        self.shown.keys.remove(key);
        self.shown.opened.retain(|(opened, _)| opened != key);
        if self.shown.given.remove(key) {
            self.journal.forget(key);
        }
        self.shown.withdrawn.push(Cow::Owned(key.to_owned()));
    }
}

impl Inner {
    /// Removes answers that are not stored yet, at the end of a round: its task has them with their questions.
    pub(super) fn forget_given(&mut self) {
        for key in std::mem::take(&mut self.shown.given) {
            self.journal.forget(&key);
        }
    }
}

impl RoundState {
    /// Shows new questions of a task whose handler runs on, and takes back those that were dropped.
    pub(crate) fn show(&self, max_rounds: u32) {
        let Some(keeper) = self.keeper() else { return };
        let mut inner = self.lock();
        if inner.closed || inner.misuse.is_some() {
            return;
        }
        let Inner { asked, shown, .. } = &mut *inner;
        let new = asked.iter().filter(|asked| asked.waits && !shown.keys.contains(&asked.key));
        let new: Vec<_> = new.map(|asked| (asked.key.clone(), asked.pin, asked.request.clone())).collect();
        let withdrawn = std::mem::take(&mut shown.withdrawn);
        if new.is_empty() && withdrawn.is_empty() {
            return;
        }
        shown.keys.extend(new.iter().map(|(key, ..)| key.clone()));
        shown.opened.extend(new.iter().map(|(key, pin, _)| (key.clone(), *pin)));
        drop(inner);
        keeper.show(ShownQuestions { asked: new, withdrawn, max_rounds });
    }

    /// Encodes what has changed in the journal since the last piece, with the questions that are shown since.
    pub(super) fn next_piece_of_shown(&self) -> Option<Vec<u8>> {
        let mut inner = self.lock();
        let opened = std::mem::take(&mut inner.shown.opened);
        inner.journal.next_piece(opened.iter().map(|(key, pin)| (&**key, *pin)))
    }

    /// Adds answers to the journal for questions that are shown. The handler does not see them before [`Self::settle_shown`].
    pub(super) fn give_shown(&self, answers: &[(&str, &Raw)]) -> Vec<String> {
        let mut inner = self.lock();
        if inner.closed {
            return Vec::new();
        }
        let Inner { asked, shown, journal, .. } = &mut *inner;
        // An answer to a question that the task does not show yet cannot exist.
        let waiting = asked.iter().filter(|asked| asked.waits && shown.keys.contains(&asked.key));
        let pins: HashMap<&str, Pin> = waiting.map(|asked| (&*asked.key, asked.pin)).collect();
        let mut given = Vec::new();
        for (key, answer) in answers {
            let Some(pin) = pins.get(key) else { continue };
            if shown.given.insert((*key).to_owned()) {
                journal.give(key, *pin, answer.get());
            }
            given.push((*key).to_owned());
        }
        given
    }

    /// Lets the handler see the answers to these questions.
    pub(super) fn settle_shown(&self, keys: &[String]) {
        let mut inner = self.lock();
        let Inner { asked, shown, .. } = &mut *inner;
        let settled: HashSet<&str> =
            keys.iter().filter(|key| shown.given.remove(*key)).map(String::as_str).collect();
        shown.keys.retain(|key| !settled.contains(&**key));
        asked.retain(|asked| !settled.contains(&*asked.key));
        wake_all(inner);
    }
}
