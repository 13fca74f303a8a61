//! Statements of tasks.

/// Condition that a row is the task of a key: `?1` id, `?2` service, `?3` owner.
macro_rules! is_key {
    () => {
        "id = ?1 AND service = ?2 AND owner = ?3"
    };
}

pub(super) const KNOWN: &str = "SELECT 1 FROM roundtrip_task WHERE id = ?";
/// Number of live tasks of an account: `?1` service, `?2` account. It is not a part of [`CREATE`]: a statement that selects what it
/// inserts makes an ephemeral table each time.
pub(super) const LIVE: &str = "SELECT live FROM roundtrip_task_live WHERE service = ?1 AND account = ?2";
/// `?13` call.
pub(super) const CREATE: &str = "INSERT INTO roundtrip_task \
    (id, service, owner, account, kind, version, fence, held, live, due, expires, changed, origin, view, work, call) \
    VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, 1, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO NOTHING";
pub(super) const ADD: &str = "INSERT INTO roundtrip_task_chunks (task, stream, number, bytes) VALUES (?, ?, ?, ?) \
    ON CONFLICT DO NOTHING";
pub(super) const VIEW: &str =
    concat!("SELECT view, kind, CASE WHEN live THEN due END, NULL FROM roundtrip_task WHERE ", is_key!());
pub(super) const VIEW_AND_RESULT: &str =
    concat!("SELECT view, kind, CASE WHEN live THEN due END, result FROM roundtrip_task WHERE ", is_key!());
/// `?4` now.
pub(super) const READ: &str =
    concat!("SELECT version, fence, held AND due > ?4, view, work FROM roundtrip_task WHERE ", is_key!());
/// The call is null if it is large. The last column says whether there is a journal.
pub(super) const SMALL_WORK: &str = concat!(
    "SELECT version, fence, work, call, EXISTS (SELECT 1 FROM roundtrip_task_chunks WHERE task = ?1 AND stream = 0) \
     FROM roundtrip_task WHERE ",
    is_key!(),
    " AND live"
);
pub(super) const JOURNAL_OF: &str = concat!(
    "SELECT number, bytes FROM roundtrip_task_chunks WHERE task = ?1 AND stream = 0 \
     AND (SELECT live FROM roundtrip_task WHERE ",
    is_key!(),
    ") ORDER BY number"
);
/// The call is in the row, or it is a piece.
pub(super) const WORK: &str = concat!(
    "SELECT version, fence, work, coalesce(call, (SELECT bytes FROM roundtrip_task_chunks WHERE task = ?1 AND stream = 2)) \
     FROM roundtrip_task WHERE ",
    is_key!(),
    " AND live"
);
/// `?4` number of a part, `?5` most.
pub(super) const PARTS_FROM: &str = concat!(
    "SELECT number, bytes FROM roundtrip_task_chunks WHERE task = ?1 AND stream = 1 \
     AND number >= coalesce((SELECT max(p.number) FROM roundtrip_task_chunks p \
     WHERE p.task = ?1 AND p.stream = 1 AND p.number <= ?4), 0) \
     AND (SELECT 1 FROM roundtrip_task WHERE ",
    is_key!(),
    ") ORDER BY number LIMIT ?5"
);
/// Columns that every write sets: `?5` live, `?6` whether the time and the worker stay as they are, `?7` due if they do not. A task
/// that has ended stays so.
macro_rules! written {
    () => {
        "UPDATE roundtrip_task SET version = version + 1, live = live AND ?5, held = ?5 AND ?6 AND held, \
         due = CASE WHEN ?6 THEN due ELSE ?7 END, view = ?9, work = ?10, \
         result = coalesce(?11, result), call = CASE WHEN ?5 THEN call END, changed = ?12, origin = ?13"
    };
}
/// `?4` version, `?8` expires. Writes a task whose end of life is as it was: to set it, the same or not, is to write to its index.
pub(super) const WRITE: &str =
    concat!(written!(), " WHERE ", is_key!(), " AND version = ?4 AND expires IS ?8");
pub(super) const WRITE_ALL: &str =
    concat!(written!(), ", expires = ?8 WHERE ", is_key!(), " AND version = ?4");
/// `?4` fence.
pub(super) const IS_HELD: &str =
    concat!("SELECT 1 FROM roundtrip_task WHERE ", is_key!(), " AND fence = ?4 AND held AND live");
/// The next account of a kind, and the next kind: `?1` service, `?2` held, `?3` kind and `?4` account of the pair before. A comparison
/// of both columns at once would look at all tasks of the pair.
pub(super) const NEXT_ACCOUNT: &str = "SELECT kind, account, due FROM roundtrip_task \
    WHERE service = ?1 AND held = ?2 AND due IS NOT NULL AND kind = ?3 AND account > ?4 \
    ORDER BY account, due LIMIT 1";
pub(super) const NEXT_KIND: &str = "SELECT kind, account, due FROM roundtrip_task \
    WHERE service = ?1 AND held = ?2 AND due IS NOT NULL AND kind > ?3 \
    ORDER BY kind, account, due LIMIT 1";
/// `?1` service, `?2` held, `?3` kind, `?4` account, `?5` now, `?6` most. The fifth column is the bytes of a task that its worker
/// reads: its record, its call and its journal.
pub(super) const DUE: &str = "SELECT id, due, owner, fence, length(work) \
    + coalesce(length(call), (SELECT sum(length(bytes)) FROM roundtrip_task_chunks WHERE task = id AND stream = 2), 0) \
    + coalesce((SELECT sum(length(bytes)) FROM roundtrip_task_chunks WHERE task = id AND stream = 0), 0), \
    roundtrip_task.rowid FROM roundtrip_task \
    WHERE service = ?1 AND held = ?2 AND kind = ?3 AND account = ?4 AND due <= ?5 ORDER BY due LIMIT ?6";
/// Takes a task that [`DUE`] has found in the same transaction.
pub(super) const TAKE: &str = "UPDATE roundtrip_task \
    SET held = 1, due = ?1, version = version + 1, fence = fence + 1 WHERE rowid = ?2";
pub(super) const FORGET_JOURNAL: &str = "DELETE FROM roundtrip_task_chunks WHERE task = ? AND stream = 0";
/// `?4` fence, `?5` now.
pub(super) const GIVE_BACK: &str = concat!(
    "UPDATE roundtrip_task SET held = 0, due = ?5, changed = ?6, origin = ?7 WHERE ",
    is_key!(),
    " AND fence = ?4 AND held AND live RETURNING version"
);
/// A renewal that was given up may be carried out after a later one.
pub(super) const RENEW: &str = "UPDATE roundtrip_task SET due = max(due, ?1) WHERE id = ?2 AND fence = ?3 AND held AND live RETURNING version";
pub(super) const EXPIRED: &str = "SELECT id, owner, version, live FROM roundtrip_task \
    WHERE service = ? AND expires <= ? ORDER BY expires LIMIT ?";
pub(super) const REMOVE: &str = "DELETE FROM roundtrip_task WHERE id = ? AND service = ? AND version = ?";
pub(super) const LIST: &str =
    "SELECT id, view FROM roundtrip_task WHERE service = ? AND owner = ? AND id > ? ORDER BY id LIMIT ?";
pub(super) const ORPHANS: &str = "SELECT id, owner, version \
    FROM roundtrip_task INDEXED BY roundtrip_task_orphans \
    WHERE service IS NULL AND id > ? ORDER BY id LIMIT ?";
/// `?1` now, `?2` now less the grace of those that have not ended, `?3` most.
pub(super) const REMOVE_ORPHANS: &str = "DELETE FROM roundtrip_task WHERE id IN (SELECT id FROM roundtrip_task \
    WHERE service IS NULL AND expires <= ?1 AND (NOT live OR expires <= ?2) ORDER BY expires LIMIT ?3)";
pub(super) const ORPHAN: &str = "SELECT id, owner, version, view, work FROM roundtrip_task \
    WHERE service IS NULL AND id = ? AND owner = ?";
/// `?1` id, `?2` service, `?3` owner, `?4` version.
pub(super) const ADOPT: &str = "UPDATE roundtrip_task SET service = ?2, kind = ?5, version = version + 1, view = ?6, \
    work = ?7, result = ?8, changed = ?9, origin = ?10, call = ?11 \
    WHERE id = ?1 AND owner = ?3 AND service IS NULL AND version = ?4";
pub(super) const RESEAL_VIEW: &str = "UPDATE roundtrip_task SET view = ? WHERE id = ? AND view = ?";
pub(super) const RESEAL_WORK: &str = "UPDATE roundtrip_task SET work = ? WHERE id = ? AND work = ?";
pub(super) const RESEAL_RESULT: &str = "UPDATE roundtrip_task SET result = ? WHERE id = ? AND result = ?";
pub(super) const RESEAL_CALL: &str = "UPDATE roundtrip_task SET call = ? WHERE id = ? AND call = ?";
pub(super) const RESEAL_PIECE: &str =
    "UPDATE roundtrip_task_chunks SET bytes = ? WHERE task = ? AND bytes = ? AND stream = ? AND number = ?";
/// `?` how many numbers of changes are taken. [`LAST`] reads the last of them: `RETURNING` makes a table of its own each time.
pub(in crate::sqlite) const NEXT: &str = "UPDATE roundtrip_task_changes SET last = last + ? WHERE one = 1";
pub(in crate::sqlite) const LAST: &str = "SELECT last FROM roundtrip_task_changes WHERE one = 1";
pub(super) const CHANGED: &str = "SELECT id, version, changed, origin, due IS NOT NULL AND NOT held FROM roundtrip_task \
     WHERE changed > ? ORDER BY changed LIMIT ?";

/// Every statement: a test shows that none looks at tasks one by one (K7).
#[cfg(test)]
pub(in crate::sqlite) const ALL_STATEMENTS: &[&str] = &[
    KNOWN,
    LIVE,
    CREATE,
    ADD,
    VIEW,
    VIEW_AND_RESULT,
    READ,
    SMALL_WORK,
    JOURNAL_OF,
    WORK,
    PARTS_FROM,
    WRITE,
    WRITE_ALL,
    IS_HELD,
    NEXT_ACCOUNT,
    NEXT_KIND,
    DUE,
    TAKE,
    FORGET_JOURNAL,
    GIVE_BACK,
    RENEW,
    EXPIRED,
    REMOVE,
    LIST,
    ORPHANS,
    REMOVE_ORPHANS,
    ORPHAN,
    ADOPT,
    RESEAL_VIEW,
    RESEAL_WORK,
    RESEAL_RESULT,
    RESEAL_CALL,
    RESEAL_PIECE,
    NEXT,
    LAST,
    CHANGED,
];
