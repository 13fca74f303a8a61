//! The grant in use: one holder per client and account, which renews it once for all callers.
//!
//! Many calls that find the token due wait for one renewal, which runs as a task and ends even if they are dropped. The store
//! is read without its lock first, then with it: another process may have renewed the grant. [`super::store`] says what happens
//! where something fails.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, RwLock};
use std::time::SystemTime;

use http::HeaderValue;
use roundtrip_core::auth::{AuthError, Grant, HttpUrl, Registration, ScopeSet, Secret, Terms, TokenScheme};
use roundtrip_core::seal::Timestamp;
use tokio::sync::watch;

use super::exchanges::{Exchanges, Exchanging};
use super::flight::Flight;
use super::store::{Record, StoreHandle};
use crate::lock::{read, write};

mod renewal;
#[cfg(test)]
mod tests;

use renewal::Renewal;

/// Time before the end of a token at which it is renewed, in seconds.
const EARLY: u64 = 30;
/// Longest random time that is added to that, in seconds: processes that got their tokens together renew them apart.
const JITTER: u64 = 15;

/// Result of a renewal: `None` if a sign-in is needed.
pub(crate) type Renewed = Result<Option<Arc<Current>>, AuthError>;

/// Exchange of an old grant for a new one, at the issuer of the old one.
pub(crate) trait Exchange: Clone + Send + Sync + 'static {
    /// Renews a grant: by its refresh token, or anew where no person is needed. `None` means that there is no way to.
    fn refresh(&self, old: &Grant) -> impl Future<Output = Result<Option<Grant>, AuthError>> + Send;
}

/// A grant as requests use it.
#[derive(Debug)]
pub(crate) struct Current {
    grant: Grant,
    authorization: HeaderValue,
    /// Time at which it is renewed, in seconds since 1970. A token whose end is unknown is used until it is refused.
    renew_at: AtomicU64,
    /// Tells that the server has refused the token.
    refused: AtomicBool,
    /// Tells that the server has accepted the token, or that its first refusal was counted.
    tried: AtomicBool,
}

impl Current {
    /// Returns the `Authorization` header of a request to the server.
    pub(crate) fn authorization(&self) -> &HeaderValue {
        &self.authorization
    }

    /// Returns the grant.
    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Notes that the server has accepted the token, or rejected it. Returns whether that is the first word on it.
    pub(crate) fn is_first_word(&self) -> bool {
        !self.tried.load(Relaxed) && !self.tried.swap(true, Relaxed)
    }

    /// Returns whether requests may use it without a renewal.
    fn is_good(&self) -> bool {
        !self.is_refused() && now().as_unix() < self.renew_at.load(Relaxed)
    }

    /// Returns whether requests may use it where it cannot be renewed now.
    fn is_usable(&self) -> bool {
        !self.is_refused() && !self.grant.is_over(now())
    }

    fn is_refused(&self) -> bool {
        self.refused.load(Relaxed)
    }

    /// Puts the next renewal off. A token that has ended is not used before it.
    fn renew_at(&self, time: u64) {
        self.renew_at.store(time.min(self.grant.expires_at.unwrap_or(u64::MAX)), Relaxed);
    }
}

/// Holder of the grant in use at one server.
#[derive(Debug, Clone)]
pub(crate) struct Tokens(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    server: HttpUrl,
    store: StoreHandle,
    state: RwLock<State>,
    /// Count of the grants that were no renewals of those before them, and of sign-outs. Streams and sessions end with them.
    changes: watch::Sender<u64>,
    renewals: Flight<Renewed>,
    exchanges: Exchanges,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Current>>,
    /// Error that ended the last grant: the reason a sign-in is needed.
    over: Option<AuthError>,
    /// A grant that is used and could not be stored.
    unsaved: Option<Unsaved>,
    /// Tells that the store was read, which is before the first request.
    looked: bool,
}

/// Origin of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    SignIn,
    Renewal,
    /// Another process, or an earlier one.
    Store,
}

/// A grant that could not be stored.
#[derive(Debug)]
struct Unsaved {
    /// Access token of the stored grant that it replaces.
    replaces: Option<Secret>,
    /// Time of the next attempt, in seconds since 1970.
    retry_at: u64,
}

impl Tokens {
    /// Creates a holder for a server, by the URL as the author gave it.
    pub(crate) fn new(server: HttpUrl, store: StoreHandle) -> Self {
        let (state, changes, renewals, exchanges) = Default::default();
        Self(Arc::new(Shared { server, store, state, changes, renewals, exchanges }))
    }

    /// Counts the exchange of a code, before it is sent.
    pub(super) fn exchanging(&self) -> Result<Exchanging, AuthError> {
        self.0.exchanges.begin()
    }

    /// Waits until the tokens that were asked for are stored, ten seconds at most, and asks for no more.
    pub(crate) async fn close(&self) {
        self.0.exchanges.close().await;
    }

    /// Returns the count of changes: of grants that were no renewals of those before them, and of sign-outs. A token that is
    /// asked for later is of this count, or of a later one.
    pub(crate) fn changes(&self) -> u64 {
        *self.0.changes.borrow()
    }

    /// Waits for the next of these changes after this call, here or in another process.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut changes = self.0.changes.subscribe();
        async move {
            // A holder that is dropped has signed nobody out.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns a token that is still good, without waiting for anything.
    pub(crate) fn now(&self) -> Option<Arc<Current>> {
        self.0.now()
    }

    /// Returns a token that is good: the one in use, one from the store, or a renewed one. `None` means that a sign-in is
    /// needed; [`AuthError::GrantOver`] means that too, and why.
    pub(crate) async fn token(&self, exchange: &impl Exchange) -> Renewed {
        match self.now() {
            Some(current) => Ok(Some(current)),
            None => self.renew(exchange).await,
        }
    }

    /// Returns a token in place of one that the server has refused.
    pub(crate) async fn rejected(&self, used: &Current, exchange: &impl Exchange) -> Renewed {
        used.refused.store(true, Relaxed);
        self.token(exchange).await
    }

    async fn renew(&self, exchange: &impl Exchange) -> Renewed {
        let start = || Renewal::new(Arc::clone(&self.0), exchange.clone()).run();
        self.0.renewals.run(start).await.unwrap_or(Err(AuthError::Interrupted))
    }

    /// Takes the grant of a sign-in.
    ///
    /// # Errors
    /// Fails if it cannot be stored. It is used all the same as long as the process lives.
    pub(crate) async fn signed_in(&self, grant: Grant) -> Result<(), AuthError> {
        let shared = Arc::clone(&self.0);
        spawned(async move { shared.signed_in(grant).await }).await
    }

    /// Stores a registration, before the browser opens: the person may never come back.
    pub(crate) async fn registered(&self, registration: Registration) -> Result<(), AuthError> {
        self.change(|record| record.register(registration)).await
    }

    /// Returns the registrations that are stored, of any issuer.
    pub(crate) async fn registrations(&self) -> Result<Vec<Registration>, AuthError> {
        Ok(self.0.load().await?.registrations)
    }

    /// Returns the terms of the grant in use, which may be over.
    pub(crate) fn terms(&self) -> Option<Terms> {
        read(&self.0.state).current.as_ref().map(|current| current.grant.terms.clone())
    }

    /// Returns the scopes that were requested for the grant in use, and for the stored one, which may be another process's.
    pub(crate) async fn requested(&self) -> Result<ScopeSet, AuthError> {
        let stored = self.0.load().await?.grant.map(|grant| grant.terms.requested).unwrap_or_default();
        Ok(match self.terms() {
            Some(terms) => terms.requested.union(&stored),
            None => stored,
        })
    }

    /// Returns the issuer of the grant in use, or else of the stored one, if its token is bound to a key.
    pub(crate) async fn bound_by(&self) -> Result<Option<String>, AuthError> {
        let bound_by =
            |grant: &Grant| (grant.scheme == TokenScheme::Dpop).then(|| grant.terms.issuer.clone());
        let current = read(&self.0.state).current.clone();
        match current {
            Some(current) => Ok(bound_by(&current.grant)),
            None => Ok(self.0.load().await?.grant.as_ref().and_then(bound_by)),
        }
    }

    /// Takes the grant of another process, if it has stored one for which these scopes were requested. Returns whether it has.
    pub(crate) async fn take_wider(&self, scopes: &ScopeSet) -> Result<bool, AuthError> {
        let record = self.0.load().await?;
        let is_wide = |grant: &Grant| scopes.missing_from(&grant.terms.requested).is_empty();
        Ok(record.grant.as_ref().is_some_and(is_wide) && self.0.take(&record).is_some())
    }

    /// Returns the stored key of proofs, or stores this one.
    pub(crate) async fn proof_key(&self, fresh: Secret) -> Result<Secret, AuthError> {
        // A key that is there is never replaced: reading it needs no lock.
        if let Some(stored) = self.0.load().await?.proof_key {
            return Ok(stored);
        }
        self.change(|record| record.proof_key.get_or_insert(fresh).clone()).await
    }

    /// Drops the grant, here and in the store, and keeps the registrations.
    pub(crate) async fn sign_out(&self) -> Result<(), AuthError> {
        let shared = Arc::clone(&self.0);
        spawned(async move { shared.sign_out().await }).await
    }

    /// Changes the stored record under its lock, also if the caller is dropped.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Record) -> T + Send + 'static,
    ) -> Result<T, AuthError> {
        let shared = Arc::clone(&self.0);
        spawned(async move { shared.change(change).await }).await
    }
}

impl Shared {
    fn now(&self) -> Option<Arc<Current>> {
        let state = read(&self.state);
        let is_stored = state.unsaved.as_ref().is_none_or(|unsaved| now().as_unix() < unsaved.retry_at);
        state.current.as_ref().filter(|current| is_stored && current.is_good()).map(Arc::clone)
    }

    async fn load(&self) -> Result<Record, AuthError> {
        Ok(self.store.0.load(self.server.as_str()).await?.unwrap_or_default())
    }

    async fn save(&self, record: &Record) -> Result<(), AuthError> {
        Ok(self.store.0.save(self.server.as_str(), record).await?)
    }

    async fn change<T>(&self, change: impl FnOnce(&mut Record) -> T) -> Result<T, AuthError> {
        let _held = self.store.0.lock(self.server.as_str()).await?;
        let mut record = self.load().await?;
        let result = change(&mut record);
        self.save(&record).await?;
        Ok(result)
    }

    async fn signed_in(&self, mut grant: Grant) -> Result<(), AuthError> {
        grant.terms.sign_in = random_name();
        let (before, new) = (read(&self.state).current.clone(), grant.clone());
        let stored = self.change(|record| record.sign_in(new)).await;
        // After the lock was held: a renewal of the grant before it cannot take its place.
        self.adopt(grant, Origin::SignIn);
        let Err(error) = stored else { return Ok(()) };
        let held = match self.load().await {
            Ok(record) => record.grant.map(|grant| grant.access_token),
            Err(_) => before.map(|current| current.grant.access_token.clone()),
        };
        Err(self.not_stored(held, &error))
    }

    async fn sign_out(&self) -> Result<(), AuthError> {
        let held = self.store.0.lock(self.server.as_str()).await;
        let signed_out = match &held {
            Ok(_) => self.drop_stored().await,
            Err(_) => Ok(()),
        };
        // Under the lock: a renewal that waits for it must not find a grant to store again.
        self.forget();
        held?;
        signed_out
    }

    /// Drops the stored grant, under the lock of the store.
    async fn drop_stored(&self) -> Result<(), AuthError> {
        let mut record = self.load().await?;
        record.grant = None;
        self.save(&record).await
    }

    /// Drops the grant in use, and ends the streams and the session that were opened with it.
    fn forget(&self) {
        let mut state = write(&self.state);
        *state = State { looked: true, ..State::default() };
        self.count_change();
    }

    /// Counts a change. The state is locked meanwhile, so that no request takes the new grant for one of the old count.
    fn count_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Takes the stored grant if it is another one than the one in use, and good: another process has got it.
    fn take(&self, record: &Record) -> Option<Arc<Current>> {
        let grant = record.grant.as_ref().filter(|grant| !grant.is_due(now()))?;
        self.hold(Some(grant.clone())).then(|| self.now())?
    }

    /// Makes a stored grant the one in use, unless that is the same or newer.
    fn hold(&self, grant: Option<Grant>) -> bool {
        let Some(grant) = grant.filter(|grant| !self.is_old(&grant.access_token)) else {
            return false;
        };
        write(&self.state).unsaved = None;
        self.adopt(grant, Origin::Store).is_some()
    }

    /// Returns whether an access token is the one in use, or the one before it.
    fn is_old(&self, token: &Secret) -> bool {
        let state = read(&self.state);
        let replaced = state.unsaved.as_ref().and_then(|unsaved| unsaved.replaces.as_ref());
        replaced == Some(token)
            || state.current.as_ref().is_some_and(|current| current.grant.access_token == *token)
    }

    /// Notes that the grant in use is not stored.
    fn not_stored(&self, replaces: Option<Secret>, error: &AuthError) -> AuthError {
        tracing::error!(%error, server = self.server.without_query(), "new tokens could not be stored");
        let retry_at = now().as_unix().saturating_add(EARLY);
        write(&self.state).unsaved = Some(Unsaved { replaces, retry_at });
        AuthError::NotStored(error.to_string())
    }

    /// Uses a grant from now on. One that has just been got is used for half of its life at least, however short that is.
    /// Returns `None` for a grant of another resource.
    fn adopt(&self, grant: Grant, origin: Origin) -> Option<Arc<Current>> {
        let authorization = grant.authorization(&self.server)?;
        let is_new = origin != Origin::Store;
        let renew_at = AtomicU64::new(grant.expires_at.map_or(u64::MAX, |end| renew_at(end, is_new)));
        let (refused, tried) = Default::default();
        let current = Arc::new(Current { grant, authorization, renew_at, refused, tried });
        let mut state = write(&self.state);
        let before = state.current.replace(Arc::clone(&current));
        if state.is_change(before.as_deref(), &current.grant, origin) {
            // After the grant, and under its lock: a request of this count is sent with this grant, or with a later one.
            self.count_change();
        }
        if is_new {
            (state.over, state.unsaved) = (None, None);
        }
        Some(current)
    }
}

impl State {
    /// Returns whether a grant is another one than that before it, and no renewal of it. The first one that the store gives
    /// is no change: no request was sent before it.
    fn is_change(&self, before: Option<&Current>, grant: &Grant, origin: Origin) -> bool {
        match origin {
            Origin::SignIn => true,
            Origin::Renewal => false,
            Origin::Store => match before {
                Some(before) => !before.grant.is_of_same_sign_in(grant),
                None => self.looked,
            },
        }
    }
}

/// Returns a random name for a sign-in. Without randomness there is none, and every grant counts as a change.
fn random_name() -> Option<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(random)))
}

/// Returns the time at which a token is renewed.
fn renew_at(end: u64, is_new: bool) -> u64 {
    let mut random = [0];
    // Without randomness there is no jitter, which harms nothing.
    getrandom::fill(&mut random).ok();
    let early = end.saturating_sub(EARLY + u64::from(random[0]) % (JITTER + 1));
    let now = now().as_unix();
    if is_new { early.max(now + end.saturating_sub(now) / 2) } else { early }
}

/// Runs a future as a task: it ends even if the caller is dropped.
async fn spawned<T: Send + 'static>(
    work: impl Future<Output = Result<T, AuthError>> + Send + 'static,
) -> Result<T, AuthError> {
    tokio::spawn(work).await.unwrap_or(Err(AuthError::Interrupted))
}

/// Returns the time.
fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}
