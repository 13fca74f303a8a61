//! Questions of a task: shown, answered, settled and dropped.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use roundtrip_core::round::{Pin, fits};
use roundtrip_core::wire::{ErrorObject, InputRequest, Raw, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Record;
use crate::task::Millis;
use crate::task::ended::Ended;

/// Largest answers that wait for a handler, in bytes.
const LARGEST_ANSWERS: usize = 4 * 1024 * 1024;

/// Open question of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OpenQuestion {
    /// Its key for the client: no two requests of a task share one.
    pub(super) wire: String,
    /// Its key for the handler.
    key: String,
    /// Pin of the question in its journal. Records of the release before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pin: Option<[u8; Pin::LEN]>,
    pub(super) request: InputRequest,
}

impl OpenQuestion {
    /// Returns whether this is the question that a handler asks. The text of its request may tell what was wrong with an answer, which a
    /// replay does not.
    fn is(&self, pin: Pin, request: &InputRequest) -> bool {
        match &self.pin {
            Some(own) => own == pin.as_bytes(),
            None => self.request == *request,
        }
    }
}

/// Question that the handler asks, under its own key.
pub(crate) type NewQuestion = (Cow<'static, str>, Pin, InputRequest);

impl Record {
    /// Takes a client's answers. Those to questions that are not open are ignored, and so is a second one (T4). Returns whether
    /// any counts.
    ///
    /// # Errors
    /// -32602 if they are larger, with those that wait, than a task may remember.
    pub(crate) fn answer(
        &mut self,
        responses: &[(Cow<'_, str>, &RawValue)],
        now: Millis,
    ) -> Result<bool, ErrorObject> {
        // A client may send as many as fit into a message, and a handler may ask for every entry of a list.
        let open: HashSet<&str> = self.questions.iter().map(|question| &*question.wire).collect();
        let mut any = false;
        for (wire, answer) in responses.iter().filter(|(wire, _)| open.contains(&**wire)) {
            if let Entry::Vacant(place) = self.answers.entry(wire.to_string()) {
                place.insert(Raw::from(*answer));
                any = true;
            }
        }
        let size: usize = self.answers.values().map(|answer| answer.get().len()).sum();
        if size > LARGEST_ANSWERS {
            return Err(ErrorObject::invalid_params(format!(
                "params.inputResponses: {size} bytes, and a task may remember {LARGEST_ANSWERS}"
            )));
        }
        if any {
            self.updated = now;
            if self.status == TaskStatus::InputRequired {
                self.status = self.waiting_status();
            }
        }
        Ok(any)
    }

    /// Takes over what clients have changed in the stored record since it was read: answers, and the wish to cancel. Keys that are in
    /// use there are not used again: a change may be stored whose worker does not know it. Returns whether there are new answers.
    pub(crate) fn take_over(&mut self, stored: Self) -> bool {
        self.cancelled |= stored.cancelled;
        let before = self.answers.len();
        for (wire, answer) in stored.answers {
            if !self.spent.contains(&wire) {
                self.answers.entry(wire).or_insert(answer);
            }
        }
        let open: HashSet<&str> = self.questions.iter().map(|question| &*question.wire).collect();
        let used = stored.questions.into_iter().map(|question| question.wire).chain(stored.spent);
        let used: Vec<String> = used.filter(|wire| !open.contains(&**wire)).collect();
        self.spent.extend(used);
        self.answers.len() > before
    }

    /// Returns the status of a task that has not ended: it asks as long as a question has no answer that fits (T23).
    pub(super) fn waiting_status(&self) -> TaskStatus {
        let answered = |question: &OpenQuestion| {
            let own = self.answers.get(&question.wire);
            own.is_some_and(|answer| fits(&question.request, answer.get()))
        };
        if self.questions.iter().all(answered) { TaskStatus::Working } else { TaskStatus::InputRequired }
    }

    /// Returns the answers for the handler as `inputResponses`, under the keys it asked with.
    pub(crate) fn responses(&self) -> Vec<(&str, &Raw)> {
        let answered = |question: &OpenQuestion| self.answers.get(&question.wire);
        self.questions.iter().filter_map(|asked| Some((&*asked.key, answered(asked)?))).collect()
    }

    /// Begins a run with the answers there are: they are used up, whether or not they fit. Returns whether processes have left it
    /// to others before.
    pub(crate) fn begin(&mut self) -> bool {
        let answered = std::mem::take(&mut self.answers);
        self.questions.retain(|question| !answered.contains_key(&question.wire));
        self.has_advanced = !answered.is_empty();
        self.spent.extend(answered.into_keys());
        self.left.take().is_some()
    }

    /// Ends a run with the questions of its handler. Questions that are not asked any more are dropped. A task that was cancelled
    /// meanwhile ends here: there is no worker to do so later.
    pub(crate) fn park(&mut self, asked: Vec<NewQuestion>, stateful: bool, waits: bool, now: Millis) {
        if self.cancelled {
            return self.end(&Ended::Cancelled, now);
        }
        self.stateful = stateful;
        self.rounds = self.rounds.saturating_add(1);
        self.updated = now;
        let keys: HashSet<&str> = asked.iter().map(|(key, ..)| &**key).collect();
        self.drop_questions(|question| !keys.contains(&*question.key));
        self.ask(asked);
        self.idle = if self.has_advanced || waits { 0 } else { self.idle.saturating_add(1) };
        self.has_advanced = false;
        self.status = self.waiting_status();
    }

    /// Shows questions of a handler that runs on, and takes back those that it does not wait for any more. Questions of earlier
    /// runs that it has not come to yet stay. Returns whether anything has changed.
    pub(crate) fn show(
        &mut self,
        asked: Vec<NewQuestion>,
        withdrawn: &[Cow<'static, str>],
        now: Millis,
    ) -> bool {
        if self.cancelled || self.has_ended() {
            return false;
        }
        let withdrawn: HashSet<&str> = withdrawn.iter().map(|key| &**key).collect();
        let has_dropped = self.drop_questions(|question| withdrawn.contains(&*question.key));
        let has_asked = self.ask(asked);
        if has_dropped || has_asked {
            self.updated = now;
        }
        self.status = self.waiting_status();
        has_dropped || has_asked
    }

    /// Removes questions whose answers the handler's journal has.
    pub(crate) fn settle(&mut self, keys: &[String], now: Millis) {
        let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
        let answered: HashSet<String> = self.answers.keys().cloned().collect();
        self.drop_questions(|question| keys.contains(&*question.key) && answered.contains(&question.wire));
        (self.has_advanced, self.updated) = (true, now);
        self.status = self.waiting_status();
    }

    /// Returns the reason to give the task up: it has asked, or run, too often without coming to an end (M21).
    pub(crate) fn diverges(&self, most: u32) -> Option<String> {
        if self.batches > most {
            return Some(format!("this call has asked {most} times without coming to an end"));
        }
        (self.idle > most).then(|| format!("this call has run {most} times without coming to an end"))
    }

    /// Opens questions. A question that is open as it is keeps its key; any other gets a key that was never used in this task.
    /// Returns whether any is new.
    fn ask(&mut self, asked: Vec<NewQuestion>) -> bool {
        let mut used = std::mem::take(&mut self.spent);
        used.extend(self.questions.iter().map(|question| question.wire.clone()));
        let mut before: Vec<_> = self.questions.drain(..).map(Some).collect();
        let places = before.iter().enumerate();
        let places: HashMap<String, usize> =
            places.filter_map(|(place, open)| Some((open.as_ref()?.key.clone(), place))).collect();
        let (mut any_new, mut questions) = (false, Vec::with_capacity(asked.len()));
        for (key, pin, request) in asked {
            let open = places.get(&*key).and_then(|place| before[*place].take());
            questions.push(open.filter(|question| question.is(pin, &request)).unwrap_or_else(|| {
                let wire = new_key(&key, &used);
                used.insert(wire.clone());
                any_new = true;
                OpenQuestion { wire, key: key.into_owned(), pin: Some(*pin.as_bytes()), request }
            }));
        }
        self.questions = before.into_iter().flatten().chain(questions).collect();
        let open: HashSet<&str> = self.questions.iter().map(|question| &*question.wire).collect();
        self.answers.retain(|wire, _| open.contains(&**wire));
        used.retain(|wire| !open.contains(&**wire));
        self.spent = used;
        if any_new {
            self.batches = self.batches.saturating_add(1);
            self.has_advanced = true;
        }
        any_new
    }

    /// Drops questions: their keys are spent. Returns whether there were any.
    fn drop_questions(&mut self, is_dropped: impl Fn(&OpenQuestion) -> bool) -> bool {
        let before = self.questions.len();
        let (answers, spent) = (&mut self.answers, &mut self.spent);
        self.questions.retain(|question| {
            let is_dropped = is_dropped(question);
            if is_dropped {
                answers.remove(&question.wire);
                spent.insert(question.wire.clone());
            }
            !is_dropped
        });
        self.questions.len() < before
    }
}

/// Returns a key for the client that no request of the task has had: `party`, then `party~2`.
fn new_key(key: &str, used: &BTreeSet<String>) -> String {
    if !used.contains(key) {
        return key.to_owned();
    }
    (2u32..).map(|n| format!("{key}~{n}")).find(|wire| !used.contains(wire)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use roundtrip_core::round::Question;
    use roundtrip_core::seal::FlowId;

    fn question(key: &'static str) -> NewQuestion {
        (key.into(), Pin::from_bytes([1; Pin::LEN]), Question::roots(key).to_request(None))
    }

    fn record() -> Record {
        Record::new("tool".to_owned(), FlowId::new([1; 16]), Millis(1), None)
    }

    fn wires(record: &Record) -> Vec<&str> {
        record.questions.iter().map(|question| &*question.wire).collect()
    }

    /// M21: batches of questions are counted, and, apart, runs in a row that neither show nor settle anything, nor wait.
    #[test]
    fn runs_that_come_to_nothing_are_counted() {
        let mut record = record();
        for number in 0..4 {
            assert!(record.diverges(3).is_none(), "{number}");
            record.park(vec![question("a")], false, false, Millis(1));
        }
        assert!(record.diverges(3).is_none(), "the first has shown something");
        record.park(vec![question("a")], false, true, Millis(1));
        for _ in 0..3 {
            record.park(vec![question("a")], false, false, Millis(1));
        }
        assert!(record.diverges(3).is_none(), "a run that waits begins anew");
        record.park(vec![question("a")], false, false, Millis(1));
        assert_eq!(record.diverges(3).as_deref(), Some("this call has run 3 times without coming to an end"));
        for key in ["b", "c", "d"] {
            record.show(vec![question(key)], &[], Millis(1));
        }
        assert_eq!(
            record.diverges(3).as_deref(),
            Some("this call has asked 3 times without coming to an end")
        );
    }

    /// T4: a question of an earlier run stays while the handler has not come to it, under the key it has; one that is dropped leaves
    /// its key spent.
    #[test]
    fn questions_of_an_earlier_run_stay_until_the_handler_has_come_to_them() {
        let mut record = record();
        assert!(record.show(vec![question("a"), question("b")], &[], Millis(1)));
        // A worker that was killed: the next one begins again.
        record.begin();
        assert!(!record.show(vec![question("b")], &[], Millis(1)), "nothing new");
        assert_eq!(wires(&record), ["a", "b"]);
        assert!(record.show(Vec::new(), &["b".into()], Millis(1)));
        assert!(record.show(vec![question("b")], &[], Millis(1)));
        assert_eq!(wires(&record), ["a", "b~2"]);
        record.park(vec![question("b")], false, false, Millis(1));
        assert_eq!(wires(&record), ["b~2"]);
        assert_eq!(record.status, TaskStatus::InputRequired);
    }

    /// T4: a question that was asked again with what was wrong keeps its key when a replay asks it without.
    #[test]
    fn a_question_with_a_hint_keeps_its_key() {
        let mut record = record();
        let (key, pin, _) = question("a");
        let ask =
            |hint| (key.clone(), pin, Question::url("a", "Visit?", "https://a.example").to_request(hint));
        record.show(vec![ask(Some("too long"))], &[], Millis(1));
        let hinted = record.questions[0].request.clone();
        assert!(!record.show(vec![ask(None)], &[], Millis(1)), "the same question");
        assert!(record.questions[0].request == hinted && wires(&record) == ["a"]);
        let (_, _, other) = question("a");
        assert!(record.show(vec![(key.clone(), Pin::from_bytes([2; Pin::LEN]), other)], &[], Millis(1)));
        assert_eq!(wires(&record), ["a~2"]);
    }

    /// T4: keys that a stored change has used are not used again, though the worker does not know of that change.
    #[test]
    fn keys_of_a_change_that_was_stored_unnoticed_are_spent() {
        let mut record = record();
        let mut stored = record.clone();
        stored.show(vec![question("a")], &[], Millis(1));
        let raw = RawValue::from_string("{}".to_owned()).unwrap();
        assert!(stored.answer(&[("a".into(), &raw)], Millis(1)).unwrap());
        assert!(record.take_over(stored.clone()), "an answer");
        assert!(!record.take_over(stored));
        record.park(vec![question("a")], false, false, Millis(1));
        assert_eq!((wires(&record), record.responses().len()), (vec!["a~2"], 0));
    }
}
