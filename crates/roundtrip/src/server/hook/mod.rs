//! Hooks and visibility rules: the author's code in front of handlers, the same on every transport.

mod around;
mod call_info;
mod scope;
mod viewer;

pub use around::Next;
pub use call_info::CallInfo;
pub use viewer::Viewer;

pub(crate) use around::Hook;
pub(crate) use call_info::{HeldRequest, Place};
pub(crate) use scope::Scope;
pub(crate) use viewer::{HeldViewer, revision};
