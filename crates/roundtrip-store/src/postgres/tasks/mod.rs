//! Tasks in PostgreSQL.

mod renewer;
mod statements;

use std::sync::Arc;

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{
    AdoptedTask, ChangedTask, Chunk, Due, ExpiredTask, LeaseRenewer, Millis, NewTask, OrphanTask, StoredTask,
    StoredView, TakenTask, TaskChange, TaskId, TaskKey, TaskOwner, TaskWork, Waiting,
};
use sqlx::Row as _;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;

use self::renewer::PostgresRenewer;
use self::statements::{
    ADOPT, APPEND, CREATE, EXPIRED, GIVE_BACK, LIST, LOAD, ORPHAN, ORPHANS, PAIRS, PARTS_FROM, READ, REMOVE,
    REMOVE_ORPHANS, RESEAL_PIECE, RESEAL_RESULT, RESEAL_VIEW, RESEAL_WORK, TAKE, VIEW, WRITE,
};
use super::connections::Connections;
use super::error;
use super::listener::Announcer;
use super::own_connection::OwnConnection;
use crate::tasks::{
    Answer, CALL, Field, JOURNAL, ORPHAN_GRACE, Origin, PARTS, Pair, PairSearch, Reseal, Rows, Unreadable,
    Wish, digest_of, id_of, millis_of, number_of, owner_of, readable, signed, unsigned,
};

type Read<T> = Result<T, sqlx::Error>;

/// Statements of tasks.
pub(super) struct PostgresTasks {
    connections: Arc<Connections>,
    options: PgConnectOptions,
    announcer: Announcer,
}

impl PostgresTasks {
    /// Starts the announcements, which end with it.
    pub(super) fn start(connections: Arc<Connections>, options: PgConnectOptions, origin: Origin) -> Self {
        let announcer = Announcer::start(Arc::clone(&connections), origin);
        Self { connections, options, announcer }
    }
}

/// Begins a statement whose first parameters are a key.
fn of_key<'a>(statement: &'static str, key: &'a TaskKey) -> Query<'a, sqlx::Postgres, PgArguments> {
    let query = sqlx::query(statement).bind(key.id.as_str()).bind(&key.service.as_bytes()[..]);
    query.bind(&key.owner.as_bytes()[..])
}

/// The database has a clock, so that machines whose clocks differ agree on leases: `now` is ignored.
impl Rows for PostgresTasks {
    async fn create(&self, task: &NewTask, most: usize, _: Millis) -> Answer<bool> {
        let statement = of_key(CREATE, &task.key)
            .bind(&task.account.as_bytes()[..])
            .bind(&task.kind.as_bytes()[..])
            .bind(task.lease.map(millis_of))
            .bind(task.expires.map(|expires| signed(expires.0)))
            .bind(&task.view[..])
            .bind(&task.work[..])
            .bind(&task.call[..])
            .bind(task.journal.as_deref())
            .bind(signed(most as u64));
        Ok(self.connections.run(statement).await?.is_some())
    }

    async fn view(&self, key: &TaskKey, with_result: bool, _: Millis) -> Answer<Option<StoredView>> {
        let row = self.connections.run(of_key(VIEW, key).bind(with_result)).await?;
        row.as_ref().map(view_of).transpose().map_err(error)
    }

    async fn read(&self, key: &TaskKey, _: Millis) -> Answer<Option<StoredTask>> {
        let row = self.connections.run(of_key(READ, key)).await?;
        row.as_ref().map(|row| task_of(row, key)).transpose().map_err(error)
    }

    async fn load(&self, key: &TaskKey) -> Answer<Option<(TaskWork, Vec<Chunk>)>> {
        let (mut work, mut journal) = (None, Vec::new());
        for row in self.connections.rows(of_key(LOAD, key)).await? {
            let chunk = chunk_of(&row, 1).map_err(error)?;
            if row.try_get::<i16, _>(0).map_err(error)? == CALL {
                work = Some(work_of(&row, chunk.bytes).map_err(error)?);
            } else {
                journal.push(chunk);
            }
        }
        Ok(work.map(|work| (work, journal)))
    }

    async fn parts(&self, key: &TaskKey, from: u32, most: usize) -> Answer<Vec<Chunk>> {
        let statement = of_key(PARTS_FROM, key).bind(i64::from(from)).bind(signed(most as u64));
        let rows = self.connections.rows(statement).await?;
        rows.iter().map(|row| chunk_of(row, 0)).collect::<Read<_>>().map_err(error)
    }

    async fn write(&self, change: &TaskChange, _: Millis) -> Answer<bool> {
        let pause = match change.due {
            Due::After(pause) => Some(millis_of(pause)),
            Due::AsBefore | Due::Never => None,
        };
        let journal = change.journal.iter().map(|piece| (JOURNAL, piece));
        let pieces: Vec<_> = journal.chain(change.parts.iter().map(|piece| (PARTS, piece))).collect();
        let statement = of_key(WRITE, &change.key)
            .bind(signed(change.version))
            .bind(change.is_live)
            .bind(change.due == Due::AsBefore)
            .bind(pause)
            .bind(change.expires.map(|expires| signed(expires.0)))
            .bind(&change.view[..])
            .bind(&change.work[..])
            .bind(change.result.as_deref())
            .bind(pieces.iter().map(|(stream, _)| *stream).collect::<Vec<i16>>())
            .bind(pieces.iter().map(|(_, piece)| i64::from(piece.number)).collect::<Vec<_>>())
            .bind(pieces.iter().map(|(_, piece)| &piece.bytes[..]).collect::<Vec<_>>())
            .bind(change.replaces_journal);
        Ok(self.connections.run(statement).await?.is_some())
    }

    async fn append(&self, key: &TaskKey, fence: u64, pieces: &[Chunk]) -> Answer<bool> {
        let statement = of_key(APPEND, key)
            .bind(signed(fence))
            .bind(pieces.iter().map(|piece| i64::from(piece.number)).collect::<Vec<_>>())
            .bind(pieces.iter().map(|piece| &piece.bytes[..]).collect::<Vec<_>>());
        Ok(self.connections.run(statement).await?.is_some())
    }

    async fn pairs(&self, search: &PairSearch, _: Millis) -> Answer<Vec<Pair>> {
        let after = search.after.as_ref();
        let statement = sqlx::query(PAIRS)
            .bind(&search.service.as_bytes()[..])
            .bind(search.kinds.iter().map(|kind| &kind.as_bytes()[..]).collect::<Vec<_>>())
            .bind(after.map_or(&[][..], |pair| &pair.kind.as_bytes()[..]))
            .bind(after.map_or(&[][..], |pair| &pair.account.as_bytes()[..]))
            .bind(signed(search.steps as u64))
            .bind(signed(search.due as u64));
        let rows = self.connections.rows(statement).await?;
        rows.iter().map(pair_of).collect::<Read<_>>().map_err(error)
    }

    async fn take(&self, wish: &Wish, _: Millis) -> Answer<Vec<TakenTask>> {
        let wanted = &wish.wanted;
        let statement = sqlx::query(TAKE)
            .bind(&wish.service.as_bytes()[..])
            .bind(wanted.iter().map(|(waiting, _)| &waiting.kind.as_bytes()[..]).collect::<Vec<_>>())
            .bind(wanted.iter().map(|(waiting, _)| &waiting.account.as_bytes()[..]).collect::<Vec<_>>())
            .bind(wanted.iter().map(|(_, most)| signed(*most as u64)).collect::<Vec<_>>())
            .bind(wish.except.iter().map(TaskId::as_str).collect::<Vec<_>>())
            .bind(millis_of(wish.lease));
        let rows = self.connections.rows(statement).await?;
        Ok(readable(rows.iter().map(|row| taken_of(row, wish.service))))
    }

    async fn give_back(&self, key: &TaskKey, fence: u64, _: Millis) -> Answer<Option<u64>> {
        let row = self.connections.run(of_key(GIVE_BACK, key).bind(signed(fence))).await?;
        row.map(|row| Ok(unsigned(row.try_get(0)?))).transpose().map_err(error)
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        Box::new(PostgresRenewer(OwnConnection::new(self.options.clone())))
    }

    async fn expired(&self, service: &Digest, _: Millis, most: usize) -> Answer<Vec<ExpiredTask>> {
        let statement = sqlx::query(EXPIRED).bind(&service.as_bytes()[..]).bind(signed(most as u64));
        let rows = self.connections.rows(statement).await?;
        Ok(readable(rows.iter().map(|row| expired_of(row, *service))))
    }

    async fn remove(&self, service: &Digest, tasks: &[(TaskId, u64)]) -> Answer<()> {
        let statement = sqlx::query(REMOVE)
            .bind(&service.as_bytes()[..])
            .bind(tasks.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())
            .bind(tasks.iter().map(|(_, version)| signed(*version)).collect::<Vec<_>>());
        self.connections.run(statement).await.map(drop)
    }

    async fn list(
        &self,
        service: &Digest,
        owner: &TaskOwner,
        after: Option<&TaskId>,
        most: usize,
    ) -> Answer<Vec<(TaskId, Bytes)>> {
        let statement = sqlx::query(LIST)
            .bind(&service.as_bytes()[..])
            .bind(&owner.as_bytes()[..])
            .bind(after.map_or("", TaskId::as_str))
            .bind(signed(most as u64));
        let rows = self.connections.rows(statement).await?;
        Ok(readable(rows.iter().map(|row| Read::Ok((id(row)?, bytes(row, 1)?)))))
    }

    async fn orphans(&self, after: Option<&TaskId>, most: usize) -> Answer<Vec<OrphanTask>> {
        let after = after.map_or("", TaskId::as_str);
        let rows = self.connections.rows(sqlx::query(ORPHANS).bind(after).bind(signed(most as u64))).await?;
        Ok(readable(rows.iter().map(|row| {
            let (id, owner, version) = (id(row)?, owner(row, 1)?, unsigned(row.try_get(2)?));
            Read::Ok(OrphanTask { id, owner, version, view: Bytes::new(), work: Bytes::new() })
        })))
    }

    async fn remove_orphans(&self, _: Millis, most: usize) -> Answer<usize> {
        let statement = sqlx::query(REMOVE_ORPHANS).bind(ORPHAN_GRACE).bind(signed(most as u64));
        let removed = self.connections.run(statement).await?.map(|row| row.try_get(0));
        let removed = unsigned(removed.transpose().map_err(error)?.unwrap_or_default());
        Ok(usize::try_from(removed).unwrap_or(usize::MAX))
    }

    async fn orphan(&self, owner: &TaskOwner, id: &TaskId) -> Answer<Option<OrphanTask>> {
        let statement = sqlx::query(ORPHAN).bind(id.as_str()).bind(&owner.as_bytes()[..]);
        let row = self.connections.run(statement).await?;
        row.as_ref().map(orphan_of).transpose().map_err(error)
    }

    async fn adopt(&self, task: &AdoptedTask) -> Answer<bool> {
        let call = (!task.call.is_empty()).then_some((CALL, &task.call));
        let journal = task.journal.iter().map(|journal| (JOURNAL, journal));
        let parts = task.parts.iter().map(|parts| (PARTS, parts));
        let pieces: Vec<_> = journal.chain(parts).chain(call).collect();
        let statement = sqlx::query(ADOPT)
            .bind(task.key.id.as_str())
            .bind(&task.key.owner.as_bytes()[..])
            .bind(signed(task.version))
            .bind(&task.key.service.as_bytes()[..])
            .bind(&task.kind.as_bytes()[..])
            .bind(&task.view[..])
            .bind(&task.work[..])
            .bind(task.result.as_deref())
            .bind(pieces.iter().map(|(stream, _)| *stream).collect::<Vec<i16>>())
            .bind(pieces.iter().map(|(_, bytes)| &bytes[..]).collect::<Vec<_>>());
        Ok(self.connections.run(statement).await?.is_some())
    }

    async fn reseal(&self, stale: &[Reseal]) -> Answer<()> {
        for Reseal { id, field, old, new } in stale {
            let column = match field {
                Field::View => RESEAL_VIEW,
                Field::Work => RESEAL_WORK,
                _ => RESEAL_RESULT,
            };
            let statement = |text| sqlx::query(text).bind(&new[..]).bind(id.as_str()).bind(&old[..]);
            let statement = match field.piece() {
                Some((stream, number)) => statement(RESEAL_PIECE).bind(stream).bind(i64::from(number)),
                None => statement(column),
            };
            self.connections.run(statement).await?;
        }
        Ok(())
    }

    fn tell(&self, task: &ChangedTask) {
        self.announcer.tell(task);
    }
}

fn view_of(row: &PgRow) -> Read<StoredView> {
    let (view, kind, is_waiting) = (bytes(row, 0)?, digest(row, 1, "kind")?, row.try_get(2)?);
    let result = row.try_get::<Option<&[u8]>, _>(3)?.map(Bytes::copy_from_slice);
    Ok(StoredView { view, result, kind, is_waiting })
}

fn task_of(row: &PgRow, key: &TaskKey) -> Read<StoredTask> {
    Ok(StoredTask {
        key: key.clone(),
        version: unsigned(row.try_get(0)?),
        fence: unsigned(row.try_get(1)?),
        is_held: row.try_get(2)?,
        view: bytes(row, 3)?,
        work: bytes(row, 4)?,
    })
}

/// Returns a task as its worker needs it, without its journal.
fn work_of(row: &PgRow, call: Bytes) -> Read<TaskWork> {
    let (version, fence) = (unsigned(row.try_get(3)?), unsigned(row.try_get(4)?));
    Ok(TaskWork { version, fence, work: bytes(row, 5)?, call, journal: Vec::new() })
}

fn pair_of(row: &PgRow) -> Read<Pair> {
    let waiting = Waiting { kind: digest(row, 1, "kind")?, account: digest(row, 2, "account")? };
    Ok(Pair { held: row.try_get(0)?, waiting, is_due: row.try_get(3)? })
}

fn taken_of(row: &PgRow, service: Digest) -> Read<TakenTask> {
    Ok(TakenTask {
        key: TaskKey { service, owner: owner(row, 1)?, id: id(row)? },
        account: digest(row, 2, "account")?,
        kind: digest(row, 3, "kind")?,
        fence: unsigned(row.try_get(4)?),
        lease_expired: row.try_get(6)?,
        size: usize::try_from(row.try_get::<i64, _>(5)?).unwrap_or(usize::MAX),
    })
}

fn expired_of(row: &PgRow, service: Digest) -> Read<ExpiredTask> {
    let key = TaskKey { service, owner: owner(row, 1)?, id: id(row)? };
    Ok(ExpiredTask { key, version: unsigned(row.try_get(2)?), is_live: row.try_get(3)? })
}

fn orphan_of(row: &PgRow) -> Read<OrphanTask> {
    let (id, owner, version) = (id(row)?, owner(row, 1)?, unsigned(row.try_get(2)?));
    Ok(OrphanTask { id, owner, version, view: bytes(row, 3)?, work: bytes(row, 4)? })
}

/// Returns the piece whose number is in this column, and its bytes in the next.
fn chunk_of(row: &PgRow, column: usize) -> Read<Chunk> {
    Ok(Chunk { number: number_of(row.try_get(column)?), bytes: bytes(row, column + 1)? })
}

fn bytes(row: &PgRow, column: usize) -> Read<Bytes> {
    Ok(Bytes::copy_from_slice(row.try_get(column)?))
}

fn digest(row: &PgRow, column: usize, name: &'static str) -> Read<Digest> {
    digest_of(name, row.try_get(column)?).map_err(unreadable)
}

fn owner(row: &PgRow, column: usize) -> Read<TaskOwner> {
    owner_of(row.try_get(column)?).map_err(unreadable)
}

fn id(row: &PgRow) -> Read<TaskId> {
    id_of(row.try_get(0)?).map_err(unreadable)
}

fn unreadable(column: Unreadable) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(column))
}
