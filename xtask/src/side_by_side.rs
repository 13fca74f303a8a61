//! Work that is done side by side.

use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Result, bail};

use crate::tally::Tally;

/// Has as many workers as there are processors go through a list. A worker takes the next item from what it is given until there is
/// none, and returns what it counted.
pub(crate) fn side_by_side<T: Send>(
    items: Vec<T>,
    worker: impl Fn(&dyn Fn() -> Option<T>) -> Result<Tally> + Sync,
) -> Result<Tally> {
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| worker(&next))).collect();
        let mut tally = Tally::default();
        for worker in workers {
            tally.add(worker.join().unwrap_or_else(|_| bail!("a worker broke off"))?);
        }
        Ok(tally)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(items: Vec<bool>) -> Result<Tally> {
        side_by_side(items, |next| {
            let mut tally = Tally::default();
            while let Some(item) = next() {
                anyhow::ensure!(item, "broken");
                tally.count(item);
            }
            Ok(tally)
        })
    }

    #[test]
    fn every_item_is_counted_once() {
        assert_eq!(count(vec![true; 100]).unwrap(), Tally { passed: 100, failed: 0 });
    }

    #[test]
    fn a_worker_that_fails_is_an_error() {
        assert!(count(vec![false]).is_err());
    }
}
