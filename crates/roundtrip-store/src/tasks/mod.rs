//! Tasks over any database: sealing, retries, news of changes. A database adds [`Rows`], its statements.

mod forward;
mod news;
mod row;
mod rows;
mod seal;
mod store;
mod waiting;

pub(crate) use self::forward::tasks_of;
pub(crate) use self::news::{Elsewhere, Heard};
pub(crate) use self::row::{
    Unreadable, digest_of, id_of, millis_of, number_of, owner_of, readable, signed, unsigned,
};
pub(crate) use self::rows::{Answer, ORPHAN_GRACE, Pair, PairSearch, Rows, Wish};
pub(crate) use self::seal::{CALL, Field, JOURNAL, PARTS, Reseal};
pub(crate) use self::store::SharedTasks;
#[cfg(feature = "sqlite")]
pub(crate) use self::waiting::last_of;
use crate::StoreError;

/// Id of an instance of a store: it knows its own changes by it.
pub(crate) type Origin = [u8; 8];

/// Returns a new id for an instance.
pub(crate) fn new_origin() -> Result<Origin, StoreError> {
    let mut origin = Origin::default();
    getrandom::fill(&mut origin).map_err(|_| StoreError::NoRandomness)?;
    Ok(origin)
}
