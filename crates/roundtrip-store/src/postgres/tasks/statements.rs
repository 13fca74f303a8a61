//! Statements of tasks. `now()` is the beginning of a statement, by the clock of the database: unlike `clock_timestamp()` it can be
//! compared with an index.

pub(super) const CREATE: &str = include_str!("../sql/task-create.sql");
pub(super) const WRITE: &str = include_str!("../sql/task-write.sql");
pub(super) const APPEND: &str = include_str!("../sql/task-append.sql");
pub(super) const PAIRS: &str = include_str!("../sql/task-pairs.sql");
pub(super) const TAKE: &str = include_str!("../sql/task-take.sql");
pub(super) const RENEW: &str = include_str!("../sql/task-renew.sql");
pub(super) const REMOVE: &str = include_str!("../sql/task-remove.sql");
pub(super) const ADOPT: &str = include_str!("../sql/task-adopt.sql");
pub(super) const VIEW: &str = include_str!("../sql/task-view.sql");
pub(super) const READ: &str = include_str!("../sql/task-read.sql");
pub(super) const LOAD: &str = include_str!("../sql/task-load.sql");
pub(super) const PARTS_FROM: &str = include_str!("../sql/task-parts.sql");
pub(super) const GIVE_BACK: &str = include_str!("../sql/task-give-back.sql");
pub(super) const EXPIRED: &str = include_str!("../sql/task-expired.sql");
pub(super) const LIST: &str = include_str!("../sql/task-list.sql");
pub(super) const ORPHANS: &str = include_str!("../sql/task-orphans.sql");
pub(super) const ORPHAN: &str = include_str!("../sql/task-orphan.sql");
pub(super) const REMOVE_ORPHANS: &str = include_str!("../sql/task-remove-orphans.sql");
pub(super) const RESEAL_VIEW: &str = include_str!("../sql/task-reseal-view.sql");
pub(super) const RESEAL_WORK: &str = include_str!("../sql/task-reseal-work.sql");
pub(super) const RESEAL_RESULT: &str = include_str!("../sql/task-reseal-result.sql");
pub(super) const RESEAL_PIECE: &str = include_str!("../sql/task-reseal-piece.sql");
