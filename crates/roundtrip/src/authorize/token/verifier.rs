//! An author's own check of tokens.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use roundtrip_core::auth::{ClaimRules, Claims, Secret, TokenRefusal};
use roundtrip_core::seal::Timestamp;
use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::{CheckError, PATIENCE};

/// Time for which a verdict without an end counts.
const ONE_REQUEST: Duration = Duration::from_secs(60);

/// Verdict of an author's own check: what a good token says.
///
/// Issuer, audience and expiry are checked as those of any other token are: a token for another resource is refused. Verdicts
/// are not remembered.
///
/// ```
/// use roundtrip::authorize::Verified;
///
/// let verified = Verified::new("https://login.example", "alice")
///     .audience("https://tools.example/mcp")
///     .scopes(["files:read"]);
/// ```
#[derive(Clone)]
pub struct Verified {
    claims: Map<String, Value>,
}

impl Verified {
    /// Names the issuer of a good token, and whom it speaks for. The principal is made of both.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        let claims = [("iss", issuer.into()), ("sub", subject.into())];
        Self { claims: claims.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect() }
    }

    /// Adds an audience that the token is for. Without that of this resource, it is refused.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        match self.claims.get_mut("aud") {
            Some(Value::Array(all)) => all.push(Value::String(audience.into())),
            _ => drop(self.claims.insert("aud".to_owned(), json!([audience.into()]))),
        }
        self
    }

    /// Sets the scopes of the token.
    #[must_use]
    pub fn scopes<S: Into<String>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        self.claim("scope", scopes)
    }

    /// Sets the client that the token was given to.
    #[must_use]
    pub fn client_id(self, client: impl Into<String>) -> Self {
        self.claim("client_id", client.into())
    }

    /// Sets the end of the token. Without it, the verdict counts for the one request.
    #[must_use]
    pub fn expires_at(self, time: SystemTime) -> Self {
        self.claim("exp", Timestamp::from(time).as_unix())
    }

    /// Sets a claim, for handlers to read.
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.claims.insert(name.into(), value.into());
        self
    }
}

impl Verified {
    fn check(self, rules: &ClaimRules, now: Timestamp) -> Result<Claims, TokenRefusal> {
        let mut claims = self.claims;
        claims.entry("exp").or_insert_with(|| now.plus(ONE_REQUEST).as_unix().into());
        rules.check_verified(claims, now)
    }
}

/// Shows the names of the claims: their values may be personal.
impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Verified").field(&self.claims.keys()).finish()
    }
}

/// Future of a verdict: `None` is a refusal, a text the reason that the token could not be judged.
type Verifying = Pin<Box<dyn Future<Output = Result<Option<Verified>, String>> + Send>>;

/// Function of an author's that judges tokens.
#[derive(Clone)]
pub(crate) struct Verifier(Arc<dyn Fn(Secret) -> Verifying + Send + Sync>);

impl Verifier {
    /// Takes a function. `Ok(None)` refuses a token (401), an error says that it cannot be judged now (503).
    pub(crate) fn new<F, Fut, E>(judge: F) -> Self
    where
        F: Fn(Secret) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Verified>, E>> + Send + 'static,
        E: fmt::Display,
    {
        Self(Arc::new(move |token| {
            let judging = judge(token);
            Box::pin(async move { judging.await.map_err(|error| error.to_string()) })
        }))
    }

    /// Runs the function on a token, for a bounded time, and checks its verdict.
    pub(super) async fn check(
        &self,
        token: &str,
        rules: &ClaimRules,
        clock: &Clock,
    ) -> Result<Claims, CheckError> {
        let verdict = tokio::time::timeout(PATIENCE, self.run(token)).await;
        match verdict.unwrap_or_else(|_| Some(Err(format!("no verdict within {PATIENCE:?}")))) {
            Some(Ok(Some(verified))) => verified.check(rules, clock.now()).map_err(CheckError::Refused),
            Some(Ok(None)) => Err(CheckError::Refused(TokenRefusal::NotVerified)),
            Some(Err(why)) => {
                tracing::warn!(why, "the server's own check cannot judge a token");
                Err(CheckError::Unavailable)
            }
            None => {
                tracing::error!("the server's own check of tokens panicked");
                Err(CheckError::Failed)
            }
        }
    }

    /// Runs the function. `None` means that it panicked.
    async fn run(&self, token: &str) -> Option<Result<Option<Verified>, String>> {
        let token = Secret::new(token);
        let mut judging = catch_unwind(AssertUnwindSafe(|| (self.0)(token))).ok()?;
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| judging.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        })
        .await
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}
