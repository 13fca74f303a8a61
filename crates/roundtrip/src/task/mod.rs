//! Tasks: calls that outlive their request, and the stores that keep them.
//!
//! A task is the journal of a flow kept in a [`TaskStore`] in place of `requestState`. Its handler parks, replays and asks as in
//! rounds; between two runs the store has everything, so that any worker can carry on, and a worker that dies is replaced.
//!
//! This module has the lifecycle and the contract of a store. It runs no handlers: `server` does.

mod answerer;
mod call;
mod ended;
mod forward;
mod id;
mod memory;
mod orphan;
mod parts;
mod record;
mod rows;
mod store;
#[cfg(test)]
mod stored_by_name;
mod time;
mod view;

pub use id::{TaskId, TaskOwner};
pub use memory::MemoryTasks;
pub use rows::{
    AdoptedTask, ChangedTask, Chunk, Due, ExpiredTask, NewTask, OrphanTask, StoredTask, StoredView,
    TakeRequest, TakenTask, TaskChange, TaskKey, TaskWork, Waiting,
};
pub use store::{LeaseRenewer, TaskAnswer, TaskChanges, TaskStore, TaskStoreError};
pub use time::Millis;

pub(crate) use call::{TaskCall, TaskRights};
pub(crate) use ended::Ended;
pub(crate) use id::{task_kind, task_service};
pub(crate) use parts::split as split_parts;
pub(crate) use record::Record;
pub(crate) use store::TaskStoreHandle;
pub(crate) use view::{SHORTEST_POLL, left_for, written_task};
