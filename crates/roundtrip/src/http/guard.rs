//! Guard of a server on HTTP: [`Http::authorize`], and the refusals of requests.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use roundtrip_core::error::{BUSY, UNAUTHORIZED, insufficient_scope};
use roundtrip_core::wire::ErrorObject;

use super::body::Body;
use super::metadata::metadata_response;
use super::response::{challenged, failed, refuse_with};
use super::service::{Arrived, Http, Identified};
use crate::authorize::{Authorize, Granted, Guard, Refusal, Verdict};
use crate::server::{Owner, SetupError};

/// Place of the guard: empty, a guard, or the mistake in its settings.
#[derive(Clone, Default)]
pub(super) struct GuardSlot(Option<Result<Arc<Guard>, SetupError>>);

impl GuardSlot {
    /// Records that a function of the author's names the principal too.
    pub(super) fn forbid_principal(&mut self) {
        if self.0.is_some() {
            self.0 = Some(Err(two_principals()));
        }
    }
}

fn two_principals() -> SetupError {
    let problem = "`Http::principal` and `Http::authorize` both say who calls: leave one of them out, or derive the \
                   principal from the claims with `Authorize::principal`";
    SetupError::new("server", "http", problem)
}

/// Outcome of a request's arrival.
pub(super) enum Entered {
    Now(Arrived),
    /// An issuer has to be waited for. Boxed: few requests wait, and none carries room for it.
    Later(Pin<Box<dyn Future<Output = Arrived> + Send>>),
}

impl Http {
    /// Lets only requests in that present an access token, which says who calls and what for. See [`Authorize`].
    ///
    /// The token is checked before the body is read, on every request. [`bind`](Self::bind) serves the metadata of the
    /// resource by itself; beside a mounted service, mount [`Authorize::metadata`] at [`Authorize::path`].
    ///
    /// With a mistake in the settings [`bind`](Self::bind) and [`checked`](Self::checked) fail, and a service that
    /// is mounted without a check lets no request in.
    #[must_use]
    pub fn authorize(self, guard: Authorize) -> Self {
        self.set(|settings| {
            let guard = if settings.principal.is_some() { Err(two_principals()) } else { guard.build() };
            if let Err(mistake) = &guard {
                tracing::error!(%mistake, "no request is let in");
            }
            settings.guard = GuardSlot(Some(guard.map(Arc::new)));
        })
    }

    /// Returns the service, if its authorization is set up well.
    ///
    /// # Errors
    /// The mistake in what [`authorize`](Self::authorize) was given.
    pub fn checked(self) -> Result<Self, SetupError> {
        match &self.settings.guard.0 {
            Some(Err(mistake)) => Err(mistake.clone()),
            _ => Ok(self),
        }
    }

    /// Checks the setup before the server is bound.
    pub(super) fn check(&self) -> io::Result<()> {
        match &self.settings.guard.0 {
            Some(Err(mistake)) => Err(io::Error::new(io::ErrorKind::InvalidInput, mistake.clone())),
            _ => Ok(()),
        }
    }

    fn guard(&self) -> Option<&Arc<Guard>> {
        self.settings.guard.0.as_ref().and_then(|guard| guard.as_ref().ok())
    }

    /// Finds out who sends a request, by its head alone.
    pub(super) fn enter(&self, parts: &mut Parts) -> Entered {
        let guard = match &self.settings.guard.0 {
            None => return Entered::Now(self.anonymous(parts)),
            Some(Err(_)) => return Entered::Now(Err(Box::new(failed(&unusable())))),
            Some(Ok(guard)) => guard,
        };
        if let Err(refused) = self.pass_gate(parts) {
            return Entered::Now(Err(refused));
        }
        let verdict = guard.look(&parts.headers, parts.uri.query());
        // No code behind the guard has use for it.
        parts.headers.remove(AUTHORIZATION);
        match verdict {
            Verdict::Now(judged) => Entered::Now(identified(guard, judged)),
            Verdict::Later(token) => {
                let (guard, sender) = (Arc::clone(guard), Owner::new(None, self.address));
                Entered::Later(Box::pin(
                    async move { identified(&guard, guard.judge(&token, &sender).await) },
                ))
            }
        }
    }

    /// Returns the `WWW-Authenticate` header of a call's error, if that is a lack of scopes.
    pub(super) fn challenge(&self, error: &ErrorObject) -> Option<HeaderValue> {
        self.guard()?.challenge_of(error)
    }

    /// Returns whether requests need tokens.
    #[cfg(feature = "legacy")]
    pub(super) fn is_guarded(&self) -> bool {
        self.guard().is_some()
    }

    /// Returns the metadata of the resource, if a request to a bound server is for that.
    pub(super) fn metadata<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let published = self.guard()?.published();
        (request.uri().path() == published.path)
            .then(|| metadata_response(request.method(), &published.document))
    }
}

fn identified(guard: &Guard, judged: Result<Granted, Refusal>) -> Arrived {
    match judged {
        Ok(Granted { principal, access }) => Ok(Identified { principal: Some(principal), access }),
        Err(refusal) => Err(Box::new(refused(guard, refusal))),
    }
}

/// Responds to a request that is not let in. All reasons for which a token is not good look the same (O5).
fn refused(guard: &Guard, refusal: Refusal) -> Response<Body> {
    let (status, error) = match refusal {
        Refusal::NoToken | Refusal::BadToken => (
            StatusCode::UNAUTHORIZED,
            ErrorObject::new(
                UNAUTHORIZED,
                "send an access token for this server: `Authorization: Bearer ..`",
            ),
        ),
        Refusal::Malformed => (
            StatusCode::BAD_REQUEST,
            ErrorObject::invalid_request("send one access token, in one header: `Authorization: Bearer ..`"),
        ),
        Refusal::TooLittle => (StatusCode::FORBIDDEN, insufficient_scope(&guard.needed().to_string())),
        Refusal::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorObject::new(BUSY, "the access token cannot be checked now: try again later"),
        ),
        Refusal::Failed => (StatusCode::INTERNAL_SERVER_ERROR, unusable()),
    };
    let response = refuse_with(status, None, &error);
    match guard.challenge(refusal) {
        Some(challenge) => challenged(response, challenge),
        None => response,
    }
}

fn unusable() -> ErrorObject {
    ErrorObject::internal("the server is not set up for this call")
}
