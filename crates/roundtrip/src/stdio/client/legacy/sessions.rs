//! Children of a link that have sessions.

use crate::stdio::client::child::Child;

/// Sessions with the children of a link.
#[derive(Default)]
pub(in crate::stdio::client) struct Sessions {
    /// Life of the child that has the latest session.
    pub(super) latest: Option<u64>,
    /// Children whose session is not the latest. They end with it.
    pub(in crate::stdio::client) retired: Vec<Child>,
}
