//! Keys of one issuer: found, cached, refreshed, and kept while the issuer is down.

use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use roundtrip_core::auth::{
    AuthRequest, Jwt, KeySet, ServerMetadata, TokenRefusal, UrlPolicy, issuer_candidates,
};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::fetch::{Fetch, Fetched};
use super::memory::TokenMemory;
use super::{IssuerSettings, PATIENCE};
use crate::lock::{lock, read, write};
use crate::signature;

/// Shortest time for which keys are not fetched again by age.
const SHORTEST_AGE: Duration = Duration::from_secs(5 * 60);
/// Age at which keys without `Cache-Control` are fetched again.
const USUAL_AGE: Duration = Duration::from_secs(60 * 60);
/// Longest time for which keys are not fetched again.
const LONGEST_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Time for which old keys are used while fetches fail.
const STALE_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Shortest time between two fetches while there are keys: five a minute. Strangers can use up the fetch that would bring a
/// new key, and its tokens are refused until the next one.
const BETWEEN_FETCHES: Duration = Duration::from_secs(12);
/// Shortest time between two fetches while there are none.
const BETWEEN_FIRST_FETCHES: Duration = Duration::from_secs(5);
/// Longest time that a fetch takes, discovery included.
const LONGEST_FETCH: Duration = Duration::from_secs(30);
/// Greatest number of keys that are tried for a token without `kid`.
const MOST_TRIED: usize = 8;

/// Keys of one issuer.
pub(super) struct IssuerKeys {
    settings: IssuerSettings,
    policy: UrlPolicy,
    fetch: Arc<dyn Fetch>,
    memory: Arc<TokenMemory>,
    held: RwLock<Option<Arc<Held>>>,
    fetches: Mutex<Fetches>,
    /// Number of fetches that have ended.
    ended: watch::Sender<u64>,
}

/// Keys that were fetched.
struct Held {
    keys: KeySet,
    document: Fetched,
    /// Time from which they are fetched again in the background.
    due: Instant,
    /// Time until which they are used.
    usable_until: Instant,
}

/// The fetch that runs, and the last one.
#[derive(Default)]
struct Fetches {
    running: bool,
    began: Option<Instant>,
    failed: bool,
}

/// Verdict about the signature of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// It is by a key of the issuer.
    Good,
    /// It is not.
    Refused(TokenRefusal),
    /// Keys have to be fetched first: call [`IssuerKeys::fetched`].
    Wait,
    /// Keys cannot be fetched now.
    Unavailable,
}

impl IssuerKeys {
    pub(super) fn new(
        settings: IssuerSettings,
        policy: UrlPolicy,
        fetch: Arc<dyn Fetch>,
        memory: Arc<TokenMemory>,
    ) -> Self {
        Self {
            settings,
            policy,
            fetch,
            memory,
            held: RwLock::default(),
            fetches: Mutex::default(),
            ended: watch::Sender::new(0),
        }
    }

    /// Returns the issuer's identifier.
    pub(super) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Judges the signature of a token by the keys that are here. Keys that are due are fetched in the background.
    pub(super) fn judge(self: &Arc<Self>, token: &Jwt<'_>) -> Judged {
        let now = Instant::now();
        let Some(held) = self.usable(now) else { return self.without_keys(now) };
        if now >= held.due {
            self.begin(now);
        }
        match held.verify(token) {
            Ok(()) => Judged::Good,
            Err(refusal) if held.knows_key_of(token) => Judged::Refused(refusal),
            Err(refusal) => self.with_unknown_key(now, refusal),
        }
    }

    /// Fetches keys, or waits for the fetch that runs, for a bounded time. A fetch goes on when the caller is gone.
    pub(super) async fn fetched(self: &Arc<Self>) {
        let mut ended = self.ended.subscribe();
        self.begin(Instant::now());
        if lock(&self.fetches).running {
            // A fetch that takes longer than this ends for the requests after this one.
            drop(tokio::time::timeout(PATIENCE, ended.changed()).await);
        }
    }

    fn usable(&self, now: Instant) -> Option<Arc<Held>> {
        read(&self.held).as_ref().filter(|held| now < held.usable_until).map(Arc::clone)
    }

    fn without_keys(&self, now: Instant) -> Judged {
        if lock(&self.fetches).may_begin(now, BETWEEN_FIRST_FETCHES) {
            Judged::Wait
        } else {
            Judged::Unavailable
        }
    }

    /// Judges a token whose key is not here: it may be new, but is looked for five times a minute only.
    fn with_unknown_key(&self, now: Instant, refusal: TokenRefusal) -> Judged {
        let fetches = lock(&self.fetches);
        if fetches.may_begin(now, BETWEEN_FETCHES) {
            Judged::Wait
        } else if fetches.failed {
            Judged::Unavailable
        } else {
            Judged::Refused(refusal)
        }
    }

    /// Begins a fetch, unless one runs or has just been. It is a task of its own: the request that wants it may be dropped.
    fn begin(self: &Arc<Self>, now: Instant) {
        let gap = if self.usable(now).is_some() { BETWEEN_FETCHES } else { BETWEEN_FIRST_FETCHES };
        let Ok(runtime) = Handle::try_current() else { return };
        if lock(&self.fetches).begin(now, gap) {
            // Outside of the lock: a runtime that shuts down drops the task at once, and that ends the fetch.
            let attempt = Attempt { keys: Arc::clone(self), held: None };
            drop(runtime.spawn(attempt.run()));
        }
    }

    async fn load(&self) -> Result<Held, String> {
        let url = match &self.settings.jwks {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let document = self.get(&url).await.map_err(|why| format!("the keys at `{url}`: {why}"))?;
        let keys = KeySet::parse(&document.body).map_err(|why| format!("the keys at `{url}`: {why}"))?;
        if keys.is_empty() {
            return Err(format!("the keys at `{url}`: none of them verifies signatures"));
        }
        let age = document.max_age.unwrap_or(USUAL_AGE).clamp(SHORTEST_AGE, LONGEST_AGE);
        let due = Instant::now() + age;
        Ok(Held { keys, document, due, usable_until: due + STALE_FOR })
    }

    /// Finds the URL of the keys in the issuer's metadata.
    async fn discover(&self) -> Result<String, String> {
        let issuer = self.policy.read(self.name()).map_err(|why| why.to_string())?;
        let mut reasons = Vec::new();
        for url in issuer_candidates(&issuer) {
            match self.metadata(&url).await {
                Ok(metadata) => {
                    let keys = metadata.endpoint("jwks_uri", &self.policy);
                    return keys.map(String::from).map_err(|why| format!("the metadata at `{url}`: {why}"));
                }
                Err(why) => reasons.push(format!("the metadata at `{url}`: {why}")),
            }
        }
        Err(reasons.join("; "))
    }

    async fn metadata(&self, url: &str) -> Result<ServerMetadata, String> {
        let document = self.get(url).await?;
        ServerMetadata::parse(&document.body, self.name()).map_err(|why| why.to_string())
    }

    async fn get(&self, url: &str) -> Result<Fetched, String> {
        let url = self.policy.read(url).map_err(|why| why.to_string())?;
        let fetched = self.fetch.send(AuthRequest::get(url)).await?;
        fetched.success()?;
        Ok(fetched)
    }

    /// Puts new keys in place of the old ones, and forgets tokens if they are others.
    fn replace(&self, held: Held) {
        let held = Arc::new(held);
        let old = write(&self.held).replace(Arc::clone(&held));
        if old.is_some_and(|old| old.document.body != held.document.body) {
            self.memory.forget();
        }
    }
}

impl Fetches {
    /// Returns whether a fetch runs, or may begin now.
    fn may_begin(&self, now: Instant, gap: Duration) -> bool {
        self.running || self.began.is_none_or(|began| now.duration_since(began) >= gap)
    }

    /// Notes that a fetch begins, and returns true, unless one runs or has just been.
    fn begin(&mut self, now: Instant, gap: Duration) -> bool {
        if self.running || !self.may_begin(now, gap) {
            return false;
        }
        self.running = true;
        self.began = Some(now);
        true
    }
}

impl Held {
    fn verify(&self, token: &Jwt<'_>) -> Result<(), TokenRefusal> {
        let header = token.header();
        let mut refusal = TokenRefusal::UnknownKey;
        for key in self.keys.candidates(header).take(MOST_TRIED) {
            if signature::verify(key, header.algorithm, token.signed(), token.signature()) {
                return Ok(());
            }
            refusal = TokenRefusal::Signature;
        }
        Err(refusal)
    }

    /// Returns whether the token names a key that is here. A token that names none may be by a key that is new.
    fn knows_key_of(&self, token: &Jwt<'_>) -> bool {
        token.header().key_id.as_deref().is_some_and(|id| self.keys.contains(id))
    }
}

/// A fetch that runs. It ends when this is dropped, whatever becomes of its task.
struct Attempt {
    keys: Arc<IssuerKeys>,
    held: Option<Held>,
}

impl Attempt {
    async fn run(mut self) {
        let loaded = tokio::time::timeout(LONGEST_FETCH, self.keys.load()).await;
        match loaded.unwrap_or_else(|_| Err(format!("no answer within {LONGEST_FETCH:?}"))) {
            Ok(held) => self.held = Some(held),
            Err(why) => tracing::warn!(issuer = self.keys.name(), why, "the issuer's keys cannot be fetched"),
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let failed = self.held.is_none();
        if let Some(held) = self.held.take() {
            self.keys.replace(held);
        }
        let mut fetches = lock(&self.keys.fetches);
        fetches.running = false;
        fetches.failed = failed;
        drop(fetches);
        self.keys.ended.send_modify(|ended| *ended += 1);
    }
}
