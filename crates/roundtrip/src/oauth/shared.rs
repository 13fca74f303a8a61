//! One sign-in at a time, shared by the calls that need it.

use roundtrip_core::auth::{AuthError, Pending, ScopeSet};
use roundtrip_core::error::Error;

use super::flight::Flight;

/// Reason a sign-in gave no token. All calls that waited for it get it.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// A rule, a server or a person was against it.
    Auth(AuthError),
    /// A person has to open a URL, and there is no browser.
    Pending(Box<Pending>),
    /// The author's code that opens a browser, shows a code or gives an assertion failed.
    Handler(String),
    /// No call waited for it any more.
    Abandoned,
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        Self::Auth(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Auth(error) => error.into(),
            Failure::Pending(pending) => Self::SignIn(pending),
            Failure::Handler(text) => Self::Handler(text.into()),
            Failure::Abandoned => AuthError::Interrupted.into(),
        }
    }
}

type Outcome = Result<(), Failure>;

/// Calls that wait for a sign-in.
pub(super) type Waiters = super::flight::Waiters<Outcome>;

/// The sign-in that is under way, if there is one, with the scopes that it asks for.
#[derive(Debug, Default)]
pub(super) struct SharedSignIn(Flight<Outcome, ScopeSet>);

impl SharedSignIn {
    /// Waits for a sign-in for scopes: the one under way, where it asks for them, or one that `begin` makes, after the one under
    /// way; `begin` may return `None` where nothing is left to do.
    pub(super) async fn join<F>(
        &self,
        scopes: &ScopeSet,
        mut begin: impl FnMut(Waiters) -> Option<F>,
    ) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        while let Some(sign_in) = self.0.join(scopes.clone(), &mut begin) {
            let asks_for_these = scopes.missing_from(&sign_in.label).is_empty();
            match sign_in.result().await {
                Some(Err(Failure::Abandoned)) => {}
                Some(outcome) if asks_for_these => return outcome,
                // It asked for something else.
                Some(_) => {}
                None => return Err(AuthError::Interrupted.into()),
            }
        }
        Ok(())
    }
}
