//! Checks of access tokens: by the issuer's keys, by introspection, or by the author's own function.

mod clock;
mod fetch;
mod flights;
mod introspection;
mod keys;
mod memory;
mod verifier;

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::auth::{ClaimRules, Claims, Jwt, LONGEST_TOKEN, TokenRefusal, UrlPolicy};
use serde_json::Value;

use crate::server::Owner;

pub(crate) use clock::Clock;
use fetch::HttpFetch;
pub(crate) use fetch::{Fetch, Fetched, Fetching};
pub use introspection::Introspection;
use introspection::{Introspector, TokenKind};
use keys::{IssuerKeys, Judged};
use memory::{TokenDigest, TokenMemory};
pub use verifier::Verified;
pub(crate) use verifier::Verifier;

/// Longest time that a request waits for keys, for endpoints, or for the author's function.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time for which a signed token is remembered. Its signature is verified again after it.
const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// Settings of a [`TokenChecker`].
pub(crate) struct CheckerSettings {
    /// Audiences and leeway. The issuers are added to them.
    pub(crate) rules: ClaimRules,
    /// Issuers whose tokens are accepted.
    pub(crate) issuers: Vec<IssuerSettings>,
    /// Endpoints that are asked about tokens that keys cannot judge, in this order.
    pub(crate) introspection: Vec<Introspection>,
    /// Function of the author's that judges every token in place of keys and endpoints.
    pub(crate) verifier: Option<Verifier>,
    /// Rules for URLs: those of the resource.
    pub(crate) policy: UrlPolicy,
    /// Source of the time.
    pub(crate) clock: Clock,
    /// HTTP client of the author's. Its own redirects and resolver count.
    pub(crate) http: Option<reqwest::Client>,
    /// Replacement of HTTP: an issuer in this process.
    pub(crate) fetch: Option<Arc<dyn Fetch>>,
}

/// An issuer whose tokens are accepted.
#[derive(Debug, Clone)]
pub(crate) struct IssuerSettings {
    /// Identifier, compared byte for byte with `iss`.
    pub(crate) name: String,
    /// Accepts tokens whose `typ` is `JWT` or missing.
    pub(crate) untyped: bool,
    /// URL of the keys, where it does not come from the issuer's metadata.
    pub(crate) jwks: Option<String>,
}

/// Reason a token was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckError {
    /// The token is not good: 401. The reason is for the log.
    Refused(TokenRefusal),
    /// The issuer cannot be reached, and the token not be judged: 503, never 401.
    Unavailable,
    /// The author's function panicked: 500.
    Failed,
}

/// Checks access tokens: built once from the settings of an `Authorize`.
pub(crate) struct TokenChecker {
    rules: Arc<ClaimRules>,
    issuers: Vec<Arc<IssuerKeys>>,
    introspector: Arc<Introspector>,
    verifier: Option<Verifier>,
    clock: Clock,
    memory: Arc<TokenMemory>,
}

/// First step of a check: its end, or what has to be waited for.
enum Begun {
    Ended(Result<Arc<Claims>, CheckError>),
    Keys(Arc<IssuerKeys>),
    /// Introspection: of an opaque token, or of a JWT by these keys.
    Introspection(Option<Arc<IssuerKeys>>),
    Verifier,
}

impl TokenChecker {
    /// Creates a checker. Nothing is fetched before the first token.
    pub(crate) fn new(settings: CheckerSettings) -> Self {
        let CheckerSettings { rules, issuers, introspection, verifier, policy, clock, http, fetch } =
            settings;
        let rules = issuers.iter().fold(rules, |rules, issuer| {
            let name = issuer.name.clone();
            if issuer.untyped { rules.untyped_issuer(name) } else { rules.issuer(name) }
        });
        let fetch = fetch.unwrap_or_else(|| Arc::new(HttpFetch::new(policy.clone(), http)));
        let sole_issuer = if let [only] = issuers.as_slice() { Some(only.name.clone()) } else { None };
        let (rules, memory) = (Arc::new(rules), Arc::new(TokenMemory::default()));
        let introspector = Arc::new(Introspector::new(
            introspection,
            sole_issuer,
            policy.clone(),
            Arc::clone(&fetch),
            Arc::clone(&rules),
            clock.clone(),
            Arc::clone(&memory),
        ));
        let keys = |issuer| {
            Arc::new(IssuerKeys::new(issuer, policy.clone(), Arc::clone(&fetch), Arc::clone(&memory)))
        };
        let issuers = issuers.into_iter().map(keys).collect();
        Self { rules, issuers, introspector, verifier, clock, memory }
    }

    /// Checks a token without waiting. `None` means that something has to be waited for: call [`check_for`](Self::check_for).
    pub(crate) fn check_now(&self, token: &str) -> Option<Result<Arc<Claims>, CheckError>> {
        match self.begin(token) {
            Begun::Ended(verdict) => Some(verdict),
            Begun::Keys(_) | Begun::Introspection(_) | Begun::Verifier => None,
        }
    }

    /// Checks a token, and waits for keys or an endpoint for a bounded time. An introspection counts against a caller.
    pub(crate) async fn check_for(&self, token: &str, owner: &Owner) -> Result<Arc<Claims>, CheckError> {
        let begun = match self.begin(token) {
            Begun::Keys(keys) => {
                keys.fetched().await;
                self.begin(token)
            }
            begun => begun,
        };
        match begun {
            Begun::Ended(verdict) => verdict,
            Begun::Keys(_) => Err(CheckError::Unavailable),
            Begun::Introspection(None) => {
                self.introspector.check(token, TokenKind::Opaque(token), owner).await
            }
            Begun::Introspection(Some(keys)) => {
                self.introspector.check(token, TokenKind::JwtOf(keys.name()), owner).await
            }
            Begun::Verifier => match &self.verifier {
                Some(verifier) => verifier.check(token, &self.rules, &self.clock).await.map(Arc::new),
                None => Err(CheckError::Unavailable),
            },
        }
    }

    fn begin(&self, token: &str) -> Begun {
        let refused = |refusal| Begun::Ended(Err(CheckError::Refused(refusal)));
        if token.len() > LONGEST_TOKEN {
            return refused(TokenRefusal::TooLarge);
        }
        if self.verifier.is_some() {
            return Begun::Verifier;
        }
        let digest = TokenDigest::of(token);
        if let Some(claims) = self.memory.recall(&digest, self.clock.now()) {
            return Begun::Ended(Ok(claims));
        }
        match Jwt::parse(token) {
            Ok(token) => self.check_signed(&token, digest).unwrap_or_else(refused),
            // A JWT that keys cannot verify, unsigned or by an algorithm that is not accepted, is not asked about (O21).
            Err(_) if !Jwt::has_form(token) && self.introspector.takes(TokenKind::Opaque(token)) => {
                match self.introspector.refusal_of(&digest) {
                    Some(refusal) => refused(refusal),
                    None => Begun::Introspection(None),
                }
            }
            Err(refusal) => refused(refusal),
        }
    }

    fn check_signed(&self, token: &Jwt<'_>, digest: TokenDigest) -> Result<Begun, TokenRefusal> {
        let claims = token.claims()?;
        let issuer = claims.get("iss").and_then(Value::as_str).ok_or(TokenRefusal::Issuer)?;
        let keys = self.issuers.iter().find(|keys| keys.name() == issuer).ok_or(TokenRefusal::Issuer)?;
        let epoch = self.memory.epoch();
        match keys.judge(token) {
            Judged::Good => match self.rules.check(token.header(), claims, self.clock.now()) {
                Ok(claims) => {
                    let claims = Arc::new(claims);
                    let until = self.clock.now().plus(REMEMBERED).min(claims.expires_at);
                    self.memory.remember(digest, &claims, until, epoch);
                    Ok(Begun::Ended(Ok(claims)))
                }
                Err(refusal) => self.check_incomplete(token, &digest, keys, refusal),
            },
            Judged::Refused(refusal) => Err(refusal),
            Judged::Wait => Ok(Begun::Keys(Arc::clone(keys))),
            Judged::Unavailable => Ok(Begun::Ended(Err(CheckError::Unavailable))),
        }
    }

    /// Has the issuer of a verified token asked about it, where its claims are not enough, the author wants that, and nothing
    /// in the token is against it.
    fn check_incomplete(
        &self,
        token: &Jwt<'_>,
        digest: &TokenDigest,
        keys: &Arc<IssuerKeys>,
        refusal: TokenRefusal,
    ) -> Result<Begun, TokenRefusal> {
        if !self.introspector.takes(TokenKind::JwtOf(keys.name())) {
            return Err(refusal);
        }
        self.rules.check_incomplete(token.header(), &token.claims()?, self.clock.now())?;
        match self.introspector.refusal_of(digest) {
            Some(refusal) => Err(refusal),
            None => Ok(Begun::Introspection(Some(Arc::clone(keys)))),
        }
    }
}

#[cfg(test)]
mod tests;
