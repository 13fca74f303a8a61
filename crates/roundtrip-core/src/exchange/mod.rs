//! The client's side of a call that takes several rounds (mrtr), as one state machine for every method.
//!
//! An [`Exchange`] knows what to send; the reply to it makes an [`Action`]: the result, questions to answer, or a pause.
//! The last two hold a [`Pending`], which is the whole state of a flow between two requests. It cannot become
//! an exchange again before every question in it is answered, and an answer is checked against its question first.
//! So a request that breaks the rules cannot be sent.
//!
//! A call that is answered with a task goes on in the same machine: its exchanges are `tasks/get` and, for answers,
//! `tasks/update`, and a [`Task`] is its state while there is nothing to answer. In SEP-2322's dialect ([`TaskDialect`]) they are
//! `tasks/get`, `tasks/result` for what the status brings along, and `tasks/input_response`.
//!
//! Nothing here waits, sends or asks: the caller does, and passes in how long it took.

mod answer;
mod dialect;
mod flow;
mod limits;
mod machine;
mod params;
mod pending;
mod question;
mod state;
mod task;
mod task_request;
mod task_state;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Misfit};
pub use dialect::TaskDialect;
pub use limits::FlowLimits;
pub use machine::{Action, Exchange};
pub use params::Params;
pub use pending::Pending;
pub use question::{Kind, PendingQuestion};
pub use state::RequestState;
pub use task::Task;
