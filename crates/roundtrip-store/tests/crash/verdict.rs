//! The verdict: what the log and the results say about the promises.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::{Fleet, amount_of};
use crate::killer::Kills;
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
    /// Wrong things, in words.
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

/// Compares the log with the results of all tasks, by their jobs.
pub(crate) fn judge(
    fleet: &Fleet,
    kills: &Kills,
    notes: &[Note],
    results: &BTreeMap<String, String>,
) -> Verdict {
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
        verdict.step(fleet, kills, (job, key), runs);
    }
    for (job, result) in results {
        verdict.result(job, result, &steps);
    }
    verdict
}

impl Verdict {
    /// Judges a step: one idempotency key, one result, and nothing done again once that was stored (T17).
    fn step(&mut self, fleet: &Fleet, kills: &Kills, (job, key): (&str, &str), runs: &Runs<'_>) {
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
            if kills.stored.contains(earlier.detail(1)) {
                wrong(&format!("ran again after its result was in the store: {earlier:?}"));
            }
            if fleet.was_killed(earlier.pid) {
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
