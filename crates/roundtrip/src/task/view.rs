//! [`View`]: the bytes of a stored task that clients are answered from.

use std::time::Duration;

use super::Millis;

/// Bounds of the time between two `tasks/get`: the longer nothing has changed, the longer.
const POLL: (Duration, Duration) = (Duration::from_millis(SHORTEST_POLL), Duration::from_secs(5));
/// The shorter of them, in milliseconds: that of the examples in SEP-2322.
pub(crate) const SHORTEST_POLL: u64 = 100;

/// The view of a stored task.
pub(super) struct View<'a> {
    /// Time of its last change.
    pub(super) updated: Millis,
    /// Name of its tool.
    pub(super) tool: &'a [u8],
    /// The task, as JSON.
    pub(super) task: &'a [u8],
}

impl<'a> View<'a> {
    /// Splits the bytes of a view.
    pub(super) fn split(view: &'a [u8]) -> Self {
        let (updated, rest) = view.split_first_chunk().unwrap_or((&[0; 8], view));
        let (tool, task) = split(rest);
        Self { updated: Millis(u64::from_be_bytes(*updated)), tool, task }
    }

    /// Returns the time after which it is worth another look, in milliseconds.
    pub(super) fn poll_interval(&self, now: Millis) -> u64 {
        let interval = (now.since(self.updated) / 4).clamp(POLL.0, POLL.1);
        u64::try_from(interval.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the bytes of the view.
    pub(super) fn joined(&self) -> Vec<u8> {
        let mut view = Vec::with_capacity(16 + self.tool.len() + self.task.len());
        view.extend_from_slice(&self.updated.0.to_be_bytes());
        prefixed(&mut view, self.tool);
        view.extend_from_slice(self.task);
        view
    }
}

/// Appends bytes behind their length.
pub(super) fn prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Splits bytes that begin with a length.
pub(super) fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return (&[], &[]) };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    rest.split_at_checked(length).unwrap_or((rest, &[]))
}
