//! The verdict: the promises, checked against the log and the results.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::amount_of;
use crate::notes::Note;

/// Steps of every job, in order.
const STEPS: [&str; 3] = ["first", "second", "third"];

/// Numbers that the log gives.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) steps: usize,
    /// Runs of a step after a worker was killed that had run it and had not stored its result.
    pub(crate) repeated: usize,
    /// Runs of a step whose worker lived, and had lost its lease.
    pub(crate) overtaken: usize,
    /// Broken promises, in words.
    pub(crate) wrong: Vec<String>,
}

/// Runs of one step, in order.
#[derive(Default)]
struct Runs<'a> {
    /// Notes of its effects.
    effects: Vec<&'a Note>,
    /// Results that the handler was given, and an effect that came after the first of them.
    given: BTreeSet<&'a str>,
    late: Option<&'a Note>,
}

/// Processes that were killed, and results of steps that were in the store when they were.
pub(crate) struct Killed<'a> {
    pub(crate) pids: &'a BTreeSet<u32>,
    pub(crate) stored: &'a BTreeSet<String>,
}

/// Compares the log with the results of all tasks, by their jobs.
pub(crate) fn judge(killed: &Killed<'_>, notes: &[Note], results: &BTreeMap<String, String>) -> Verdict {
    let mut steps: BTreeMap<(&str, &str), Runs<'_>> = BTreeMap::new();
    for note in notes {
        let runs = || (&*note.job, note.detail(0));
        match &*note.event {
            "effect" => {
                let runs = steps.entry(runs()).or_default();
                runs.late = runs.late.or((!runs.given.is_empty()).then_some(note));
                runs.effects.push(note);
            }
            "stored" => drop(steps.entry(runs()).or_default().given.insert(note.detail(1))),
            _ => {}
        }
    }
    let mut verdict = Verdict { steps: steps.len(), ..Verdict::default() };
    for ((job, key), runs) in &steps {
        verdict.step(killed, (job, key), runs);
    }
    for (job, result) in results {
        verdict.result(job, result, &steps);
    }
    verdict
}

impl Verdict {
    /// Judges a step: one idempotency key, one result, and nothing done again once that was stored (T17).
    fn step(&mut self, killed: &Killed<'_>, (job, key): (&str, &str), runs: &Runs<'_>) {
        let mut wrong = |what: &str| self.wrong.push(format!("{job} {key}: {what}"));
        if let Some(late) = runs.late {
            wrong(&format!("ran again after its result had been given: {late:?}"));
        }
        if runs.given.len() > 1 {
            wrong(&format!("several results: {:?}", runs.given));
        }
        let keys: BTreeSet<&str> = runs.effects.iter().map(|note| note.detail(2)).collect();
        if keys.len() > 1 {
            wrong(&format!("several idempotency keys: {keys:?}"));
        }
        let seen: BTreeSet<&str> = runs.effects.iter().map(|note| note.detail(3)).collect();
        if seen.len() > 1 {
            wrong(&format!("has seen several results of the steps before: {seen:?}"));
        }
        let Some((_, repeated)) = runs.effects.split_last() else { return };
        for earlier in repeated {
            if killed.stored.contains(earlier.detail(1)) {
                wrong(&format!("ran again after its result was in the store: {earlier:?}"));
            }
            if killed.pids.contains(&earlier.pid) {
                self.repeated += 1;
            } else {
                self.overtaken += 1;
            }
        }
    }

    /// Judges a result: the answers, and of each step the result of its last run.
    fn result(&mut self, job: &str, result: &str, steps: &BTreeMap<(&str, &str), Runs<'_>>) {
        let last = |key| steps.get(&(job, key)).and_then(|runs| runs.effects.last());
        let values = STEPS.map(|key| last(key).map_or("", |note| note.detail(1)));
        let expected = format!("{} true {}", amount_of(job), values.join(" "));
        if result != expected {
            self.wrong.push(format!("{job}: the result is `{result}`, not `{expected}`"));
        }
    }
}

/// Returns the verdict on a job of which these are the notes, without the job's name; worker 1 was killed when `stored` was.
fn verdict_on(notes: &[&str], stored: &[&str], result: &str) -> Verdict {
    let notes = notes.iter().map(|note| note.replacen(' ', " 0.1 ", 1));
    let notes: Vec<Note> = notes.map(|note| Note::parse(&note).expect("a note")).collect();
    let stored = stored.iter().map(|&value| value.to_owned()).collect();
    let killed = Killed { pids: &BTreeSet::from([1]), stored: &stored };
    judge(&killed, &notes, &BTreeMap::from([("0.1".to_owned(), result.to_owned())]))
}

const REST: [&str; 4] =
    ["2 effect second b kb a", "2 stored second b", "2 effect third c kc a,b", "2 stored third c"];

/// A step that was killed between effect and record runs again with its key, and nothing is wrong.
#[test]
fn a_step_that_was_not_stored_may_run_again() {
    let notes = ["1 effect first x ka -", "2 effect first a ka -", "2 stored first a"];
    let verdict = verdict_on(&[&notes[..], &REST].concat(), &[], "1 true a b c");
    assert_eq!((verdict.steps, verdict.repeated, verdict.overtaken), (3, 1, 0));
    assert!(verdict.wrong.is_empty(), "{verdict:?}");
}

/// The verdict finds every way in which a promise is broken.
#[test]
fn broken_promises_are_found() {
    let stored = ["1 effect first x ka -", "2 effect first a ka -", "2 stored first a"];
    let given = ["1 effect first x ka -", "1 stored first x", "2 effect first a ka -", "2 stored first a"];
    let keys = ["1 effect first x kx -", "2 effect first a ka -", "2 stored first a"];
    let right = "1 true a b c";
    for (notes, in_store, result, wrong) in [
        (&stored[..], &["x"][..], right, "after its result was in the store"),
        (&given, &[], right, "after its result had been given"),
        (&given, &[], right, "several results"),
        (&keys, &[], right, "several idempotency keys"),
        (&stored, &[], "1 true x b c", "the result is"),
        (&stored, &[], "2 true a b c", "the result is"),
        (&["1 effect second x kb z", "2 effect first a ka -"], &[], right, "has seen several results"),
    ] {
        let verdict = verdict_on(&[notes, &REST].concat(), in_store, result);
        assert!(verdict.wrong.iter().any(|found| found.contains(wrong)), "{wrong}: {verdict:?}");
    }
}
