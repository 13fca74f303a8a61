//! Rows of tasks, as databases return them.

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{Millis, StoredTask, TaskId, TaskOwner};

/// A row with the columns of a task.
pub(crate) struct TaskRow<'a> {
    pub(crate) id: &'a str,
    pub(crate) owner: &'a [u8],
    pub(crate) account: &'a [u8],
    pub(crate) version: i64,
    pub(crate) fence: i64,
    pub(crate) live: bool,
    pub(crate) due: Option<i64>,
    pub(crate) expires: Option<i64>,
    pub(crate) view: &'a [u8],
    pub(crate) work: &'a [u8],
}

/// A column that holds no value of its kind.
#[derive(Debug, thiserror::Error)]
#[error("the {0} of a task cannot be read")]
pub(crate) struct Unreadable(pub(crate) &'static str);

impl TaskRow<'_> {
    pub(crate) fn task(self) -> Result<StoredTask, Unreadable> {
        let time = |time: Option<i64>| time.map(unsigned).map(Millis);
        Ok(StoredTask {
            id: TaskId::parse(self.id).ok_or(Unreadable("id"))?,
            owner: TaskOwner::from_bytes(self.owner.try_into().map_err(|_| Unreadable("owner"))?),
            account: Digest::from_bytes(self.account.try_into().map_err(|_| Unreadable("account"))?),
            version: unsigned(self.version),
            fence: unsigned(self.fence),
            is_live: self.live,
            due: time(self.due),
            expires: time(self.expires),
            view: Bytes::copy_from_slice(self.view),
            work: Bytes::copy_from_slice(self.work),
        })
    }
}

/// Returns a number as databases have them. Larger ones are as good as the largest.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
