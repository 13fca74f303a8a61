//! The killer: picks a moment in the life of a task, and kills the process that has its lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use roundtrip::task::{Millis, TaskStore, TaskWork};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::fleet::Fleet;
use crate::jobs::{self, Role, key_of};
use crate::notes::{self, Note};

/// Part of a task's life in which its worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Before,
    Inside,
    Between,
    Question,
    /// Inside a step, while a question is shown.
    Beside,
    Promotion,
    /// After the record of a step and before the handler knows, or after the last step.
    Elsewhere,
}

/// Phases that are aimed at.
pub(crate) const AIMS: [Phase; 6] =
    [Phase::Before, Phase::Inside, Phase::Between, Phase::Question, Phase::Beside, Phase::Promotion];

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Before => "before a step",
            Self::Inside => "inside a step",
            Self::Between => "between effect and record",
            Self::Question => "at a question",
            Self::Beside => "in a step beside a question",
            Self::Promotion => "during promotion",
            Self::Elsewhere => "after a record, or at the end",
        }
    }

    /// Returns whether the phase of a task begins with a note, and how long the killer waits at most from there.
    fn begins(self, note: &Note) -> Option<Duration> {
        let (event, longest) = match self {
            Self::Before => ("before", 20),
            Self::Inside => ("inside", 20),
            Self::Between => ("effect", 20),
            // The database is on its way already, and takes its own time.
            Self::Question => ("asking", 2),
            // The question is stored meanwhile, or its answer.
            Self::Beside => ("inside", 200),
            Self::Promotion => ("leased", 10),
            Self::Elsewhere => return None,
        };
        let fits = match self {
            Self::Promotion => is_promoted(note),
            Self::Beside => is_beside(note),
            _ => true,
        };
        (note.event == event && fits).then_some(Duration::from_millis(longest))
    }

    /// Returns the phase in which a worker left a task, by its last note on it and by what is stored.
    fn at(last: &Note, stored: &TaskWork) -> Self {
        match &*last.event {
            "before" | "run" | "answered" | "detached" => Self::Before,
            "inside" if is_beside(last) => Self::Beside,
            "inside" => Self::Inside,
            "effect" if has(stored, last.detail(1)) => Self::Elsewhere,
            "effect" => Self::Between,
            "asking" => Self::Question,
            "creating" | "leased" if is_promoted(last) => Self::Promotion,
            "creating" | "leased" => Self::Before,
            _ => Self::Elsewhere,
        }
    }
}

/// Returns whether a note is of a step beside which its task asks.
fn is_beside(note: &Note) -> bool {
    jobs::tool_of(&note.job) == "busy" && note.detail(0) == "second"
}

/// Returns whether a lease is the first of a call that became a task while it ran.
fn is_promoted(lease: &Note) -> bool {
    lease.detail(1) == "1" && jobs::is_promoted(&lease.job)
}

/// Returns whether the result of a step, a text that no other step has, is among what is stored of a task.
fn has(stored: &TaskWork, value: &str) -> bool {
    let has = |piece: &bytes::Bytes| piece.windows(value.len()).any(|bytes| bytes == value.as_bytes());
    stored.journal.iter().any(has)
}

/// Kills of a test.
#[derive(Debug, Default)]
pub(crate) struct Kills {
    /// Those that hit a lease holder, by the phase of one of its tasks: the one aimed at, if it was still held.
    pub(crate) phases: BTreeMap<Phase, usize>,
    /// Those that hit none.
    pub(crate) missed: usize,
    /// Leases that ended with their holders.
    pub(crate) leases: usize,
    /// Results of steps that were in the store when the worker of their task had been killed.
    pub(crate) stored: BTreeSet<String>,
}

impl Kills {
    pub(crate) fn counted(&self) -> usize {
        self.phases.values().sum()
    }

    pub(crate) fn of(&self, phase: Phase) -> usize {
        self.phases.get(&phase).copied().unwrap_or_default()
    }

    fn is_enough(&self, kills: usize) -> bool {
        self.counted() >= kills && AIMS.iter().all(|phase| self.of(*phase) > 0)
    }
}

/// Kills workers until enough kills have counted, and tells how many have.
pub(crate) async fn kill(
    fleet: Arc<Fleet>,
    store: Arc<dyn TaskStore>,
    kills: usize,
    told: &watch::Sender<usize>,
) -> Kills {
    let mut done = Kills::default();
    while !done.is_enough(kills) {
        // Not the last ones that serve: calls go on, too.
        for role in Role::ALL {
            let _ = fleet.client(&[role]).await;
        }
        let aim = aim(&fleet, &done);
        let Some((target, longest)) = wait_for(&fleet, |note| aim.begins(note)).await else { continue };
        fleet.chance.moment(longest).await;
        if fleet.kill(target.pid).await {
            look_at(&fleet, &*store, &target, &mut done).await;
        }
        told.send_replace(done.counted());
    }
    done
}

/// Chooses a phase: any, and every other time one that was hit least.
fn aim(fleet: &Fleet, done: &Kills) -> Phase {
    let least = AIMS.iter().map(|phase| done.of(*phase)).min().unwrap_or_default();
    let rare: Vec<Phase> = AIMS.into_iter().filter(|phase| done.of(*phase) == least).collect();
    if fleet.chance.below(2) == 0 {
        rare[fleet.chance.below(rare.len())]
    } else {
        AIMS[fleet.chance.below(AIMS.len())]
    }
}

/// Waits until a worker notes something that fits, and returns what fits; `None` if none does for a while.
pub(crate) async fn wait_for<T>(fleet: &Fleet, fits: impl Fn(&Note) -> Option<T>) -> Option<(Note, T)> {
    let mut notes = fleet.notes.subscribe();
    let begun = async {
        loop {
            if let Ok(note) = notes.recv().await
                && let Some(fitting) = fits(&note)
            {
                return (note, fitting);
            }
        }
    };
    timeout(Duration::from_secs(2), begun).await.ok()
}

/// Finds out what a worker had in hand when it died: its leases run on for a while, so that no other has it yet.
async fn look_at(fleet: &Fleet, store: &dyn TaskStore, target: &Note, done: &mut Kills) {
    let notes = notes::read(&fleet.log);
    let mut last: BTreeMap<&str, (&Note, Option<&Note>)> = BTreeMap::new();
    for note in notes.iter().filter(|note| note.pid == target.pid) {
        let entry = last.entry(&note.job).or_insert((note, None));
        entry.0 = note;
        if let "creating" | "leased" = &*note.event {
            entry.1 = Some(note);
        }
    }
    let mut hit = None;
    for (job, (last, lease)) in last {
        let Some(lease) = lease else { continue };
        let Some(stored) = held(store, lease).await else { continue };
        done.leases += 1;
        let effects = notes.iter().filter(|note| note.job == job && note.event == "effect");
        let values = effects.map(|note| note.detail(1)).filter(|value| has(&stored, value));
        done.stored.extend(values.map(str::to_owned));
        if hit.is_none() || job == target.job {
            hit = Some(Phase::at(last, &stored));
        }
    }
    match hit {
        Some(phase) => *done.phases.entry(phase).or_default() += 1,
        None => done.missed += 1,
    }
}

/// Returns what is stored of a task that has not ended, if it is still held under this lease.
async fn held(store: &dyn TaskStore, lease: &Note) -> Option<TaskWork> {
    let key = key_of(&lease.job, lease.detail(0));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_millis();
    let now = Millis(u64::try_from(now).expect("a time"));
    let stored = store.read(&key, now).await.expect("a store")?;
    let is_same = stored.fence > 0 && stored.fence.to_string() == lease.detail(1);
    if !is_same || !stored.is_held {
        return None;
    }
    store.load(&key).await.expect("a store")
}
