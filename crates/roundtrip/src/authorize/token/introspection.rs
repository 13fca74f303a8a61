//! Introspection of tokens that keys cannot judge (RFC 7662).

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::auth::{
    ClaimRules, Claims, Secret, TokenRefusal, UrlPolicy, introspection_request, read_introspection,
};
use serde_json::{Map, Value};

use super::CheckError;
use super::clock::Clock;
use super::fetch::Fetch;
use super::flights::{Flights, Verdict};
use super::memory::{TokenDigest, TokenMemory};
use crate::authorize::sparse::Sparse;
use crate::server::Owner;

/// Longest time for which an introspected token is remembered: it may have been revoked.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Time for which a refusal is remembered: it may be of a token that the endpoint does not know yet.
const REMEMBERED_REFUSAL: Duration = Duration::from_secs(5);

/// Introspection endpoint of an issuer, and our credentials there (RFC 7662).
///
/// It is asked about tokens that no key can verify: opaque ones, and no JWTs unless
/// [`incomplete_jwts`](Self::incomplete_jwts) says so. An opaque token does not say whose it is: with several endpoints each
/// may see tokens of the others, unless [`prefix`](Self::prefix) tells them apart. An answer is held to the rules of any token. That of a
/// good one is remembered until it expires, a minute at most, and a refusal for five seconds.
///
/// ```
/// use roundtrip::authorize::Introspection;
///
/// let endpoint = Introspection::at("https://login.example/introspect").client("files", "secret");
/// ```
#[derive(Debug, Clone)]
pub struct Introspection {
    pub(crate) url: String,
    pub(crate) issuer: Option<String>,
    pub(crate) client: Option<(String, Secret)>,
    prefix: String,
    incomplete_jwts: bool,
}

impl Introspection {
    /// Names an endpoint.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), issuer: None, client: None, prefix: String::new(), incomplete_jwts: false }
    }

    /// Sets the id and the secret by which this server authenticates itself at the endpoint.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        self.client = Some((id.into(), secret.into()));
        self
    }

    /// Names the issuer whose endpoint it is. It is needed with several issuers, where answers have no `iss`.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Asks the endpoint about those opaque tokens alone that begin so: the endpoint of one issuer then sees no token of
    /// another, which it could use.
    ///
    /// ```
    /// use roundtrip::authorize::Introspection;
    ///
    /// let endpoints = [
    ///     Introspection::at("https://login.example/introspect").client("files", "secret").prefix("login_"),
    ///     Introspection::at("https://partner.example/introspect").client("files", "secret").prefix("partner_"),
    /// ];
    /// ```
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Asks the endpoint about JWTs of its issuer, too, that do not say enough for an access token: whose `typ` is not `at+jwt`, or
    /// that have no audience, expiry or subject. Without this they are refused.
    ///
    /// The endpoint sees only JWTs that name its issuer and are signed by a key of it. What they do say counts: one for another
    /// audience, one that has expired and an ID token are refused, and nothing is asked.
    #[must_use]
    pub fn incomplete_jwts(mut self) -> Self {
        self.incomplete_jwts = true;
        self
    }
}

/// Kind of a token that keys cannot judge.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenKind<'a> {
    /// It says nothing by itself: every endpoint may know it whose prefix it has.
    Opaque(&'a str),
    /// It is a JWT by a key of this issuer, whose endpoint alone is asked.
    JwtOf(&'a str),
}

/// Endpoints that are asked about tokens.
pub(super) struct Introspector {
    endpoints: Vec<Introspection>,
    /// The issuer, where there is one only.
    sole_issuer: Option<String>,
    policy: UrlPolicy,
    fetch: Arc<dyn Fetch>,
    rules: Arc<ClaimRules>,
    clock: Clock,
    memory: Arc<TokenMemory>,
    refused: TokenMemory<TokenRefusal>,
    flights: Arc<Flights>,
    outages: Sparse,
}

impl Introspector {
    pub(super) fn new(
        endpoints: Vec<Introspection>,
        sole_issuer: Option<String>,
        policy: UrlPolicy,
        fetch: Arc<dyn Fetch>,
        rules: Arc<ClaimRules>,
        clock: Clock,
        memory: Arc<TokenMemory>,
    ) -> Self {
        let (refused, flights, outages) = (TokenMemory::default(), Arc::default(), Sparse::default());
        Self { endpoints, sole_issuer, policy, fetch, rules, clock, memory, refused, flights, outages }
    }

    /// Returns the reason for which a token has just been refused.
    pub(super) fn refusal_of(&self, digest: &TokenDigest) -> Option<TokenRefusal> {
        self.refused.recall(digest, self.clock.now())
    }

    /// Returns whether an endpoint is asked about tokens of a kind.
    pub(super) fn takes(&self, kind: TokenKind<'_>) -> bool {
        self.endpoints_for(kind).next().is_some()
    }

    fn endpoints_for(&self, kind: TokenKind<'_>) -> impl Iterator<Item = &Introspection> {
        self.endpoints.iter().filter(move |endpoint| match kind {
            TokenKind::Opaque(token) => token.starts_with(&endpoint.prefix),
            TokenKind::JwtOf(issuer) => endpoint.incomplete_jwts && self.issuer_of(endpoint) == Some(issuer),
        })
    }

    fn issuer_of<'a>(&'a self, endpoint: &'a Introspection) -> Option<&'a str> {
        endpoint.issuer.as_deref().or(self.sole_issuer.as_deref())
    }

    /// Asks the endpoints about a token, one after the other, for a bounded time. The verdict is for all that present the
    /// token meanwhile, and is remembered. The introspection counts against the caller that presents it first.
    pub(super) async fn check(self: &Arc<Self>, token: &str, kind: TokenKind<'_>, owner: &Owner) -> Verdict {
        let digest = TokenDigest::of(token);
        let ask = || {
            let (this, token) = (Arc::clone(self), Secret::from(token.to_owned()));
            let issuer = match kind {
                TokenKind::Opaque(_) => None,
                TokenKind::JwtOf(issuer) => Some(issuer.to_owned()),
            };
            async move {
                let kind = issuer.as_deref().map_or(TokenKind::Opaque(token.expose()), TokenKind::JwtOf);
                this.judge_and_remember(token.expose(), digest, kind).await
            }
        };
        self.flights.verdict(digest, owner, ask).await
    }

    async fn judge_and_remember(&self, token: &str, digest: TokenDigest, kind: TokenKind<'_>) -> Verdict {
        let epoch = self.memory.epoch();
        let verdict = self.ask_all(token, kind).await.map(Arc::new);
        let now = self.clock.now();
        match &verdict {
            Ok(claims) => {
                let until = now.plus(REMEMBERED).min(claims.expires_at);
                self.memory.remember(digest, claims, until, epoch);
            }
            Err(CheckError::Refused(refusal)) => {
                self.refused.remember_refusal(digest, *refusal, now.plus(REMEMBERED_REFUSAL));
            }
            Err(_) => {}
        }
        verdict
    }

    async fn ask_all(&self, token: &str, kind: TokenKind<'_>) -> Result<Claims, CheckError> {
        let mut worst = CheckError::Refused(TokenRefusal::Inactive);
        for endpoint in self.endpoints_for(kind) {
            match self.ask(endpoint, token).await {
                Ok(answer) => match self.judge(endpoint, answer) {
                    Ok(claims) => return Ok(claims),
                    Err(refusal) if worst != CheckError::Unavailable => worst = CheckError::Refused(refusal),
                    Err(_) => {}
                },
                Err(why) => {
                    if let Some(others) = self.outages.due() {
                        tracing::warn!(
                            endpoint = endpoint.url,
                            why,
                            others,
                            "a token cannot be introspected"
                        );
                    }
                    worst = CheckError::Unavailable;
                }
            }
        }
        Err(worst)
    }

    async fn ask(&self, endpoint: &Introspection, token: &str) -> Result<Map<String, Value>, String> {
        let url = self.policy.read(&endpoint.url).map_err(|why| why.to_string())?;
        let client = endpoint.client.as_ref().map(|(id, secret)| (id.as_str(), secret));
        let request = introspection_request(url, client, token).map_err(|why| why.to_string())?;
        let answer = self.fetch.send(request).await?;
        read_introspection(answer.success()?).map_err(|why| why.to_string())
    }

    fn judge(&self, endpoint: &Introspection, answer: Map<String, Value>) -> Result<Claims, TokenRefusal> {
        let issuer = self.issuer_of(endpoint).map(str::to_owned);
        let named = || answer.get("iss").and_then(Value::as_str).map(str::to_owned);
        let issuer = issuer.or_else(named).unwrap_or_default();
        self.rules.check_introspected(&issuer, answer, self.clock.now())
    }
}
