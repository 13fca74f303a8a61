//! Rows of tasks, as any SQL database returns them.

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{Millis, StoredTask, TaskId, TaskOwner};
use sqlx::{ColumnIndex, Decode, Row, Type};

/// Returns the task in a row with the columns id, owner, account, version, fence, live, due, expires, view and work, in this order.
pub(crate) fn task_of<'r, R: Row>(row: &'r R) -> Result<StoredTask, sqlx::Error>
where
    usize: ColumnIndex<R>,
    &'r str: Decode<'r, R::Database> + Type<R::Database>,
    &'r [u8]: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
{
    let time =
        |column| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(column)?.map(unsigned).map(Millis));
    let bytes = |column| Ok::<_, sqlx::Error>(Bytes::copy_from_slice(row.try_get::<&[u8], _>(column)?));
    let id = TaskId::parse(row.try_get(0)?).ok_or_else(|| unreadable("id"))?;
    Ok(StoredTask {
        id,
        owner: TaskOwner::from_bytes(digest(row.try_get(1)?)?),
        account: Digest::from_bytes(digest(row.try_get(2)?)?),
        version: unsigned(row.try_get(3)?),
        fence: unsigned(row.try_get(4)?),
        is_live: row.try_get(5)?,
        due: time(6)?,
        expires: time(7)?,
        view: bytes(8)?,
        work: bytes(9)?,
    })
}

fn digest(bytes: &[u8]) -> Result<[u8; Digest::LEN], sqlx::Error> {
    bytes.try_into().map_err(|_| unreadable("owner or account"))
}

fn unreadable(column: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("the {column} of a task cannot be read").into())
}

/// Returns a number as databases have them. Larger ones are as good as the largest.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
