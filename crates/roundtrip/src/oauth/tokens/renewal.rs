//! One renewal: read, lock, read again, exchange, write.

use std::sync::Arc;

use roundtrip_core::auth::{AuthError, Grant, RegistrationSource};

use super::{Current, EARLY, Exchange, Origin, Renewed, Shared, Unsaved, now};
use crate::lock::{read, write};
use crate::oauth::store::Record;

/// Pause after a renewal that failed while the token is still good, in seconds.
const PAUSE: u64 = 10;

/// One renewal of the grant in use.
pub(super) struct Renewal<E> {
    shared: Arc<Shared>,
    exchange: E,
}

impl<E: Exchange> Renewal<E> {
    pub(super) fn new(shared: Arc<Shared>, exchange: E) -> Self {
        Self { shared, exchange }
    }

    /// Returns a token that is good. One that is still usable stays in use where it cannot be renewed.
    pub(super) async fn run(self) -> Renewed {
        let attempted = self.attempt().await;
        write(&self.shared.state).looked = true;
        match attempted {
            Err(error @ (AuthError::NotStored(_) | AuthError::GrantOver(_))) => Err(error),
            Err(error) => match self.usable() {
                Some(current) => {
                    tracing::warn!(%error, server = self.shared.server.without_query(), "the token was not renewed");
                    current.renew_at(now().as_unix().saturating_add(PAUSE));
                    Ok(Some(current))
                }
                None => Err(error),
            },
            renewed => renewed,
        }
    }

    async fn attempt(&self) -> Renewed {
        // A renewal may have ended since the caller looked.
        if let Some(current) = self.shared.now() {
            return Ok(Some(current));
        }
        // A record is replaced as a whole: reading it needs no lock.
        let record = self.shared.load().await?;
        if let Some(current) = self.shared.take(&record) {
            return Ok(Some(current));
        }
        self.shared.hold(record.grant);
        let _held = self.shared.store.0.lock(self.shared.server.as_str()).await?;
        let mut record = self.shared.load().await?;
        self.save_again(&mut record).await;
        if let Some(current) = self.shared.now().or_else(|| self.shared.take(&record)) {
            return Ok(Some(current));
        }
        match record.grant.clone() {
            Some(old) => self.exchange(record, old).await,
            None => {
                // Another process has signed out.
                if read(&self.shared.state).current.is_some() {
                    self.shared.forget();
                }
                Ok(None)
            }
        }
    }

    fn usable(&self) -> Option<Arc<Current>> {
        read(&self.shared.state).current.clone().filter(|current| current.is_usable())
    }

    /// Stores a grant that could not be stored before, unless another process has stored one since.
    async fn save_again(&self, record: &mut Record) {
        let (unsaved, current) = {
            let mut state = write(&self.shared.state);
            (state.unsaved.take(), state.current.clone())
        };
        let (Some(unsaved), Some(current)) = (unsaved, current) else {
            return;
        };
        let stored = record.grant.as_ref().map(|grant| &grant.access_token);
        if stored != unsaved.replaces.as_ref() {
            return;
        }
        record.sign_in(current.grant.clone());
        if let Err(error) = self.shared.save(record).await {
            tracing::warn!(%error, server = self.shared.server.without_query(), "tokens are still not stored");
            let retry_at = now().as_unix().saturating_add(EARLY);
            write(&self.shared.state).unsaved = Some(Unsaved { retry_at, ..unsaved });
        }
    }

    async fn exchange(&self, record: Record, old: Grant) -> Renewed {
        self.shared.hold(Some(old.clone()));
        let _exchanging = self.shared.exchanges.begin()?;
        match self.exchange.refresh(&old).await {
            Ok(Some(new)) => self.store(record, old, new).await,
            Ok(None) => self.without_renewal(),
            Err(AuthError::GrantOver(error)) => self.over(&old, AuthError::GrantOver(error)).await,
            Err(AuthError::TokenRefused(error)) if is_unknown(&old, &error.code) => {
                self.over(&old, AuthError::GrantOver(error)).await
            }
            Err(error) => Err(error),
        }
    }

    async fn store(&self, mut record: Record, old: Grant, new: Grant) -> Renewed {
        // In use before it is stored: nothing that fails from here on loses it.
        let current = self.shared.adopt(new.clone(), Origin::Renewal);
        record.grant = Some(new);
        match self.shared.save(&record).await {
            Ok(()) => Ok(current),
            Err(error) => Err(self.shared.not_stored(Some(old.access_token), &error)),
        }
    }

    /// Uses a token that cannot be renewed until it ends.
    fn without_renewal(&self) -> Renewed {
        if let Some(current) = self.usable() {
            current.renew_at(u64::MAX);
            return Ok(Some(current));
        }
        read(&self.shared.state).over.clone().map_or(Ok(None), Err)
    }

    /// Drops the refresh token that was refused, if the store still has that one.
    async fn over(&self, old: &Grant, error: AuthError) -> Renewed {
        tracing::warn!(%error, server = self.shared.server.without_query(), "the grant is over");
        let mut record = self.shared.load().await?;
        let dropped = match (&mut record.grant, &old.refresh_token) {
            (Some(grant), Some(refused)) => grant.drop_refused(refused),
            _ => false,
        };
        if !dropped {
            return self.shared.take(&record).map_or(Err(error), |current| Ok(Some(current)));
        }
        if is_unknown(old, code(&error)) {
            record.registrations.retain(|held| held.issuer != old.terms.issuer);
        }
        if let Err(error) = self.shared.save(&record).await {
            tracing::warn!(%error, "a refresh token that is over is still stored");
        }
        write(&self.shared.state).over = Some(error);
        self.without_renewal()
    }
}

/// Returns whether the issuer does not know a client any more that it has registered by request.
fn is_unknown(grant: &Grant, code: &str) -> bool {
    grant.terms.client.source == RegistrationSource::Dynamic
        && matches!(code, "invalid_client" | "unauthorized_client")
}

fn code(error: &AuthError) -> &str {
    match error {
        AuthError::GrantOver(error) => &error.code,
        _ => "",
    }
}
