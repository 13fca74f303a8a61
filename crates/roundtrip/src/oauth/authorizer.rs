//! Authorizer of one client: presents its token, renews it, and signs in where that is not enough.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use roundtrip_core::auth::{
    Answered, AuthError, CallAttempts, CallbackError, DPOP, Demand, Grant, HttpUrl, Nonces, Proof,
    ResourceAttempts, SignIn, Signer, Step, TokenScheme, step_up_scopes,
};
use roundtrip_core::error::{Error, HttpRefusal};
use tokio::sync::OnceCell;

use super::config::Config;
use super::fetch::Fetch;
use super::flight::Flight;
use super::person::Person;
use super::shared::{Failure, SharedSignIn};
use super::sign_in::{self, Wanted};
use super::surroundings::{around, now};
use super::tokens::{Current, Tokens};
use crate::lock::lock;
use crate::outbound::Outbound;

/// Authorizer of the requests of one client to one server.
pub(crate) struct Authorizer {
    pub(super) server: HttpUrl,
    pub(super) config: Config,
    pub(super) tokens: Tokens,
    pub(super) key: OnceCell<Arc<dyn Signer>>,
    /// Looks at the metadata after a renewal that failed.
    pub(super) checks: Flight<Result<bool, AuthError>>,
    pub(super) attempts: Mutex<ResourceAttempts>,
    /// Tells that there was a sign-in since the server last accepted a token.
    unproven: AtomicBool,
    shared: SharedSignIn,
    /// Person who signs in.
    pub(super) person: Person,
    nonces: Mutex<Nonces>,
    /// Makes numbers of tokens, which tell nothing of them.
    numbers: RandomState,
}

/// Token of a request, if there is one.
pub(crate) type Token = Option<Arc<Current>>;

/// Verdict of a response on the token of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The token is not in question.
    Fine,
    /// The same token, with a proof that has the nonce of the response.
    Nonce,
    /// Another token.
    Rejected,
}

impl Authorizer {
    pub(super) fn new(server: HttpUrl, config: Config, tokens: Tokens) -> Self {
        Self {
            server,
            config,
            tokens,
            key: OnceCell::new(),
            checks: Flight::default(),
            attempts: Mutex::default(),
            unproven: AtomicBool::new(false),
            shared: SharedSignIn::default(),
            person: Person::default(),
            nonces: Mutex::default(),
            numbers: RandomState::new(),
        }
    }

    /// Returns the HTTP of a sign-in, with the clients that it is made by.
    pub(crate) fn fetch(&self, outbound: Outbound) -> Fetch {
        Fetch {
            outbound,
            trusted: self.config.trusted_hosts(&self.server),
            private_networks: self.config.choices.private_networks,
        }
    }

    /// Returns the token for a request: without waiting while it is good, or after a renewal.
    pub(crate) async fn token(&self, fetch: impl FnOnce() -> Fetch) -> Result<Token, AuthError> {
        if let Some(current) = self.tokens.now() {
            return Ok(Some(current));
        }
        let renewing = self.renewing(fetch()).await?;
        let renewed = self.tokens.token(&renewing).await;
        self.unless_over(renewed, renewing, None).await
    }

    /// Returns a token in place of one that the server rejected, in a response with these headers. `None` if that takes a
    /// sign-in.
    pub(crate) async fn renewed(
        &self,
        used: &Current,
        headers: &HeaderMap,
        fetch: Fetch,
    ) -> Result<Token, AuthError> {
        let renewing = self.renewing(fetch).await?;
        let renewed = self.tokens.rejected(used, &renewing).await;
        self.unless_over(renewed, renewing, Demand::of(headers, self.config.has_key())).await
    }

    /// Adds a token to the headers of a request, with a proof where it is bound to a key.
    pub(crate) async fn present(
        &self,
        token: &Token,
        method: &Method,
        headers: &mut HeaderMap,
    ) -> Result<(), AuthError> {
        let Some(current) = token else { return Ok(()) };
        headers.insert(http::header::AUTHORIZATION, current.authorization().clone());
        if current.grant().scheme == TokenScheme::Dpop {
            let proof = self.proof(current.grant(), method).await?;
            headers.insert(HeaderName::from_static(DPOP), proof);
        }
        Ok(())
    }

    async fn proof(&self, grant: &Grant, method: &Method) -> Result<HeaderValue, AuthError> {
        let key = self.proof_key().await?.ok_or(AuthError::DpopKey)?;
        let nonce = lock(&self.nonces).get(&self.server).map(str::to_owned);
        let signed = around(|around| {
            let proof = Proof {
                method: method.as_str(),
                url: &self.server,
                token: Some(&grant.access_token),
                nonce: nonce.as_deref(),
                now: around.now(),
                random: around.random(),
            };
            Ok(proof.sign(&*key)?)
        })?;
        HeaderValue::from_str(&signed).map_err(|_| AuthError::DpopKey)
    }

    /// Reads what a response says of the token of its request.
    pub(crate) fn judge(&self, token: &Token, status: StatusCode, headers: &HeaderMap) -> Verdict {
        let Some(current) = token else { return Verdict::Fine };
        let bound = current.grant().scheme == TokenScheme::Dpop;
        let demand = (status == StatusCode::UNAUTHORIZED).then(|| Demand::of(headers, bound)).flatten();
        let nonce = demand.is_some_and(|demand| demand.wants_nonce());
        if bound && lock(&self.nonces).take(&self.server, headers, nonce) && nonce {
            return Verdict::Nonce;
        }
        if status == StatusCode::UNAUTHORIZED {
            if current.is_first_word() {
                lock(&self.attempts).rejected(now());
            }
            return Verdict::Rejected;
        }
        // The first request with a token that is accepted proves the sign-in, or the renewal.
        if status.is_success() && (current.is_first_word() || self.unproven.load(Ordering::Relaxed)) {
            self.unproven.store(false, Ordering::Relaxed);
            lock(&self.attempts).accepted();
        }
        Verdict::Fine
    }

    /// Returns the number of a token.
    pub(crate) fn number(&self, token: &Token) -> u64 {
        token.as_ref().map_or(0, |current| self.numbers.hash_one(current.grant().access_token.expose()) | 1)
    }

    /// Reads what a refusal wants. `None` if no token would help.
    pub(crate) fn wanted(
        &self,
        refusal: &HttpRefusal,
        attempts: &mut CallAttempts,
    ) -> Option<Result<Wanted, AuthError>> {
        let demand = Demand::of(&refusal.headers, self.config.has_key());
        let scopes = demand.as_ref().and_then(|demand| demand.scope.clone()).unwrap_or_default();
        let step_up = demand.as_ref().is_some_and(|demand| demand.wants_more_scope(refusal.status));
        let used = refusal.token;
        if refusal.status == StatusCode::UNAUTHORIZED {
            if !self.unproven.load(Ordering::Relaxed) {
                attempts.accepted_elsewhere();
            }
            // A second one in a row, after a fresh token, is final.
            return attempts.unauthorized().then_some(Ok(Wanted { demand, scopes, step_up: false, used }));
        }
        // A client without a person has no one to ask for more.
        if !step_up || !self.config.has_person() {
            return None;
        }
        let counted = attempts.step_up(&scopes);
        Some(counted.map(|()| Wanted { demand, scopes, step_up, used }))
    }

    /// Gets a token that a refusal wants. Calls that want the same wait for one sign-in.
    pub(crate) async fn authorize(self: &Arc<Self>, wanted: Wanted, fetch: Fetch) -> Result<(), Error> {
        let begin = |waiters| {
            if self.has_newer(&wanted) {
                return None;
            }
            let (this, wanted, fetch) = (Arc::clone(self), wanted.clone(), fetch.clone());
            Some(async move { this.sign_in(wanted, &fetch, &waiters).await })
        };
        Ok(self.shared.join(&wanted.scopes, begin).await?)
    }

    /// Gets a token that a refusal wants, within a time in which that of a person is not counted. Returns the time that it took.
    pub(crate) async fn authorize_within(
        self: &Arc<Self>,
        limit: Duration,
        wanted: Wanted,
        fetch: Fetch,
    ) -> Result<Duration, Error> {
        let ((), taken) = self.person.within(limit, self.authorize(wanted, fetch)).await?;
        Ok(taken)
    }

    /// Returns whether another call has got a token since, which asks for enough.
    fn has_newer(&self, wanted: &Wanted) -> bool {
        let current = self.tokens.now();
        self.number(&current) != wanted.used
            && current.is_some_and(|current| {
                wanted.scopes.missing_from(&current.grant().terms.requested).is_empty()
            })
    }

    async fn sign_in(
        self: Arc<Self>,
        mut wanted: Wanted,
        fetch: &Fetch,
        waiters: &super::shared::Waiters,
    ) -> Result<(), Failure> {
        if wanted.step_up && self.tokens.take_wider(&wanted.scopes).await? {
            return Ok(());
        }
        let requested = self.tokens.requested().await?;
        // All that were ever asked for, beside those of the server's choice.
        wanted.scopes = match &wanted.demand {
            Some(demand) if wanted.step_up => step_up_scopes(&requested, demand)?,
            _ => requested,
        };
        lock(&self.attempts).sign_in(&wanted.scopes, now())?;
        self.unproven.store(true, Ordering::Relaxed);
        let scopes = wanted.scopes.clone();
        let done = sign_in::run(&self, wanted, fetch, waiters).await;
        match &done {
            Ok(()) => {}
            Err(Failure::Auth(AuthError::Callback(CallbackError::Refused(_)))) => {
                lock(&self.attempts).refused(scopes, now());
            }
            Err(_) => lock(&self.attempts).gave_nothing(),
        }
        done
    }

    /// Finishes a sign-in whose person has come back. The code is exchanged even if the caller is dropped: it is good for one
    /// use.
    pub(crate) async fn finish(self: &Arc<Self>, answered: Answered, fetch: Fetch) -> Result<(), AuthError> {
        if answered.terms().server != self.server {
            return Err(AuthError::Settings(
                "the sign-in was begun for another server: use a client of that one",
            ));
        }
        let this = Arc::clone(self);
        let finishing = tokio::spawn(async move {
            let settings = this.settings("").await?;
            let _exchanging = this.tokens.exchanging()?;
            let step = around(|around| SignIn::resume(settings, answered, around))?;
            match fetch.drive(step).await? {
                Step::Done(grant) => this.tokens.signed_in(*grant).await,
                _ => Err(AuthError::TokenResponse("it is no answer to a code")),
            }
        });
        finishing.await.unwrap_or(Err(AuthError::Interrupted))
    }

    /// Drops the tokens, here and in the store. The scopes that a person declined are asked for again: the next may be another.
    pub(crate) async fn sign_out(&self) -> Result<(), AuthError> {
        let signed_out = self.tokens.sign_out().await;
        *lock(&self.attempts) = ResourceAttempts::default();
        self.unproven.store(false, Ordering::Relaxed);
        signed_out
    }

    /// Returns the tokens.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorizer").field("server", &self.server).finish_non_exhaustive()
    }
}
