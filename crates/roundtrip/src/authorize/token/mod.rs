//! Checks of access tokens: by the issuer's keys, by introspection, or by the author's own function.

mod clock;
mod fetch;
mod introspection;
mod verifier;

use std::sync::Arc;

use roundtrip_core::auth::{ClaimRules, Claims, TokenRefusal, UrlPolicy};

pub(crate) use clock::Clock;
pub(crate) use fetch::{Fetch, Fetched, Fetching};
pub use introspection::Introspection;
pub use verifier::Verified;
pub(crate) use verifier::Verifier;

/// Settings of a [`TokenChecker`].
pub(crate) struct CheckerSettings {
    /// Audiences and leeway. The issuers are added to them.
    pub(crate) rules: ClaimRules,
    /// Issuers whose tokens are accepted.
    pub(crate) issuers: Vec<IssuerSettings>,
    /// Endpoints that are asked about opaque tokens, in this order.
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
    settings: CheckerSettings,
}

impl TokenChecker {
    /// Creates a checker. Nothing is fetched before the first token.
    pub(crate) fn new(settings: CheckerSettings) -> Self {
        Self { settings }
    }

    /// Checks a token without waiting. `None` means that something has to be waited for: call [`check`](Self::check).
    pub(crate) fn check_now(&self, _token: &str) -> Option<Result<Arc<Claims>, CheckError>> {
        let _ = self.settings.clock.now();
        None
    }

    /// Checks a token, and waits for keys or an endpoint for a bounded time.
    pub(crate) async fn check(&self, token: &str) -> Result<Arc<Claims>, CheckError> {
        self.check_now(token).unwrap_or(Err(CheckError::Unavailable))
    }
}
