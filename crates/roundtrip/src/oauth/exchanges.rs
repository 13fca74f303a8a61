//! Exchanges of refresh tokens and codes that are under way. Each of these is good for one use: the answer must not be lost.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::auth::AuthError;
use tokio::sync::watch;
use tokio::time::timeout;

/// Longest wait of a client that is closed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Count of the exchanges of one client.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchanges(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    is_closed: bool,
}

/// An exchange, from its request until its tokens are stored.
#[derive(Debug)]
pub(super) struct Exchanging(Arc<watch::Sender<State>>);

impl Exchanges {
    /// Counts an exchange, before its request is sent.
    ///
    /// # Errors
    /// Fails once the client is closed: nothing would wait for the answer.
    pub(super) fn begin(&self) -> Result<Exchanging, AuthError> {
        let counted = self.0.send_if_modified(|state| {
            state.under_way += usize::from(!state.is_closed);
            !state.is_closed
        });
        if counted { Ok(Exchanging(Arc::clone(&self.0))) } else { Err(AuthError::Interrupted) }
    }

    /// Begins no more exchanges, and waits for those under way, ten seconds at most.
    pub(super) async fn close(&self) {
        self.0.send_modify(|state| state.is_closed = true);
        let mut state = self.0.subscribe();
        // An issuer that takes longer has the answer to itself.
        let _ = timeout(PATIENCE, state.wait_for(|state| state.under_way == 0)).await;
    }
}

impl Drop for Exchanging {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.under_way -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O82: a client that is closed waits for an exchange that was sent, within bounds, and begins no other.
    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_exchanges_within_bounds() {
        let exchanges = Exchanges::default();
        let one = exchanges.begin().expect("an open client");
        let closing = tokio::spawn({
            let exchanges = exchanges.clone();
            async move { exchanges.close().await }
        });
        tokio::time::sleep(PATIENCE / 2).await;
        assert!(!closing.is_finished());
        assert_eq!(exchanges.begin().expect_err("a closed client"), AuthError::Interrupted);
        drop(one);
        closing.await.expect("no panic");

        let exchanges = Exchanges::default();
        let _never = exchanges.begin().expect("an open client");
        timeout(2 * PATIENCE, exchanges.close()).await.expect("an end to the wait");
    }
}
