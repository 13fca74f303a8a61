//! Replies that wait (K3), and claims whose answers come late (M6), by a clock that a test moves.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use roundtrip::seal::Digest;
use roundtrip::server::ledger::ClaimGuard;
use tokio::time::Instant;
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::opening::Opening;

/// Statements on a table in memory, which refuses replies and answers late as it is told. Databases that do so for real are in
/// `tests/refusals.rs`: these tests count attempts, and have an hour pass in no time.
#[derive(Clone, Default)]
struct Table(Arc<Stored>);

type Rows = HashMap<Id, (Holder, Option<Vec<u8>>)>;

#[derive(Default)]
struct Stored {
    rows: Mutex<Rows>,
    refuses: AtomicBool,
    /// True if sweeps do not end.
    hangs: AtomicBool,
    attempts: AtomicU64,
    renewals: AtomicU64,
    /// Time that passes before the next answer to a claim. Another process runs the round meanwhile.
    suspended: Mutex<Option<Duration>>,
}

impl Stored {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recorded(&self) -> usize {
        self.rows().values().filter(|(_, reply)| reply.is_some()).count()
    }
}

impl Records for Table {
    async fn claim(&self, key: &RoundKey, holder: &Holder, has_room: bool) -> Result<Found, StoreError> {
        if !has_room && !self.0.rows().contains_key(key.id()) {
            return Ok(Found::Full);
        }
        let found = match self.0.rows().entry(*key.id()).or_insert((*holder, None)) {
            (_, Some(reply)) => Found::Done(reply.clone()),
            (own, None) if own == holder => Found::Claimed,
            _ => Found::Running,
        };
        let suspended = self.0.suspended.lock().unwrap().take();
        if let Some(time) = suspended {
            self.0.rows().insert(*key.id(), ([9; 16], Some(b"\0of another".to_vec())));
            tokio::time::advance(time).await;
        }
        Ok(found)
    }

    async fn is_running(&self, _: &Id) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn record(&self, id: &Id, holder: &Holder, reply: &[u8], _: i64) -> Result<bool, StoreError> {
        self.0.attempts.fetch_add(1, Ordering::SeqCst);
        if self.0.refuses.load(Ordering::SeqCst) {
            return Err(StoreError::ReadOnly);
        }
        let mut rows = self.0.rows();
        let Some((own, stored)) = rows.get_mut(id).filter(|(own, _)| own == holder) else { return Ok(false) };
        (*own, *stored) = (*holder, Some(reply.to_vec()));
        Ok(true)
    }

    async fn reseal(&self, _: &Id, _: &[u8], _: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    fn renewer(&self) -> Box<dyn ClaimRenewer> {
        Box::new(self.clone())
    }

    async fn release(&self, id: &Id, holder: &Holder) -> Result<(), StoreError> {
        self.0.rows().retain(|stored, (own, reply)| stored != id || own != holder || reply.is_some());
        Ok(())
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        if self.0.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(0)
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        Ok(Usage::default())
    }
}

impl ClaimRenewer for Table {
    fn renew<'a>(&'a mut self, claims: &'a [(Id, Holder)]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.renewals.fetch_add(claims.len() as u64, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Lines that were logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock().unwrap()).lines().map(str::to_owned).collect()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn ledger() -> (SharedLedger<Table>, Arc<Stored>) {
    ledger_with(Opening::<()>::new("").settings.lease)
}

fn ledger_with(lease: Duration) -> (SharedLedger<Table>, Arc<Stored>) {
    let (table, settings) = (Table::default(), Settings { lease, ..Opening::<()>::new("").settings });
    (SharedLedger::start(table.clone(), &settings).unwrap(), table.0)
}

fn key(number: u16, owner: &[u8]) -> RoundKey {
    let mut id = [0; RoundKey::LEN];
    id[..2].copy_from_slice(&number.to_be_bytes());
    RoundKey::new(id, Digest::from_bytes([0; 16])).owned_by(Digest::of("owner", &[owner]))
}

fn later() -> Timestamp {
    Timestamp::from_unix(100_000_000_000)
}

async fn run(ledger: &SharedLedger<Table>, key: &RoundKey) -> Result<Box<dyn ClaimGuard>, LedgerError> {
    match ledger.claim(key).await? {
        Claim::Run(guard) => Ok(guard),
        other => panic!("it is not free: {other:?}"),
    }
}

/// K3: replies that a database refuses are tried once a second, whatever their number, while their claims are renewed. An outage
/// takes two lines of the log, and then every reply is there.
#[tokio::test(start_paused = true)]
async fn one_worker_records_all_replies_that_wait() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let (ledger, stored) = ledger();
    let mut guards = Vec::new();
    for number in 0..50 {
        guards.push(run(&ledger, &key(number, b"ada")).await.unwrap());
    }
    stored.refuses.store(true, Ordering::SeqCst);
    for guard in guards {
        let deferred = guard.record("reply".into(), later()).await;
        assert!(matches!(deferred, Err(LedgerError::Deferred(_))), "{deferred:?}");
    }
    assert_eq!(stored.attempts.swap(0, Ordering::SeqCst), 50, "each is tried once before it waits");
    let (begun, outage) = (Instant::now(), Duration::from_secs(300));
    tokio::time::sleep(outage).await;
    let attempts = stored.attempts.load(Ordering::SeqCst);
    assert!((290..=301).contains(&attempts), "{attempts}");
    assert_eq!(ledger.0.held.all().len(), 50, "their claims are renewed");
    stored.refuses.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stored.recorded(), 50, "{:?}", begun.elapsed());
    let guard = run(&ledger, &key(50, b"ada")).await.unwrap();
    guard.record("reply".into(), later()).await.expect("a record, at once");
    assert!(ledger.0.held.all().is_empty());
    let lines = log.lines();
    let [.., first, last] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(lines.iter().filter(|line| line.contains("replies")).count(), 2, "{lines:?}");
    assert!(first.contains("kept in memory") && last.contains("recorded=50"), "{lines:?}");
}

/// K3, Z3: past the share of a caller its rounds are refused before they run, past the bound all rounds; what waits is not
/// dropped, and is recorded in the end.
#[tokio::test(start_paused = true)]
async fn waiting_replies_refuse_new_rounds_and_are_not_dropped() {
    let (ledger, stored) = ledger();
    let mut guards = Vec::new();
    for number in 0..10 {
        guards.push(run(&ledger, &key(number, b"ada")).await.unwrap());
    }
    stored.refuses.store(true, Ordering::SeqCst);
    let large = vec![b'x'; 10 << 20];
    for (number, guard) in guards.into_iter().enumerate() {
        let claimed = run(&ledger, &key(100, b"ada")).await;
        // 32 MiB of 64.
        assert_eq!(claimed.is_err(), number >= 4, "{number}");
        assert!(claimed.is_ok() || matches!(claimed, Err(LedgerError::Full)));
        let others = run(&ledger, &key(101, b"bob")).await;
        assert_eq!(others.is_err(), number >= 7, "{number}");
        drop((claimed, others));
        let deferred = guard.record(large.clone().into(), later()).await;
        assert!(matches!(deferred, Err(LedgerError::Deferred(_))), "{deferred:?}");
    }
    stored.refuses.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stored.recorded(), 10);
    run(&ledger, &key(100, b"ada")).await.expect("room");
}

/// K3: a repeat of a recorded round gets its reply though replies wait past their bound, and a round that was waited for is not
/// begun then.
#[tokio::test(start_paused = true)]
async fn waiting_replies_refuse_no_repeat() {
    let (ledger, stored) = ledger();
    let recorded = run(&ledger, &key(1, b"ada")).await.unwrap();
    recorded.record("reply".into(), later()).await.unwrap();
    let (large, abandoned) =
        (run(&ledger, &key(2, b"ada")).await.unwrap(), run(&ledger, &key(3, b"ada")).await.unwrap());
    let waits = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.claim(&key(3, b"ada")).await }
    });
    tokio::task::yield_now().await;
    stored.refuses.store(true, Ordering::SeqCst);
    assert!(large.record(vec![b'x'; 64 << 20].into(), later()).await.is_err());
    let claimed = ledger.claim(&key(1, b"ada")).await;
    assert!(matches!(&claimed, Ok(Claim::Replay(reply)) if reply == "reply"), "{claimed:?}");
    assert!(matches!(ledger.claim(&key(4, b"ada")).await, Err(LedgerError::Full)));
    drop(abandoned);
    assert!(matches!(waits.await.unwrap(), Err(LedgerError::Full)), "there was room when it began to wait");
}

/// K3: a process that stops waits until the replies that were refused are recorded.
#[tokio::test(start_paused = true)]
async fn a_ledger_is_settled_once_no_reply_waits() {
    let (ledger, stored) = ledger();
    ledger.settled().await;
    let guard = run(&ledger, &key(1, b"ada")).await.unwrap();
    stored.refuses.store(true, Ordering::SeqCst);
    assert!(guard.record("reply".into(), later()).await.is_err());
    let settled = tokio::time::timeout(Duration::from_secs(60), ledger.settled());
    assert!(settled.await.is_err(), "it is not recorded yet");
    stored.refuses.store(false, Ordering::SeqCst);
    ledger.settled().await;
    assert_eq!(stored.recorded(), 1);
}

/// M6: claims are renewed while a handler blocks its runtime for longer than a lease, and while sweeps do not end.
#[tokio::test]
async fn claims_are_renewed_while_a_handler_blocks() {
    let lease = Duration::from_millis(60);
    let (ledger, stored) = ledger_with(lease);
    stored.hangs.store(true, Ordering::SeqCst);
    let guard = run(&ledger, &key(1, b"ada")).await.unwrap();
    let renewals = || stored.renewals.load(Ordering::SeqCst);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while renewals() < 10 && std::time::Instant::now() < until {
        std::thread::sleep(lease);
    }
    assert!(renewals() >= 10, "{}", renewals());
    drop(guard);
}

/// K3: replies whose worker has ended with its runtime are recorded by another, though none follows that is refused.
#[test]
fn replies_are_recorded_though_the_runtime_of_their_worker_has_ended() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (ledger, stored) = first.block_on(async {
        let (ledger, stored) = ledger_with(Duration::from_millis(60));
        let guard = run(&ledger, &key(1, b"ada")).await.unwrap();
        stored.refuses.store(true, Ordering::SeqCst);
        assert!(guard.record("reply".into(), later()).await.is_err());
        (ledger, stored)
    });
    drop(first);
    stored.refuses.store(false, Ordering::SeqCst);
    runtime().block_on(async {
        let emptied = tokio::time::timeout(Duration::from_secs(20), ledger.0.backlog.emptied());
        emptied.await.expect("the thread of the claims starts a worker");
    });
    assert_eq!(stored.recorded(), 1);
}

/// M6: a claim that another process has taken over by the time its answer is seen does not run its round. The lease counts from
/// before the statement was sent.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_older_than_its_lease_is_made_again() {
    let (ledger, stored) = ledger();
    *stored.suspended.lock().unwrap() = Some(Duration::from_secs(31));
    let claimed = ledger.claim(&key(1, b"ada")).await;
    assert!(matches!(&claimed, Ok(Claim::Replay(reply)) if reply == "of another"), "{claimed:?}");
    *stored.suspended.lock().unwrap() = Some(Duration::from_secs(5));
    let claimed = ledger.claim(&key(2, b"ada")).await;
    assert!(matches!(claimed, Ok(Claim::Run(_))), "the lease has time left: {claimed:?}");
}
