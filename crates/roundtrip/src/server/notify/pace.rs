//! Pace of a call's progress: a burst, and then so many in a time (progress, "Behavior Requirements").

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use roundtrip_core::wire::ProgressNotificationParams;
use tokio::time::{Instant, Sleep, sleep_until};

/// Time between two reports of progress that are sent, once the burst is spent.
pub(super) const INTERVAL: Duration = Duration::from_millis(50);
/// Reports that are sent at once.
const BURST: u32 = 16;

/// The newest report that waits for its time, and that time. A call without progress has no timer.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Time at which the whole burst is there again.
    full: Option<Instant>,
    deferred: Option<ProgressNotificationParams>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    /// Returns whether a report may be sent now; otherwise keeps it, instead of an earlier one.
    pub(super) fn admits(&mut self, params: &ProgressNotificationParams) -> bool {
        let now = Instant::now();
        let full = self.full.map_or(now, |full| full.max(now));
        if full - now > INTERVAL * (BURST - 1) {
            self.deferred = Some(params.clone());
            return false;
        }
        self.full = Some(full + INTERVAL);
        self.deferred = None;
        true
    }

    /// Takes the report that waits, whether or not its time has come.
    pub(super) fn take(&mut self) -> Option<ProgressNotificationParams> {
        self.timer = None;
        self.deferred.take()
    }

    /// Polls for the report that waits, until its time has come.
    pub(super) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<ProgressNotificationParams> {
        let (Some(full), true) = (self.full, self.deferred.is_some()) else { return Poll::Pending };
        let due = full - INTERVAL * (BURST - 1);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.full = Some(full + INTERVAL);
        self.take().map_or(Poll::Pending, Poll::Ready)
    }
}
