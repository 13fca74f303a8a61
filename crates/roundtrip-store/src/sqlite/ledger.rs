//! The ledger in SQLite.

use std::time::{Duration, SystemTime};

use roundtrip::seal::BoxFuture;
use roundtrip::server::ledger::RoundKey;
use sqlx::{Row, SqliteConnection};

use super::Sql;
use super::writer::{Change, Writer};
use crate::ledger::{BATCH, Found, Holder, Id, Records};
use crate::opening::Settings;
use crate::{StoreError, Usage};

const ADD: &str = "INSERT INTO roundtrip_ledger_counts VALUES (?, ?, ?) ON CONFLICT (owner) \
                   DO UPDATE SET records = records + excluded.records, bytes = bytes + excluded.bytes";
const TIDY: &str = "DELETE FROM roundtrip_ledger_counts WHERE owner = ? AND records <= 0";
const USAGE: &str = "SELECT records, bytes FROM roundtrip_ledger_counts WHERE owner = ?";
const FIND: &str = "SELECT call, holder, reply FROM roundtrip_ledger WHERE id = ? AND ends > ?";
const INSERT: &str = "INSERT INTO roundtrip_ledger (id, call, owner, holder, ends) VALUES (?, ?, ?, ?, ?)";
const REMOVE: &str = "DELETE FROM roundtrip_ledger WHERE id = ? RETURNING owner, bytes";
const RUNNING: &str = "SELECT 1 FROM roundtrip_ledger WHERE id = ? AND ends > ? AND reply IS NULL";
const CLAIMED: &str = "SELECT owner, bytes FROM roundtrip_ledger WHERE id = ? AND holder = ?";
const RECORD: &str = "UPDATE roundtrip_ledger SET reply = ?, bytes = ?, ends = ? WHERE id = ?";
const RESEAL: &str = "UPDATE roundtrip_ledger SET reply = ? WHERE id = ? AND reply = ?";
const RENEW: &str = "UPDATE roundtrip_ledger SET ends = ? WHERE id = ? AND holder = ? AND reply IS NULL";
const UNANSWERED: &str = "SELECT 1 FROM roundtrip_ledger WHERE id = ? AND holder = ? AND reply IS NULL";
const OVER: &str = "SELECT id FROM roundtrip_ledger WHERE ends <= ? ORDER BY ends LIMIT ?";

/// Every statement: a test shows that none looks at records one by one (K7).
#[cfg(test)]
pub(super) const ALL_STATEMENTS: &[&str] =
    &[ADD, TIDY, USAGE, FIND, INSERT, REMOVE, RUNNING, CLAIMED, RECORD, RESEAL, RENEW, UNANSWERED, OVER];

/// Owner of the counts of all callers together.
const ALL: &[u8] = b"";

/// Statements of the ledger. All go through the writer: nearly every one may change something.
#[derive(Debug)]
pub(super) struct SqliteRecords {
    pub(super) writer: Writer,
    pub(super) settings: Settings,
}

impl Records for SqliteRecords {
    async fn claim(&self, key: &RoundKey, holder: &Holder) -> Result<Found, StoreError> {
        let Settings { lease, capacity, .. } = self.settings;
        self.writer.run(ClaimRound { key: *key, holder: *holder, lease, capacity }).await
    }

    async fn is_running(&self, id: &Id) -> Result<bool, StoreError> {
        self.writer.run(IsRunning(*id)).await
    }

    async fn record(&self, id: &Id, holder: &Holder, reply: &[u8], end: i64) -> Result<bool, StoreError> {
        self.writer.run(RecordReply { id: *id, holder: *holder, reply: reply.to_vec(), end }).await
    }

    async fn reseal(&self, id: &Id, old: &[u8], new: &[u8]) -> Result<(), StoreError> {
        self.writer.run(Reseal { id: *id, old: old.to_vec(), new: new.to_vec() }).await
    }

    async fn renew(&self, claims: &[(Id, Holder)]) -> Result<(), StoreError> {
        self.writer.run(Renew { claims: claims.to_vec(), lease: self.settings.lease }).await
    }

    async fn release(&self, id: &Id, holder: &Holder) -> Result<(), StoreError> {
        self.writer.run(Release { id: *id, holder: *holder }).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        self.writer.run(Sweep).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.writer.run(ReadUsage).await
    }
}

/// Returns the present time in milliseconds. The processes of one file have one clock.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX / 2)
}

fn lease_end(lease: Duration) -> i64 {
    now().saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX / 4))
}

/// Adds to the counts of an owner, and of all.
async fn count(connection: &mut SqliteConnection, owner: &[u8], records: i64, bytes: i64) -> Sql<()> {
    for owner in [owner, ALL] {
        sqlx::query(ADD).bind(owner).bind(records).bind(bytes).execute(&mut *connection).await?;
        sqlx::query(TIDY).bind(owner).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn usage_of(connection: &mut SqliteConnection, owner: &[u8]) -> Sql<Usage> {
    let row = sqlx::query(USAGE).bind(owner).fetch_optional(connection).await?;
    let number = |row: &sqlx::sqlite::SqliteRow, column| {
        row.try_get::<i64, _>(column).map(|number| u64::try_from(number).unwrap_or_default())
    };
    match row {
        Some(row) => Ok(Usage { records: number(&row, 0)?, bytes: number(&row, 1)? }),
        None => Ok(Usage::default()),
    }
}

struct ClaimRound {
    key: RoundKey,
    holder: Holder,
    lease: Duration,
    capacity: Usage,
}

impl ClaimRound {
    /// Looks at the live record of the round.
    async fn find(&self, connection: &mut SqliteConnection) -> Sql<Option<Found>> {
        let row = sqlx::query(FIND).bind(&self.key.id()[..]).bind(now());
        let Some(row) = row.fetch_optional(connection).await? else { return Ok(None) };
        let (call, holder): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Some(if call != self.key.call().as_bytes() {
            Found::OtherCall
        } else if let Some(reply) = row.try_get(2)? {
            Found::Done(reply)
        } else if holder == self.holder {
            Found::Claimed
        } else {
            Found::Running
        }))
    }

    async fn insert(&self, connection: &mut SqliteConnection) -> Sql<()> {
        let (id, owner) = (&self.key.id()[..], &self.key.owner().as_bytes()[..]);
        // A record that is over may still be there.
        remove(connection, id).await?;
        let insert = sqlx::query(INSERT).bind(id).bind(&self.key.call().as_bytes()[..]).bind(owner);
        insert.bind(&self.holder[..]).bind(lease_end(self.lease)).execute(&mut *connection).await?;
        count(connection, owner, 1, 0).await
    }
}

impl Change for ClaimRound {
    type Output = Found;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<Found>> {
        Box::pin(async move {
            if let Some(found) = self.find(connection).await? {
                return Ok(found);
            }
            let own = usage_of(connection, self.key.owner().as_bytes()).await?;
            let all = usage_of(connection, ALL).await?;
            if !self.capacity.has_room(own, all) {
                return Ok(Found::Full);
            }
            self.insert(connection).await?;
            Ok(Found::Claimed)
        })
    }
}

/// Removes a record, and what it counts for.
async fn remove(connection: &mut SqliteConnection, id: &[u8]) -> Sql<()> {
    let row = sqlx::query(REMOVE).bind(id).fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok(()) };
    let (owner, bytes): (Vec<u8>, i64) = (row.try_get(0)?, row.try_get(1)?);
    count(connection, &owner, -1, -bytes).await
}

struct IsRunning(Id);

impl Change for IsRunning {
    type Output = bool;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<bool>> {
        Box::pin(async move {
            let row = sqlx::query(RUNNING).bind(&self.0[..]).bind(now()).fetch_optional(connection).await?;
            Ok(row.is_some())
        })
    }
}

struct RecordReply {
    id: Id,
    holder: Holder,
    reply: Vec<u8>,
    end: i64,
}

impl Change for RecordReply {
    type Output = bool;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<bool>> {
        Box::pin(async move {
            let row = sqlx::query(CLAIMED).bind(&self.id[..]).bind(&self.holder[..]);
            let Some(row) = row.fetch_optional(&mut *connection).await? else { return Ok(false) };
            let (owner, before): (Vec<u8>, i64) = (row.try_get(0)?, row.try_get(1)?);
            let bytes = i64::try_from(self.reply.len()).unwrap_or(i64::MAX);
            let update = sqlx::query(RECORD).bind(&self.reply[..]).bind(bytes).bind(self.end);
            update.bind(&self.id[..]).execute(&mut *connection).await?;
            count(connection, &owner, 0, bytes - before).await?;
            Ok(true)
        })
    }
}

struct Reseal {
    id: Id,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Change for Reseal {
    type Output = ();

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<()>> {
        Box::pin(async move {
            let update = sqlx::query(RESEAL).bind(&self.new[..]).bind(&self.id[..]).bind(&self.old[..]);
            update.execute(connection).await.map(drop)
        })
    }
}

struct Renew {
    claims: Vec<(Id, Holder)>,
    lease: Duration,
}

impl Change for Renew {
    type Output = ();

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<()>> {
        Box::pin(async move {
            for (id, holder) in &self.claims {
                let renew = sqlx::query(RENEW).bind(lease_end(self.lease)).bind(&id[..]).bind(&holder[..]);
                renew.execute(&mut *connection).await?;
            }
            Ok(())
        })
    }
}

struct Release {
    id: Id,
    holder: Holder,
}

impl Change for Release {
    type Output = ();

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<()>> {
        Box::pin(async move {
            let row = sqlx::query(UNANSWERED).bind(&self.id[..]).bind(&self.holder[..]);
            if row.fetch_optional(&mut *connection).await?.is_some() {
                remove(connection, &self.id).await?;
            }
            Ok(())
        })
    }
}

struct Sweep;

impl Change for Sweep {
    type Output = u64;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<u64>> {
        Box::pin(async move {
            let over = sqlx::query_scalar::<_, Vec<u8>>(OVER).bind(now()).bind(BATCH);
            let over = over.fetch_all(&mut *connection).await?;
            for id in &over {
                remove(connection, id).await?;
            }
            Ok(over.len() as u64)
        })
    }
}

struct ReadUsage;

impl Change for ReadUsage {
    type Output = Usage;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Sql<Usage>> {
        Box::pin(usage_of(connection, ALL))
    }
}
