//! Time of a person: the clock of a call stops while somebody signs in (O74).

use std::pin::pin;
use std::time::Duration;

use roundtrip_core::error::Error;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Signal that a person is at work: in a browser, or with the code of a device.
#[derive(Debug, Default)]
pub(super) struct Person(watch::Sender<usize>);

/// Time in which a person is at work, until it is dropped.
pub(super) struct AtWork<'a>(&'a Person);

impl Person {
    /// Begins a time in which the person is at work.
    pub(super) fn at_work(&self) -> AtWork<'_> {
        self.0.send_modify(|count| *count += 1);
        AtWork(self)
    }

    /// Runs work that may take this long without the person. Returns its result, and the time that it took.
    ///
    /// # Errors
    /// Fails as the work does, and with [`Error::Timeout`] when its time is up.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<(T, Duration), Error> {
        let (mut work, mut at_work) = (pin!(work), self.0.subscribe());
        let mut taken = Duration::ZERO;
        loop {
            let counts = *at_work.borrow_and_update() == 0;
            let began = Instant::now();
            let done = tokio::select! {
                biased;
                done = &mut work => Some(done),
                // The sender is ours, and not dropped.
                _ = at_work.changed() => None,
                () = sleep(limit.saturating_sub(taken)), if counts => {
                    return Err(Error::timeout("the sign-in", limit));
                }
            };
            if counts {
                taken += began.elapsed();
            }
            if let Some(done) = done {
                return done.map(|done| (done, taken));
            }
        }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// O74: time with a person is not counted, and time before and after it is.
    #[tokio::test(start_paused = true)]
    async fn the_clock_stops_for_a_person() {
        for (before, with, after, taken) in [(4, 600, 5, Some(9)), (4, 600, 7, None), (11, 0, 0, None)] {
            let person = Person::default();
            let work = async {
                sleep(Duration::from_secs(before)).await;
                let at_work = person.at_work();
                sleep(Duration::from_secs(with)).await;
                drop(at_work);
                sleep(Duration::from_secs(after)).await;
                Ok(())
            };
            let done = person.within(LIMIT, work).await;
            match taken {
                Some(taken) => assert_eq!(done.expect("enough time").1.as_secs(), taken),
                None => assert!(matches!(done, Err(Error::Timeout { .. }))),
            }
        }
    }
}
