//! The verdict: the promises, checked against the log and the results.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::{NO_JOB, amount_of};
use crate::jobs::{Role, runners};
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
    /// Effects of workers that had begun a step before it was stored, and were stopped in it.
    pub(crate) woken: usize,
    /// Broken promises, in words.
    pub(crate) wrong: Vec<String>,
}

/// Runs of one step, in order. Numbers are those of lines of the log.
#[derive(Default)]
struct Runs<'a> {
    begun: Vec<(usize, &'a Note)>,
    effects: Vec<(usize, &'a Note)>,
    /// Results that the handler was given.
    given: BTreeSet<&'a str>,
    /// Line that says so first.
    first_given: Option<usize>,
}

/// Ends and pauses of processes, by the log.
#[derive(Default)]
struct Processes {
    /// Line of each process's end.
    killed: BTreeMap<u32, usize>,
    /// First and last lines of pauses.
    pauses: Vec<(usize, usize)>,
}

impl Processes {
    fn read(notes: &[Note]) -> Self {
        let mut processes = Self::default();
        let mut stopped = None;
        for (line, note) in notes.iter().enumerate().filter(|(_, note)| note.job == NO_JOB) {
            match &*note.event {
                "killed" => drop(processes.killed.insert(note.pid, line)),
                "stopped" => stopped = Some(line),
                _ => processes.pauses.extend(stopped.take().map(|from| (from, line))),
            }
        }
        processes.pauses.extend(stopped.map(|from| (from, notes.len())));
        processes
    }

    /// Returns whether a process was stopped between two lines: leases may have expired, since it may have held a lock.
    fn paused_between(&self, from: usize, to: usize) -> bool {
        self.pauses.iter().any(|(first, last)| *first < to && *last > from)
    }
}

/// Compares the log with the results of all tasks, by their jobs. `stored` are results of steps that were in the store when the
/// worker of their task had been killed.
pub(crate) fn judge(
    stored: &BTreeSet<String>,
    notes: &[Note],
    results: &BTreeMap<String, String>,
) -> Verdict {
    let processes = Processes::read(notes);
    let mut steps: BTreeMap<(&str, &str), Runs<'_>> = BTreeMap::new();
    let mut verdict = Verdict::default();
    for (line, note) in notes.iter().enumerate().filter(|(_, note)| note.job != NO_JOB) {
        if note.event == "run" {
            verdict.run(note);
        }
        if !matches!(&*note.event, "inside" | "effect" | "stored") {
            continue;
        }
        let runs = steps.entry((&*note.job, note.detail(0))).or_default();
        match &*note.event {
            "inside" => runs.begun.push((line, note)),
            "effect" => runs.effects.push((line, note)),
            _ => {
                runs.given.insert(note.detail(1));
                runs.first_given = runs.first_given.or(Some(line));
            }
        }
    }
    verdict.steps = steps.len();
    for (step, runs) in &steps {
        verdict.step(stored, &processes, *step, runs);
    }
    for (job, result) in results {
        verdict.result(job, result, &steps);
    }
    verdict
}

impl Verdict {
    /// Judges who runs a handler: a process of the task's service, whose release can (T16).
    fn run(&mut self, note: &Note) {
        let role = Role::parse(note.detail(0));
        if !role.is_some_and(|role| runners(&note.job).contains(&role)) {
            self.wrong.push(format!("{}: runs in a process of another kind: {note:?}", note.job));
        }
    }

    /// Judges a step: one idempotency key, one result, and nothing begun again once that was stored (T17).
    fn step(
        &mut self,
        stored: &BTreeSet<String>,
        processes: &Processes,
        (job, key): (&str, &str),
        runs: &Runs<'_>,
    ) {
        let mut wrong = |what: &str| self.wrong.push(format!("{job} {key}: {what}"));
        let begun_after = |line: usize| runs.begun.iter().find(|(begun, _)| *begun > line);
        if let Some((_, late)) = runs.first_given.and_then(begun_after) {
            wrong(&format!("ran again after its result had been given: {late:?}"));
        }
        if runs.given.len() > 1 {
            wrong(&format!("several results: {:?}", runs.given));
        }
        let keys: BTreeSet<&str> = runs.effects.iter().map(|(_, note)| note.detail(2)).collect();
        if keys.len() > 1 {
            wrong(&format!("several idempotency keys: {keys:?}"));
        }
        let seen: BTreeSet<&str> = runs.effects.iter().map(|(_, note)| note.detail(3)).collect();
        if seen.len() > 1 {
            wrong(&format!("has seen several results of the steps before: {seen:?}"));
        }
        for (line, effect) in &runs.effects {
            let killed = processes.killed.get(&effect.pid).copied();
            let again = begun_after(*line);
            if stored.contains(effect.detail(1)) && killed.and_then(begun_after).is_some() {
                wrong(&format!("ran again after its result was in the store: {effect:?}"));
            }
            match (again, killed) {
                (None, _) => {}
                (Some(_), Some(_)) => self.repeated += 1,
                (Some((again, _)), None) => {
                    self.overtaken += 1;
                    let begun =
                        runs.begun.iter().rfind(|(begun, note)| begun < line && note.pid == effect.pid);
                    let begun = begun.map_or(*line, |(begun, _)| *begun);
                    if !processes.paused_between(begun, *again) {
                        wrong(&format!("ran again while its worker lived: {effect:?}"));
                    }
                }
            }
        }
        let is_late = |line: usize| runs.first_given.is_some_and(|given| given < line);
        self.woken += runs.effects.iter().filter(|(line, _)| is_late(*line)).count();
    }

    /// Judges a result: the answers, and of each step the result that its handler was given.
    fn result(&mut self, job: &str, result: &str, steps: &BTreeMap<(&str, &str), Runs<'_>>) {
        let given = |key| steps.get(&(job, key)).and_then(|runs| runs.given.first().copied());
        let values = STEPS.map(|key| given(key).unwrap_or_default());
        let expected = format!("{} true {}", amount_of(job), values.join(" "));
        if result != expected {
            self.wrong.push(format!("{job}: the result is `{result}`, not `{expected}`"));
        }
    }
}

/// Returns the verdict on a job of which these are the notes, without the job's name unless they are about a process.
fn verdict_on(notes: &[&str], stored: &[&str], result: &str) -> Verdict {
    let job =
        |note: &&str| if note.contains(" - ") { (*note).to_owned() } else { note.replacen(' ', " 0.1 ", 1) };
    let notes: Vec<Note> = notes.iter().map(|note| Note::parse(&job(note)).expect("a note")).collect();
    let stored = stored.iter().map(|&value| value.to_owned()).collect();
    judge(&stored, &notes, &BTreeMap::from([("0.1".to_owned(), result.to_owned())]))
}

const REST: [&str; 6] = [
    "2 inside second",
    "2 effect second b kb a",
    "2 stored second b",
    "2 inside third",
    "2 effect third c kc a,b",
    "2 stored third c",
];

/// A step that was killed between effect and record runs again with its key, and nothing is wrong.
#[test]
fn a_step_that_was_not_stored_may_run_again() {
    let notes = [
        "1 run old",
        "1 inside first",
        "1 effect first x ka .",
        "1 - killed",
        "2 inside first",
        "2 effect first a ka .",
        "2 stored first a",
    ];
    let verdict = verdict_on(&[&notes[..], &REST].concat(), &[], "1 true a b c");
    assert_eq!((verdict.steps, verdict.repeated, verdict.overtaken, verdict.woken), (3, 1, 0, 0));
    assert!(verdict.wrong.is_empty(), "{verdict:?}");
}

/// A worker that was stopped in a step ends it when it wakes, and nothing is wrong.
#[test]
fn a_step_that_had_begun_may_end_late() {
    let notes = [
        "1 inside first",
        "1 - stopped",
        "2 inside first",
        "2 effect first a ka .",
        "2 stored first a",
        "1 - woken",
        "1 effect first x ka .",
    ];
    let verdict = verdict_on(&[&notes[..], &REST].concat(), &[], "1 true a b c");
    assert_eq!((verdict.repeated, verdict.overtaken, verdict.woken), (0, 0, 1));
    assert!(verdict.wrong.is_empty(), "{verdict:?}");
}

/// The verdict finds every way in which a promise is broken.
#[test]
fn broken_promises_are_found() {
    let killed = [
        "1 inside first",
        "1 effect first x ka .",
        "1 - killed",
        "2 inside first",
        "2 effect first a ka .",
        "2 stored first a",
    ];
    let given = [
        "1 inside first",
        "1 effect first x ka .",
        "1 stored first x",
        "2 inside first",
        "2 effect first a ka .",
        "2 stored first a",
    ];
    let alive = ["1 inside first", "1 effect first x ka .", "2 inside first", "2 effect first a ka ."];
    let keys = ["1 effect first x kx .", "2 effect first a ka .", "2 stored first a"];
    let right = "1 true a b c";
    for (notes, in_store, result, wrong) in [
        (&killed[..], &["x"][..], right, "after its result was in the store"),
        (&given, &[], right, "after its result had been given"),
        (&given, &[], right, "several results"),
        (&alive, &[], right, "while its worker lived"),
        (&keys, &[], right, "several idempotency keys"),
        (&killed, &[], "1 true x b c", "the result is"),
        (&killed, &[], "2 true a b c", "the result is"),
        (&["1 effect second x kb z", "2 effect first a ka ."], &[], right, "has seen several results"),
        (&["1 run other"], &[], right, "in a process of another kind"),
        (&["1 run nobody"], &[], right, "in a process of another kind"),
    ] {
        let verdict = verdict_on(&[notes, &REST].concat(), in_store, result);
        assert!(verdict.wrong.iter().any(|found| found.contains(wrong)), "{wrong}: {verdict:?}");
    }
}
