//! Renewal of a grant at its issuer, and the sign-in that takes its place where the issuer is another one now.

use std::sync::Arc;

use roundtrip_core::auth::{AuthError, Demand, Grant, Need, Settings, SignIn, Step};

use super::authorizer::{Authorizer, Token};
use super::fetch::Fetch;
use super::surroundings::{around, now};
use super::tokens::Exchange;
use crate::lock::lock;

/// Renewal of a grant by its refresh token.
#[derive(Clone)]
pub(super) struct Renewing {
    settings: Arc<Settings>,
    fetch: Fetch,
    /// Tells that the server has rejected one fresh token after the other: another one would not help.
    paused: bool,
}

impl Exchange for Renewing {
    async fn refresh(&self, old: &Grant) -> Result<Option<Grant>, AuthError> {
        if self.paused {
            return Ok(None);
        }
        let settings = Arc::clone(&self.settings);
        let Some(step) = around(|around| SignIn::refresh(settings, old, around))? else {
            return Ok(None);
        };
        match self.fetch.drive(step).await? {
            Step::Done(grant) => Ok(Some(*grant)),
            _ => Err(AuthError::TokenResponse("it is no answer to a refresh token")),
        }
    }
}

impl Authorizer {
    /// Makes the settings of a renewal ahead of it: a renewal holds the lock of the store, which the key of proofs may need.
    pub(super) async fn renewing(&self, fetch: Fetch) -> Result<Renewing, AuthError> {
        let paused = !lock(&self.attempts).may_renew(now());
        Ok(Renewing { settings: self.settings("").await?, fetch, paused })
    }

    /// Takes a grant that is over, or that its server has moved away from, for none: the sign-in that follows has a cause in the
    /// log. What is stored stays until that gives another grant.
    pub(super) async fn unless_over(
        &self,
        renewed: Result<Token, AuthError>,
        renewing: Renewing,
        demand: Option<Demand>,
    ) -> Result<Token, AuthError> {
        let error = match renewed {
            Ok(token) => return Ok(token),
            Err(error) => error,
        };
        let is_over = match &error {
            AuthError::GrantOver(_) => true,
            error if is_of_issuer(error) => self.has_moved(renewing, demand).await?,
            _ => false,
        };
        if !is_over {
            return Err(error);
        }
        tracing::info!(%error, "a new sign-in is needed");
        Ok(None)
    }

    /// Reads the server's metadata again, once for all calls that want that (O47). Metadata that cannot be read says nothing.
    async fn has_moved(&self, renewing: Renewing, demand: Option<Demand>) -> Result<bool, AuthError> {
        let Some(terms) = self.tokens.terms() else { return Ok(false) };
        let need = Need::new(self.server.as_str()).demand(demand);
        let check = move || async move {
            let Renewing { settings, fetch, .. } = renewing;
            match fetch.drive(SignIn::check(settings, need, terms)?).await {
                Ok(Step::Checked { moved }) => Ok(moved),
                Err(error @ AuthError::WrongIssuer { .. }) => Err(error),
                _ => Ok(false),
            }
        };
        self.checks.run(check).await.unwrap_or(Ok(false))
    }
}

/// Returns whether a renewal failed at its issuer, or on the way there.
fn is_of_issuer(error: &AuthError) -> bool {
    matches!(
        error,
        AuthError::Unreachable { .. }
            | AuthError::Unavailable { .. }
            | AuthError::Unexpected { .. }
            | AuthError::TokenRefused(_)
            | AuthError::TokenResponse(_)
    )
}
