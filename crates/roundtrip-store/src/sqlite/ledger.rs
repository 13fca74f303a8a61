//! The ledger in SQLite.

use std::time::{Duration, SystemTime};

use roundtrip::seal::BoxFuture;
use roundtrip::server::ledger::RoundKey;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Sql;
use super::file::File;
use super::own_connection::OwnConnection;
use super::writer::{Change, Commit, Writer};
use crate::ledger::{BATCH, ClaimRenewer, Found, Holder, Id, Records};
use crate::opening::Settings;
use crate::tasks::unsigned;
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
pub(super) struct SqliteRecords {
    pub(super) file: File,
    pub(super) writer: Writer,
    pub(super) settings: Settings,
}

impl Records for SqliteRecords {
    async fn claim(&self, key: &RoundKey, holder: &Holder, has_room: bool) -> Result<Found, StoreError> {
        let lease = self.settings.lease;
        let capacity = if has_room { self.settings.capacity } else { Usage::default() };
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

    fn renewer(&self) -> Box<dyn ClaimRenewer> {
        let connection = OwnConnection::new(self.file.clone());
        Box::new(SqliteClaims { connection, lease: self.settings.lease })
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
fn count(connection: &Connection, owner: &[u8], records: i64, bytes: i64) -> Sql<()> {
    for owner in [owner, ALL] {
        connection.prepare_cached(ADD)?.execute(params![owner, records, bytes])?;
        connection.prepare_cached(TIDY)?.execute([owner])?;
    }
    Ok(())
}

fn usage_of(connection: &Connection, owner: &[u8]) -> Sql<Usage> {
    let usage = connection
        .prepare_cached(USAGE)?
        .query_row([owner], |row| Ok(Usage { records: unsigned(row.get(0)?), bytes: unsigned(row.get(1)?) }));
    Ok(usage.optional()?.unwrap_or_default())
}

struct ClaimRound {
    key: RoundKey,
    holder: Holder,
    lease: Duration,
    capacity: Usage,
}

impl ClaimRound {
    /// Looks at the live record of the round.
    fn find(&self, connection: &Connection) -> Sql<Option<Found>> {
        let mut find = connection.prepare_cached(FIND)?;
        let found = find.query_row(params![self.key.id(), now()], |row| {
            Ok(if row.get_ref(0)?.as_blob()? != self.key.call().as_bytes() {
                Found::OtherCall
            } else if let Some(reply) = row.get(2)? {
                Found::Done(reply)
            } else if row.get_ref(1)?.as_blob()? == self.holder {
                Found::Claimed
            } else {
                Found::Running
            })
        });
        found.optional()
    }

    fn insert(&self, connection: &Connection) -> Sql<()> {
        let owner = self.key.owner().as_bytes();
        // A record that is over may still be there.
        remove(connection, self.key.id())?;
        let mut insert = connection.prepare_cached(INSERT)?;
        let call = self.key.call();
        insert.execute(params![self.key.id(), call.as_bytes(), owner, self.holder, lease_end(self.lease)])?;
        count(connection, owner, 1, 0)
    }
}

impl Change for ClaimRound {
    type Output = Found;

    fn run(&self, connection: &Commit<'_>) -> Sql<Found> {
        if let Some(found) = self.find(connection)? {
            if matches!(found, Found::Claimed) {
                let renewed = params![lease_end(self.lease), self.key.id(), self.holder];
                connection.prepare_cached(RENEW)?.execute(renewed)?;
            }
            return Ok(found);
        }
        let own = usage_of(connection, self.key.owner().as_bytes())?;
        if !self.capacity.has_room(own, usage_of(connection, ALL)?) {
            return Ok(Found::Full);
        }
        self.insert(connection)?;
        Ok(Found::Claimed)
    }
}

/// Removes a record, and what it counts for.
fn remove(connection: &Connection, id: &[u8]) -> Sql<()> {
    let mut remove = connection.prepare_cached(REMOVE)?;
    let removed = remove.query_row([id], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?)));
    match removed.optional()? {
        Some((owner, bytes)) => count(connection, &owner, -1, -bytes),
        None => Ok(()),
    }
}

struct IsRunning(Id);

impl Change for IsRunning {
    type Output = bool;

    fn run(&self, connection: &Commit<'_>) -> Sql<bool> {
        connection.prepare_cached(RUNNING)?.exists(params![self.0, now()])
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

    fn run(&self, connection: &Commit<'_>) -> Sql<bool> {
        let mut claimed = connection.prepare_cached(CLAIMED)?;
        let claimed = claimed.query_row(params![self.id, self.holder], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))
        });
        let Some((owner, before)) = claimed.optional()? else { return Ok(false) };
        let bytes = i64::try_from(self.reply.len()).unwrap_or(i64::MAX);
        connection.prepare_cached(RECORD)?.execute(params![self.reply, bytes, self.end, self.id])?;
        count(connection, &owner, 0, bytes - before)?;
        Ok(true)
    }
}

struct Reseal {
    id: Id,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Change for Reseal {
    type Output = ();

    fn run(&self, connection: &Commit<'_>) -> Sql<()> {
        connection.prepare_cached(RESEAL)?.execute(params![self.new, self.id, self.old]).map(drop)
    }
}

/// Renewer of claims.
struct SqliteClaims {
    connection: OwnConnection,
    lease: Duration,
}

impl ClaimRenewer for SqliteClaims {
    fn renew<'a>(&'a mut self, claims: &'a [(Id, Holder)]) -> BoxFuture<'a, Result<(), StoreError>> {
        let (claims, end) = (claims.to_vec(), lease_end(self.lease));
        Box::pin(self.connection.commit(move |connection| {
            let mut renew = connection.prepare_cached(RENEW)?;
            for (id, holder) in &claims {
                renew.execute(params![end, id, holder])?;
            }
            Ok(())
        }))
    }
}

struct Release {
    id: Id,
    holder: Holder,
}

impl Change for Release {
    type Output = ();

    fn run(&self, connection: &Commit<'_>) -> Sql<()> {
        if connection.prepare_cached(UNANSWERED)?.exists(params![self.id, self.holder])? {
            remove(connection, &self.id)?;
        }
        Ok(())
    }
}

struct Sweep;

impl Change for Sweep {
    type Output = u64;

    fn run(&self, connection: &Commit<'_>) -> Sql<u64> {
        let mut over = connection.prepare_cached(OVER)?;
        let over = over.query_map(params![now(), BATCH], |row| row.get::<_, Vec<u8>>(0))?;
        let over: Vec<_> = over.collect::<Sql<_>>()?;
        for id in &over {
            remove(connection, id)?;
        }
        Ok(over.len() as u64)
    }
}

struct ReadUsage;

impl Change for ReadUsage {
    type Output = Usage;

    fn run(&self, connection: &Commit<'_>) -> Sql<Usage> {
        usage_of(connection, ALL)
    }
}
