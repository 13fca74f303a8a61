//! The pauser: stops workers for longer than their leases, as a suspended machine does, and wakes them.

use std::sync::Arc;
use std::time::Duration;

use crate::fleet::Fleet;
use crate::killer::wait_for;

/// Longest time from a worker's note to the pause: a change is on its way to the store, or back.
const AFTER_NOTE: Duration = Duration::from_millis(60);

/// Stops a worker for up to two leases, this many times. Returns how many were woken; the others were killed meanwhile.
pub(crate) async fn pause(fleet: Arc<Fleet>, pauses: usize) -> usize {
    let mut woken = 0;
    while woken < pauses {
        let in_a_step = |note: &str| matches!(note, "before" | "inside" | "effect" | "asking");
        let found = wait_for(&fleet, |note| in_a_step(&note.event).then_some(())).await;
        let Some((target, ())) = found else { continue };
        fleet.chance.moment(AFTER_NOTE).await;
        if !fleet.stop(target.pid) {
            continue;
        }
        tokio::time::sleep(fleet.lease).await;
        fleet.chance.moment(fleet.lease).await;
        woken += usize::from(fleet.wake(target.pid));
        // The others catch up, so that tasks end meanwhile.
        fleet.chance.moment(fleet.lease).await;
    }
    woken
}
