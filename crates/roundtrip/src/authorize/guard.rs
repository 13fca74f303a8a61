//! [`Guard`]: reads the token of a request, has it checked, and says who calls.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use roundtrip_core::auth::{Claims, Credentials, ScopeSet, Secret, TokenScheme};
use roundtrip_core::error::needed_scope;
use roundtrip_core::wire::ErrorObject;

use super::builder::{PrincipalOf, Published};
use super::challenges::Challenges;
use super::sparse::Sparse;
use super::token::{CheckError, TokenChecker};
use crate::server::{Access, Owner, Principal, ScopeRules, panicked};

/// A resource server's check of requests, built from an [`Authorize`](super::Authorize).
pub(crate) struct Guard {
    pub(super) checker: TokenChecker,
    pub(super) rules: Arc<ScopeRules>,
    pub(super) challenges: Challenges,
    pub(super) principal: Option<Arc<PrincipalOf>>,
    pub(super) published: Published,
    pub(super) refusals: Sparse,
}

/// Identity and rights of a caller whose token was accepted.
pub(crate) struct Granted {
    pub(crate) principal: Principal,
    pub(crate) access: Access,
}

/// Reason a request goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No token was sent: 401.
    NoToken,
    /// The token is not good, whatever the reason: 401.
    BadToken,
    /// The credentials are not sent as they have to be: 400.
    Malformed,
    /// The token lacks scopes that every request needs: 403.
    TooLittle,
    /// The token cannot be judged now: 503.
    Unavailable,
    /// Code of the author's panicked: 500.
    Failed,
}

/// Outcome of a look at a request that waits for nothing.
pub(crate) enum Verdict {
    Now(Result<Granted, Refusal>),
    /// This token has to be judged by [`Guard::judge`].
    Later(Secret),
}

impl Guard {
    /// Looks at the credentials of a request, and checks their token if that takes no waiting.
    pub(crate) fn look(&self, headers: &HeaderMap, query: Option<&str>) -> Verdict {
        let credentials = match Credentials::read(headers) {
            Ok(Some(found)) if found.scheme() == TokenScheme::Bearer => found,
            Ok(_) => return Verdict::Now(Err(Refusal::NoToken)),
            Err(_) => return Verdict::Now(Err(Refusal::Malformed)),
        };
        // RFC 6750, 2: one way to present a token in a request. One in the query is never accepted.
        if query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("access_token="))) {
            return Verdict::Now(Err(Refusal::Malformed));
        }
        match self.checker.check_now(credentials.token()) {
            Some(checked) => Verdict::Now(self.granted(checked)),
            None => Verdict::Later(Secret::from(credentials.token().to_owned())),
        }
    }

    /// Checks a token whose issuer has to be waited for. The wait counts against its sender.
    pub(crate) async fn judge(&self, token: &Secret, sender: &Owner) -> Result<Granted, Refusal> {
        let checked = self.checker.check_for(token.expose(), sender).await;
        self.granted(checked)
    }

    fn granted(&self, checked: Result<Arc<Claims>, CheckError>) -> Result<Granted, Refusal> {
        let claims = checked.map_err(|error| match error {
            CheckError::Refused(reason) => self.bad_token(&reason),
            CheckError::Unavailable => Refusal::Unavailable,
            CheckError::Failed => Refusal::Failed,
        })?;
        let principal = self.principal(&claims)?;
        let access = Access::granted(claims, Arc::clone(&self.rules));
        if access.has(&self.rules.needed) {
            Ok(Granted { principal, access })
        } else {
            Err(Refusal::TooLittle)
        }
    }

    /// Derives the principal. The author's function may panic: that fails this request alone (Z1).
    fn principal(&self, claims: &Claims) -> Result<Principal, Refusal> {
        let Some(derive) = &self.principal else { return Ok(Principal::new(claims.principal.as_str())) };
        let derived = catch_unwind(AssertUnwindSafe(|| derive(claims)));
        let derived = derived.map_err(|_| {
            let _ = panicked();
            Refusal::Failed
        })?;
        derived.ok_or_else(|| self.bad_token(&"it is for no principal"))
    }

    /// Logs why a token is refused. Anybody can send one that is not good.
    fn bad_token(&self, reason: &dyn fmt::Display) -> Refusal {
        match self.refusals.due() {
            Some(others) => tracing::info!(%reason, others, "an access token was refused"),
            None => tracing::debug!(%reason, "an access token was refused"),
        }
        Refusal::BadToken
    }

    /// Returns the `WWW-Authenticate` header of a refusal, if it has one.
    pub(crate) fn challenge(&self, refusal: Refusal) -> Option<HeaderValue> {
        let challenge = match refusal {
            Refusal::NoToken => &self.challenges.no_token,
            Refusal::BadToken => &self.challenges.bad_token,
            Refusal::Malformed => &self.challenges.malformed,
            Refusal::TooLittle => &self.challenges.too_little,
            Refusal::Unavailable | Refusal::Failed => return None,
        };
        Some(challenge.clone())
    }

    /// Returns the `WWW-Authenticate` header of a call's error, if that is a lack of scopes.
    pub(crate) fn challenge_of(&self, error: &ErrorObject) -> Option<HeaderValue> {
        let needed: ScopeSet = needed_scope(error)?.parse().ok()?;
        self.challenges.insufficient(&needed).ok()
    }

    /// Returns the scopes that every request needs.
    pub(crate) fn needed(&self) -> &ScopeSet {
        &self.rules.needed
    }

    /// Returns the metadata of the resource.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("published", &self.published).finish_non_exhaustive()
    }
}
