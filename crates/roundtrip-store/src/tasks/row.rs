//! Values of rows, as databases return them.

use std::time::Duration;

use roundtrip::seal::Digest;
use roundtrip::task::{TaskId, TaskOwner};

/// Column that does not hold a value of its kind.
#[derive(Debug, thiserror::Error)]
#[error("the {0} of a task cannot be read")]
pub(crate) struct Unreadable(pub(crate) &'static str);

/// Returns an identifier.
pub(crate) fn id_of(text: &str) -> Result<TaskId, Unreadable> {
    TaskId::parse(text).ok_or(Unreadable("id"))
}

/// Returns an owner.
pub(crate) fn owner_of(bytes: &[u8]) -> Result<TaskOwner, Unreadable> {
    Ok(TaskOwner::from_bytes(bytes.try_into().map_err(|_| Unreadable("owner"))?))
}

/// Returns a digest.
pub(crate) fn digest_of(column: &'static str, bytes: &[u8]) -> Result<Digest, Unreadable> {
    Ok(Digest::from_bytes(bytes.try_into().map_err(|_| Unreadable(column))?))
}

/// Returns the rows that could be read. One that could not hides no other.
pub(crate) fn readable<T, E: std::fmt::Display>(rows: impl Iterator<Item = Result<T, E>>) -> Vec<T> {
    let log = |error: &E| tracing::error!(%error, "a row of a task is skipped");
    rows.filter_map(|row| row.inspect_err(log).ok()).collect()
}

/// Returns a number as databases have them. Larger ones are as good as the largest.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Returns the number of a piece.
pub(crate) fn number_of(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns a duration in milliseconds. At most a century: it is added to times.
pub(crate) fn millis_of(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 366 * 24 * 60 * 60 * 1_000;
    i64::try_from(duration.as_millis()).unwrap_or(CENTURY).min(CENTURY)
}
