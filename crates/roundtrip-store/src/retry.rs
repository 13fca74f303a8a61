//! Retries while a database cannot be reached, within a bound (K3).

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::StoreError;

/// Time for one attempt.
const ATTEMPT: Duration = Duration::from_secs(8);

/// Time for which attempts are begun.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs an operation until it succeeds, fails for good, or its time is over.
pub(crate) async fn retry<T, F>(attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    retry_within(ATTEMPT, attempt).await
}

/// Runs an operation as [`retry`] does, with another bound for each attempt.
pub(crate) async fn retry_within<T, F>(
    bound: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(20);
    loop {
        let error = match timeout(bound, attempt()).await.unwrap_or(Err(StoreError::TimedOut)) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !error.is_passing() || Instant::now() + pause >= end {
            return Err(error);
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// Runs one attempt of an operation, for as long as an attempt may take.
pub(crate) async fn in_time<T>(
    attempt: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(ATTEMPT, attempt).await.unwrap_or(Err(StoreError::TimedOut))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// K3: a database that is away is tried again, within a bound; what is refused is not.
    #[tokio::test(start_paused = true)]
    async fn an_operation_is_tried_again_within_a_bound() {
        let away = || StoreError::Unavailable(Arc::new(std::io::Error::other("away")));
        let (begun, mut tries) = (Instant::now(), 0);
        let found = retry(|| {
            tries += 1;
            let back = begun.elapsed() > Duration::from_secs(3);
            async move { if back { Ok(7) } else { Err(away()) } }
        });
        assert_eq!(found.await.unwrap(), 7);
        assert!(tries > 5 && begun.elapsed() < Duration::from_secs(5), "{tries}");

        let begun = Instant::now();
        assert!(matches!(retry(async || Err::<(), _>(away())).await, Err(StoreError::Unavailable(_))));
        assert!(begun.elapsed() <= PATIENCE);
        let begun = Instant::now();
        let hangs = || std::future::pending::<Result<(), StoreError>>();
        assert!(matches!(retry(hangs).await, Err(StoreError::TimedOut)));
        assert!(begun.elapsed() <= PATIENCE + ATTEMPT);

        let begun = Instant::now();
        assert!(retry(async || Err::<(), _>(StoreError::ReadOnly)).await.is_err());
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
