//! Store of the tokens of one user: in the keyring of the operating system, or in files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use roundtrip::oauth::store::{FileStore, Record, StoreError, StoreLock, TokenStore};
use roundtrip::oauth::{RegistrationSource, Secret};
use roundtrip::seal::BoxFuture;

use super::folder::Place;
use super::os_keyring;

/// Store in one place. Its locks are files in either case: keyrings have none.
#[derive(Clone)]
pub(crate) struct Store {
    place: Place,
    files: FileStore,
    /// Hides the stored grant until another one is saved, so that a new sign-in begins from nothing.
    hides_grant: Arc<AtomicBool>,
    /// Secret of a client that was registered by hand. The library has it from its settings, which later commands have from here.
    client_secret: Option<Secret>,
    /// Record that was read ahead, for the first that loads it.
    ahead: Arc<Mutex<Option<Record>>>,
}

impl Store {
    pub(super) fn new(place: Place, files: FileStore) -> Self {
        Self { place, files, hides_grant: Arc::default(), client_secret: None, ahead: Arc::default() }
    }

    /// Hides the stored grant until another one is saved.
    pub(super) fn hiding_grant(self) -> Self {
        self.hides_grant.store(true, Ordering::Relaxed);
        self
    }

    /// Keeps the secret of a client that was registered by hand with its registration.
    pub(super) fn client_secret(mut self, secret: Option<Secret>) -> Self {
        self.client_secret = secret;
        self
    }

    /// Reads the record of a server, which the next load returns too.
    pub(super) async fn look(&self, server: &str) -> Result<Option<Record>, StoreError> {
        let record = self.read(server).await?;
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&record);
        Ok(record)
    }

    async fn read(&self, server: &str) -> Result<Option<Record>, StoreError> {
        match self.place {
            Place::Keyring => os_keyring::load(server).await,
            Place::File => self.files.load(server).await,
        }
    }

    fn take_ahead(&self) -> Option<Record> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Adds the client's secret to a record that is saved.
    fn with_secret(&self, mut record: Record) -> Record {
        if let Some(secret) = &self.client_secret {
            let of_grant = record.grant.as_mut().map(|grant| &mut grant.terms.client);
            let clients = record.registrations.iter_mut().chain(of_grant);
            clients
                .filter(|client| client.source == RegistrationSource::Configured)
                .for_each(|client| client.secret = Some(secret.clone()));
        }
        record
    }
}

impl TokenStore for Store {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            let record = match self.take_ahead() {
                Some(record) => Some(record),
                None => self.read(server).await?,
            };
            Ok(record.map(|mut record| {
                record.grant = record.grant.filter(|_| !self.hides_grant.load(Ordering::Relaxed));
                record
            }))
        })
    }

    fn save<'a>(&'a self, server: &'a str, record: &'a Record) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut record = self.with_secret(record.clone());
            if record.grant.is_some() {
                self.hides_grant.store(false, Ordering::Relaxed);
            } else if self.hides_grant.load(Ordering::Relaxed) {
                // A registration is saved before its sign-in has ended well.
                record.grant = self.read(server).await?.and_then(|held| held.grant);
            }
            match self.place {
                Place::Keyring => os_keyring::save(server, &record).await,
                Place::File => self.files.save(server, &record).await,
            }
        })
    }

    fn delete<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        match self.place {
            Place::Keyring => Box::pin(os_keyring::delete(server)),
            Place::File => self.files.delete(server),
        }
    }

    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        // What was read before the lock may be old by now.
        self.take_ahead();
        self.files.lock(server)
    }
}
