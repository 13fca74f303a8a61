//! Introspection of opaque tokens (RFC 7662).

use std::sync::Arc;

use roundtrip_core::auth::{
    ClaimRules, Claims, Secret, TokenRefusal, UrlPolicy, introspection_request, read_introspection,
};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::clock::Clock;
use super::fetch::Fetch;
use super::{CheckError, PATIENCE};

/// Greatest number of requests that wait for endpoints.
const MOST_AT_ONCE: usize = 64;

/// Introspection endpoint of an issuer, and our credentials there (RFC 7662).
///
/// It is asked about tokens that no key can verify: opaque ones. An answer is held to the rules of any token, and that of a
/// good one is remembered until it expires, a minute at most.
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
}

impl Introspection {
    /// Names an endpoint.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), issuer: None, client: None }
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
}

/// Endpoints that are asked about tokens.
pub(super) struct Introspector {
    endpoints: Vec<Introspection>,
    /// The issuer, where there is one only.
    sole_issuer: Option<String>,
    policy: UrlPolicy,
    fetch: Arc<dyn Fetch>,
    at_once: Semaphore,
}

impl Introspector {
    pub(super) fn new(
        endpoints: Vec<Introspection>,
        sole_issuer: Option<String>,
        policy: UrlPolicy,
        fetch: Arc<dyn Fetch>,
    ) -> Self {
        Self { endpoints, sole_issuer, policy, fetch, at_once: Semaphore::new(MOST_AT_ONCE) }
    }

    /// Returns whether there is an endpoint.
    pub(super) fn is_configured(&self) -> bool {
        !self.endpoints.is_empty()
    }

    /// Asks the endpoints about a token, one after the other, for a bounded time.
    pub(super) async fn check(
        &self,
        token: &str,
        rules: &ClaimRules,
        clock: &Clock,
    ) -> Result<Claims, CheckError> {
        let asked = async {
            // The semaphore is never closed.
            let _place = self.at_once.acquire().await;
            self.ask_all(token, rules, clock).await
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap_or(Err(CheckError::Unavailable))
    }

    async fn ask_all(&self, token: &str, rules: &ClaimRules, clock: &Clock) -> Result<Claims, CheckError> {
        let mut worst = CheckError::Refused(TokenRefusal::Inactive);
        for endpoint in &self.endpoints {
            match self.ask(endpoint, token).await {
                Ok(answer) => match self.judge(endpoint, answer, rules, clock) {
                    Ok(claims) => return Ok(claims),
                    Err(refusal) if worst != CheckError::Unavailable => worst = CheckError::Refused(refusal),
                    Err(_) => {}
                },
                Err(why) => {
                    tracing::warn!(endpoint = endpoint.url, why, "a token cannot be introspected");
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

    fn judge(
        &self,
        endpoint: &Introspection,
        answer: Map<String, Value>,
        rules: &ClaimRules,
        clock: &Clock,
    ) -> Result<Claims, TokenRefusal> {
        let issuer = endpoint.issuer.as_ref().or(self.sole_issuer.as_ref()).cloned();
        let named = || answer.get("iss").and_then(Value::as_str).map(str::to_owned);
        let issuer = issuer.or_else(named).unwrap_or_default();
        rules.check_introspected(&issuer, answer, clock.now())
    }
}
