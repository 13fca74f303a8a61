//! Jobs of a crash test: the tool that does a job, and the processes that may.

use roundtrip::seal::Digest;
use roundtrip::task::{TaskId, TaskKey, TaskOwner};

/// Part of a worker process in the fleet. All of them share one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// An instance of the service `jobs`, of the release before.
    Old,
    /// An instance of the service `jobs` with other tools.
    New,
    /// An instance of another service, with tools of the same names.
    Other,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Old, Self::New, Self::Other];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
            Self::Other => "other",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Returns the name of the service, which is its audience too.
    pub(crate) fn service(self) -> &'static str {
        match self {
            Self::Old | Self::New => "jobs",
            Self::Other => "reports",
        }
    }
}

/// Tools of the jobs, in turn: one for each way in which a call becomes a task, and one for each way in which releases differ.
const TOOLS: [(&str, bool); 14] = [
    ("required", false),
    ("detached", false),
    ("slow", false),
    ("added", false),
    ("detached", false),
    ("slow", false),
    ("removed", false),
    ("changed", false),
    ("retyped", false),
    ("blocking", false),
    ("busy", false),
    ("busy", true),
    ("required", true),
    ("slow", true),
];

fn entry(job: &str) -> (&'static str, bool) {
    TOOLS[number_of(job) % TOOLS.len()]
}

/// Returns the tool that does a job, which the number in the job's name says.
pub(crate) fn tool_of(job: &str) -> &'static str {
    entry(job).0
}

/// Returns the number of a job, whose name is that and the number of the attempt at starting it.
pub(crate) fn number_of(job: &str) -> usize {
    parts(job).0
}

fn parts(job: &str) -> (usize, usize) {
    let parts = job.split_once('.');
    let parts = parts.and_then(|(number, attempt)| Some((number.parse().ok()?, attempt.parse().ok()?)));
    parts.expect("a job")
}

/// Returns the roles of processes at which a job may be started.
pub(crate) fn starters(job: &str) -> &'static [Role] {
    let (number, attempt) = parts(job);
    match entry(job) {
        (_, true) => &[Role::Other],
        ("added", _) => &[Role::New],
        ("removed", _) => &[Role::Old],
        ("changed", _) if (number / TOOLS.len() + attempt).is_multiple_of(2) => &[Role::New],
        ("changed", _) => &[Role::Old],
        _ => &[Role::Old, Role::New],
    }
}

/// Returns the roles of processes in which the handler of a job may run.
pub(crate) fn runners(job: &str) -> &'static [Role] {
    match (tool_of(job), starters(job)) {
        // The release before has no use for the argument that is new, and does not mind it.
        ("changed", [Role::New]) => &[Role::Old, Role::New],
        (_, starters) => starters,
    }
}

/// Returns the service that a job belongs to.
pub(crate) fn service_of(job: &str) -> &'static str {
    starters(job)[0].service()
}

/// Returns whether a job's call becomes a task while it runs.
pub(crate) fn is_promoted(job: &str) -> bool {
    matches!(tool_of(job), "detached" | "slow")
}

/// Returns the key of a job's task.
pub(crate) fn key_of(job: &str, id: &str) -> TaskKey {
    let service = Digest::of("task-service", &[service_of(job).as_bytes()]);
    TaskKey { service, owner: TaskOwner::new(None), id: TaskId::parse(id).expect("an id") }
}
