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

#[cfg(test)]
mod tests {
    use roundtrip::testing::stores;
    use serde_json::json;

    use super::*;

    /// A folder of one test, removed when dropped.
    struct Temporary(std::path::PathBuf);

    impl Temporary {
        fn new(test: &str) -> Self {
            Self(std::env::temp_dir().join(format!("roundtrip-store-{test}-{}", std::process::id())))
        }

        fn store(&self, place: Place) -> Store {
            Store::new(place, FileStore::open(&self.0).unwrap())
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn record(source: &str) -> Record {
        let client = json!({ "issuer": "https://login.example", "client_id": "a", "source": source });
        let grant = json!({
            "terms": {
                "server": "https://a.example/", "resource": "https://a.example/", "issuer": "https://login.example",
                "token_endpoint": "https://login.example/token", "method": "none", "requested": "read",
                "client": client, "assumed_endpoints": false,
            },
            "access_token": "token", "scheme": "Bearer", "granted": "read",
        });
        serde_json::from_value(json!({ "grant": grant, "registrations": [client] })).unwrap()
    }

    #[tokio::test]
    async fn files_keep_the_contract_of_stores() {
        let folder = Temporary::new("files");
        stores::tokens(folder.store(Place::File), folder.store(Place::File)).await.unwrap();
    }

    #[tokio::test]
    #[ignore = "it writes to a keyring: dbus-run-session -- cargo test -p roundtrip-cli keyring -- --ignored"]
    async fn a_keyring_keeps_the_contract_of_stores() {
        let folder = Temporary::new("keyring");
        os_keyring::check().await.unwrap();
        stores::tokens(folder.store(Place::Keyring), folder.store(Place::Keyring)).await.unwrap();
    }

    /// A registration that is saved on the way leaves the stored grant, and the grant of the new sign-in takes its place.
    #[tokio::test]
    async fn a_new_sign_in_begins_from_nothing_and_loses_nothing() {
        let folder = Temporary::new("hidden");
        folder.store(Place::File).save("a", &record("dynamic")).await.unwrap();
        let new = folder.store(Place::File).hiding_grant();
        let mut seen = new.load("a").await.unwrap().unwrap();
        assert_eq!((seen.grant.is_some(), seen.registrations.len()), (false, 1));
        seen.registrations.clear();
        new.save("a", &seen).await.unwrap();
        let kept = folder.store(Place::File).load("a").await.unwrap().unwrap();
        assert_eq!((kept.grant.is_some(), kept.registrations.len()), (true, 0));
        new.save("a", &record("dynamic")).await.unwrap();
        assert!(new.load("a").await.unwrap().unwrap().grant.is_some());
    }

    /// The secret of a client that was registered by hand goes with it, and with no other.
    #[tokio::test]
    async fn a_secret_is_kept_with_its_client() {
        let folder = Temporary::new("secret");
        let store = folder.store(Place::File).client_secret(Some("secret".into()));
        for (source, is_kept) in [("configured", true), ("dynamic", false)] {
            store.save("a", &record(source)).await.unwrap();
            let kept = store.load("a").await.unwrap().unwrap();
            let clients = [&kept.registrations[0], &kept.grant.unwrap().terms.client];
            assert!(clients.iter().all(|client| client.secret.is_some() == is_kept), "{source}");
        }
    }

    /// A record that was read ahead is used once, and not under the lock.
    #[tokio::test]
    async fn what_was_read_ahead_is_dropped_by_the_lock() {
        let folder = Temporary::new("ahead");
        let (store, other) = (folder.store(Place::File), folder.store(Place::File));
        other.save("a", &record("dynamic")).await.unwrap();
        store.look("a").await.unwrap();
        other.delete("a").await.unwrap();
        let held = store.lock("a").await.unwrap();
        assert_eq!(store.load("a").await.unwrap(), None);
        drop(held);
    }
}
