//! One sign-in at a time, shared by the calls that need it.

use std::sync::{Arc, Mutex};

use roundtrip_core::auth::{AuthError, Pending, ScopeSet};
use roundtrip_core::error::Error;
use tokio::sync::watch;

use crate::lock::lock;

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
type Landing = Arc<watch::Sender<Option<Outcome>>>;

/// The sign-in that is under way, if there is one.
#[derive(Debug, Default)]
pub(super) struct SharedSignIn {
    under_way: Arc<Mutex<Option<UnderWay>>>,
}

#[derive(Debug)]
struct UnderWay {
    /// Scopes that it asks for.
    scopes: ScopeSet,
    landing: Landing,
}

/// Calls that wait for a sign-in.
pub(super) struct Waiters(Landing);

impl Waiters {
    /// Waits until no call waits any more.
    pub(super) async fn gone(&self) {
        self.0.closed().await;
    }
}

impl SharedSignIn {
    /// Waits for a sign-in for scopes: the one under way, where it asks for them, or one that `begin` makes, after the one under
    /// way. It runs as a task, so that a call that is dropped does not end it for others; `begin` may return `None` where nothing
    /// is left to do.
    pub(super) async fn join<F>(
        &self,
        scopes: &ScopeSet,
        mut begin: impl FnMut(Waiters) -> Option<F>,
    ) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        loop {
            let (mut landed, same) = match self.under_way(scopes, &mut begin) {
                Some(joined) => joined,
                None => return Ok(()),
            };
            let outcome = landed.wait_for(Option::is_some).await.map(|landed| landed.clone());
            match outcome {
                Ok(Some(Err(Failure::Abandoned))) => {}
                Ok(Some(outcome)) if same => return outcome,
                // It asked for something else.
                Ok(_) => {}
                Err(_) => return Err(AuthError::Interrupted.into()),
            }
        }
    }

    /// Returns the sign-in under way, or starts one, and whether it asks for these scopes.
    fn under_way<F>(
        &self,
        scopes: &ScopeSet,
        begin: &mut impl FnMut(Waiters) -> Option<F>,
    ) -> Option<(watch::Receiver<Option<Outcome>>, bool)>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut under_way = lock(&self.under_way);
        if let Some(UnderWay { scopes: asked, landing }) = &*under_way {
            return Some((landing.subscribe(), scopes.missing_from(asked).is_empty()));
        }
        let (sender, receiver) = watch::channel(None);
        let landing = Arc::new(sender);
        let work = begin(Waiters(Arc::clone(&landing)))?;
        *under_way = Some(UnderWay { scopes: scopes.clone(), landing: Arc::clone(&landing) });
        let ended = Ended(Arc::clone(&self.under_way));
        tokio::spawn(async move {
            let outcome = work.await;
            drop(ended);
            landing.send_replace(Some(outcome));
        });
        Some((receiver, true))
    }
}

/// Clears the sign-in when its task ends, also by a panic.
struct Ended(Arc<Mutex<Option<UnderWay>>>);

impl Drop for Ended {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}
