//! A sign-in from its first request to the grant: carries out the steps of the core.

use std::sync::Arc;

use roundtrip_core::auth::{
    Answered, AssertionRequest, AuthError, Demand, DevicePending, Need, Pending, Registration,
    RegistrationSource, ScopeSet, Secret, Settings, SignIn, Signer, Step,
};
use tokio::time::sleep;

use super::authorizer::Authorizer;
use super::config::Kind;
use super::fetch::Fetch;
use super::listener::Listener;
use super::shared::{Failure, Waiters};
use super::surroundings::around;

/// Demand of a refusal. The default is that of no refusal: a token, of any scopes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(super) demand: Option<Demand>,
    /// Scopes of the demand.
    pub(super) scopes: ScopeSet,
    /// Tells that the token lacks scopes.
    pub(super) step_up: bool,
    /// Number of the token that was refused.
    pub(super) used: u64,
}

/// Signs in, and stores the grant.
pub(super) async fn run(
    authorizer: &Authorizer,
    wanted: Wanted,
    fetch: &Fetch,
    waiters: &Waiters,
) -> Result<(), Failure> {
    let registrations = authorizer.tokens.registrations().await?;
    let mut listener = authorizer.listener(&registrations).await?;
    let redirect_uri = listener.as_ref().map(Listener::redirect_uri).unwrap_or_default();
    let settings = authorizer.settings(&redirect_uri).await?;
    let need = Need::new(authorizer.server.as_str()).bound_by(authorizer.tokens.bound_by().await?);
    let need = need.demand(wanted.demand).step_up(wanted.scopes).registrations(registrations);
    let mut step = fetch.drive(SignIn::begin(Arc::clone(&settings), need)?).await?;
    let mut shown = None;
    loop {
        let next = match step {
            Step::Done(grant) => return Ok(authorizer.tokens.signed_in(*grant).await?),
            Step::Browse(pending) => {
                // Before the browser opens: the person may never come back.
                authorizer.tokens.registered(pending.registration().clone()).await?;
                let answered = authorizer.browse(pending, listener.take(), waiters).await?;
                around(|around| SignIn::resume(Arc::clone(&settings), answered, around))?
            }
            Step::ShowCode(device) => {
                if shown.is_none() {
                    // Until the sign-in ends: the person is at work between the polls, too.
                    shown = Some(authorizer.person.at_work());
                    authorizer.show(&device, waiters).await?;
                }
                tokio::select! {
                    () = sleep(device.pause()) => {}
                    () = waiters.gone() => return Err(Failure::Abandoned),
                }
                around(|around| SignIn::poll(Arc::clone(&settings), *device, around))?
            }
            Step::Assert(request) => {
                let assertion = authorizer.assertion(&request).await?;
                around(|around| SignIn::assert(Arc::clone(&settings), *request, assertion, around))?
            }
            // Neither is an end of `drive`, nor of a sign-in.
            Step::Send(_) | Step::Checked { .. } => return Err(AuthError::Interrupted.into()),
        };
        // A code is good for one use: a client that is closed waits until its tokens are stored.
        let _exchanging = authorizer.tokens.exchanging()?;
        step = match fetch.drive(next).await? {
            Step::Done(grant) => return Ok(authorizer.tokens.signed_in(*grant).await?),
            step => step,
        };
    }
}

impl Authorizer {
    /// Binds the listener for a browser: at the port of a registration that is stored, where it is free (O72).
    async fn listener(&self, registrations: &[Registration]) -> Result<Option<Listener>, Failure> {
        if self.config.browser.is_none() {
            return Ok(None);
        }
        let bound = Listener::bind(registrations.iter().find_map(registered_port)).await;
        bound.map(Some).map_err(|error| Failure::Handler(format!("no port for the sign-in: {error}")))
    }

    /// Opens the browser and waits for its callback, as long as a call waits too.
    async fn browse(
        &self,
        pending: Box<Pending>,
        listener: Option<Listener>,
        waiters: &Waiters,
    ) -> Result<Answered, Failure> {
        let (Some(open), Some(listener)) = (&self.config.browser, listener) else {
            return Err(Failure::Pending(pending));
        };
        let _at_work = self.person.at_work();
        tokio::select! {
            // Nothing is opened for calls that have ended.
            biased;
            () = waiters.gone() => Err(Failure::Abandoned),
            answered = listener.answered(&pending) => answered.map_err(|error| AuthError::from(error).into()),
            Err(why) = open(pending.url().clone()) => Err(Failure::Handler(format!("no browser was opened: {why}"))),
            () = sleep(self.config.patience) => Err(AuthError::NoCallback.into()),
        }
    }

    /// Shows the code of a device.
    async fn show(&self, device: &DevicePending, waiters: &Waiters) -> Result<(), Failure> {
        let Kind::Device(show) = &self.config.kind else {
            return Err(AuthError::Settings("there is no way to show a code").into());
        };
        tokio::select! {
            biased;
            () = waiters.gone() => Err(Failure::Abandoned),
            shown = show(device.clone()) => {
                shown.map_err(|why| Failure::Handler(format!("the code was not shown: {why}")))
            }
        }
    }

    /// Asks the platform for an assertion, now that its issuer is known.
    async fn assertion(&self, request: &AssertionRequest) -> Result<Secret, Failure> {
        let Kind::Workload(token) = &self.config.kind else {
            return Err(AuthError::Settings("there is no way to get a token of the platform").into());
        };
        let token = token(request.clone()).await;
        token.map_err(|why| Failure::Handler(format!("the platform gave no token: {why}")))
    }

    /// Returns the settings of the client, with the key that tokens are bound to.
    pub(super) async fn settings(&self, redirect_uri: &str) -> Result<Arc<Settings>, AuthError> {
        let key = self.proof_key().await?;
        Ok(Arc::new(self.config.settings(redirect_uri, key)?))
    }

    /// Returns the key that tokens are bound to: the author's, or one that is stored with the tokens.
    pub(super) async fn proof_key(&self) -> Result<Option<Arc<dyn Signer>>, AuthError> {
        let Some(source) = &self.config.dpop else { return Ok(None) };
        let key = self.key.get_or_try_init(|| source.key(&self.tokens)).await?;
        Ok(Some(Arc::clone(key)))
    }
}

/// Returns the loopback port that a registration was made for.
fn registered_port(registration: &Registration) -> Option<u16> {
    let uri = registration
        .redirect_uri
        .as_deref()
        .filter(|_| registration.source == RegistrationSource::Dynamic)?;
    let rest = uri.strip_prefix("http://127.0.0.1:")?;
    rest.split('/').next()?.parse().ok()
}
