//! The ledger in Redis. Its clock is the database's.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use redis::{Script, ScriptInvocation};
use roundtrip::seal::BoxFuture;
use roundtrip::server::ledger::RoundKey;

use super::link::Link;
use crate::ledger::{BATCH, ClaimRenewer, Found, Holder, Id, Records};
use crate::opening::Settings;
use crate::{StoreError, Usage};

/// A script that begins with what all of them share.
macro_rules! script {
    ($text:expr) => {
        LazyLock::new(|| Script::new(concat!(include_str!("scripts/common.lua"), $text)))
    };
}

static CLAIM: LazyLock<Script> = script!(include_str!("scripts/claim.lua"));
static RECORD: LazyLock<Script> = script!(include_str!("scripts/record.lua"));
static RENEW: LazyLock<Script> = script!(include_str!("scripts/renew.lua"));
static RELEASE: LazyLock<Script> = script!(include_str!("scripts/release.lua"));
static SWEEP: LazyLock<Script> = script!("return sweep(tonumber(ARGV[1]))");
static RESEAL: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/reseal.lua")));

/// Scripts of the ledger.
#[derive(Debug)]
pub(super) struct RedisRecords {
    link: Arc<Link>,
    settings: Settings,
    keys: Keys,
}

/// Keys of the ledger.
#[derive(Debug, Clone)]
struct Keys {
    /// Beginning of all keys.
    prefix: String,
    /// Keys of all records together: their ends, the counts of callers, the share of each record.
    shared: [String; 3],
}

impl Keys {
    fn new(prefix: &str) -> Self {
        let prefix = format!("{{{prefix}}}:ledger:");
        let shared = ["ends", "counts", "shares"].map(|name| format!("{prefix}{name}"));
        Self { prefix, shared }
    }

    /// Begins a script with the keys that all records share.
    fn script<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let mut script = script.prepare_invoke();
        for key in &self.shared {
            script.key(key);
        }
        script
    }

    /// Returns the key of a record.
    fn of(&self, id: &Id) -> String {
        format!("{}{}", self.prefix, hex(id))
    }
}

impl RedisRecords {
    pub(super) fn new(link: Arc<Link>, settings: Settings) -> Self {
        Self { link, keys: Keys::new(&settings.prefix), settings }
    }

    fn lease(&self) -> u64 {
        // Years; Redis refuses a time that it cannot add to the present.
        u64::try_from(self.settings.lease.as_millis()).unwrap_or(u64::MAX).min(1 << 40)
    }
}

impl Records for RedisRecords {
    async fn claim(&self, key: &RoundKey, holder: &Holder, has_room: bool) -> Result<Found, StoreError> {
        let capacity = if has_room { self.settings.capacity } else { Usage::default() };
        let mut script = self.keys.script(&CLAIM);
        script.key(self.keys.of(key.id())).arg(hex(key.id())).arg(&key.call().as_bytes()[..]);
        script.arg(hex(key.owner().as_bytes())).arg(&holder[..]).arg(self.lease());
        script.arg(capacity.records).arg(capacity.bytes);
        let (state, reply): (i64, Vec<u8>) = self.link.run(&script).await?;
        Ok(match state {
            0 => Found::Claimed,
            1 => Found::OtherCall,
            2 => Found::Running,
            3 => Found::Done(reply),
            _ => Found::Full,
        })
    }

    async fn is_running(&self, id: &Id) -> Result<bool, StoreError> {
        let (mut fields, key) = (redis::pipe(), self.keys.of(id));
        // The reply itself is not read: it may be large, and duplicates look several times a second.
        fields.hexists(&key, "holder").hexists(&key, "reply");
        let (is_claimed, has_reply): (bool, bool) = self.link.query_all(&fields).await?;
        Ok(is_claimed && !has_reply)
    }

    async fn record(&self, id: &Id, holder: &Holder, reply: &[u8], end: i64) -> Result<bool, StoreError> {
        let mut script = self.keys.script(&RECORD);
        script.key(self.keys.of(id)).arg(hex(id)).arg(&holder[..]).arg(reply).arg(end);
        self.link.run(&script).await
    }

    async fn reseal(&self, id: &Id, old: &[u8], new: &[u8]) -> Result<(), StoreError> {
        self.link.run(RESEAL.prepare_invoke().key(self.keys.of(id)).arg(old).arg(new)).await
    }

    fn renewer(&self) -> Box<dyn ClaimRenewer> {
        Box::new(RedisClaims { link: self.link.another(), keys: self.keys.clone(), lease: self.lease() })
    }

    async fn release(&self, id: &Id, holder: &Holder) -> Result<(), StoreError> {
        let mut script = self.keys.script(&RELEASE);
        script.key(self.keys.of(id)).arg(hex(id)).arg(&holder[..]);
        self.link.run(&script).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        self.link.run(self.keys.script(&SWEEP).arg(BATCH)).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        let mut command = redis::cmd("HMGET");
        command.arg(&self.keys.shared[1]).arg("records:all").arg("bytes:all");
        let (records, bytes): (Option<u64>, Option<u64>) = self.link.query(&command).await?;
        Ok(Usage { records: records.unwrap_or_default(), bytes: bytes.unwrap_or_default() })
    }
}

/// Renewer of claims.
struct RedisClaims {
    link: Link,
    keys: Keys,
    lease: u64,
}

impl ClaimRenewer for RedisClaims {
    fn renew<'a>(&'a mut self, claims: &'a [(Id, Holder)]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut script = self.keys.script(&RENEW);
            script.arg(self.lease);
            for (id, holder) in claims {
                script.key(self.keys.of(id)).arg(hex(id)).arg(&holder[..]);
            }
            self.link.run(&script).await
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
