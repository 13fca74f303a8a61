//! Log messages that strangers cause: one a minute.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::lock::lock;

/// Shortest time between two messages.
const BETWEEN: Duration = Duration::from_secs(60);

/// Limit of one kind of log message.
#[derive(Debug, Default)]
pub(super) struct Sparse(Mutex<Written>);

#[derive(Debug, Default)]
struct Written {
    last: Option<Instant>,
    left_out: u64,
}

impl Sparse {
    /// Returns the number of messages that were left out since the last one, if the next may be written now.
    pub(super) fn due(&self) -> Option<u64> {
        let now = Instant::now();
        let mut written = lock(&self.0);
        if written.last.is_some_and(|last| now.duration_since(last) < BETWEEN) {
            written.left_out += 1;
            return None;
        }
        written.last = Some(now);
        Some(std::mem::take(&mut written.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_message_a_minute_counts_the_others() {
        let sparse = Sparse::default();
        assert_eq!([sparse.due(), sparse.due(), sparse.due()], [Some(0), None, None]);
        tokio::time::advance(BETWEEN).await;
        assert_eq!([sparse.due(), sparse.due()], [Some(2), None]);
    }
}
