//! Sign-ins: `roundtrip login` makes them, and calls to their servers use them.

mod browser;
mod folder;
mod os_keyring;
mod paste;
mod store;

use roundtrip::oauth::store::{StoreError, TokenStore as _};
use roundtrip::oauth::{Grant, HttpUrl, OAuth, RegistrationSource, Secret};

use crate::exit::{Exit, Failure};
pub(crate) use browser::{Consent, Refusal, show_and_open, show_code};
pub(crate) use folder::Place;
use folder::{Folder, Note};
pub(crate) use paste::paste;
use store::Store;

/// Name of the client, which authorization servers show to the user.
pub(crate) const NAME: &str = "Roundtrip";

/// A sign-in that is kept on this machine.
pub(crate) struct SignedIn {
    pub(crate) server: HttpUrl,
    /// Tokens, and the terms on which they were got.
    pub(crate) grant: Grant,
    folder: Folder,
    note: Note,
    store: Store,
}

impl SignedIn {
    /// Finds the sign-in at a server, if there is one. The keyring is not asked for any other server.
    pub(crate) async fn find(url: &str) -> Result<Option<Self>, Failure> {
        let (Some(folder), Ok(server)) = (Folder::of_user(), HttpUrl::of_server(url)) else {
            return Ok(None);
        };
        let Some(files) = folder.files_if_there()? else { return Ok(None) };
        let Some(note) = folder.note(server.as_str())? else { return Ok(None) };
        let store = Store::new(note.kept_in, files);
        let record = store.look(server.as_str()).await.map_err(|error| unreadable(&error))?;
        let Some(grant) = record.and_then(|record| record.grant) else { return Ok(None) };
        let store = store.client_secret(grant.terms.client.secret.clone());
        Ok(Some(Self { server, grant, folder, note, store }))
    }

    /// Returns the settings of a client that uses this sign-in. It signs in anew if that is needed and the user consents in a
    /// terminal.
    pub(crate) fn oauth(self, consent: Option<Consent>) -> OAuth {
        let client = &self.grant.terms.client;
        let mut oauth = match client.source {
            RegistrationSource::Configured => {
                registered(&client.client_id, client.secret.clone(), Some(&self.grant.terms.issuer))
            }
            RegistrationSource::MetadataDocument => OAuth::new(NAME).client_metadata(&client.client_id),
            _ => OAuth::new(NAME),
        };
        if let Some(issuer) = &self.note.issuer {
            oauth = oauth.server_issuer(issuer);
        }
        if let Some(consent) = consent {
            oauth = oauth.browser(move |url| consent.clone().open(url));
        }
        oauth.store(self.store)
    }

    /// Returns the place in which the tokens are kept.
    pub(crate) fn place(&self) -> Place {
        self.note.kept_in
    }

    /// Says where the tokens are kept.
    pub(crate) fn kept_in(&self) -> String {
        described(self.note.kept_in, &self.folder)
    }
}

/// Forgets the sign-in at a server. Returns whether there was one.
pub(crate) async fn forget(url: &str) -> Result<bool, Failure> {
    let (Some(folder), Ok(server)) = (Folder::of_user(), HttpUrl::of_server(url)) else { return Ok(false) };
    let Some(files) = folder.files_if_there()? else { return Ok(false) };
    let Some(note) = folder.note(server.as_str())? else { return Ok(false) };
    let store = Store::new(note.kept_in, files);
    delete(&store, server.as_str()).await.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    folder.forget(server.as_str())?;
    Ok(true)
}

async fn delete(store: &Store, server: &str) -> Result<(), StoreError> {
    let _held = store.lock(server).await?;
    store.delete(server).await
}

/// A sign-in that is being made.
pub(crate) struct NewSignIn {
    server: HttpUrl,
    folder: Folder,
    place: Place,
    /// Reason the keyring is not used, where that was not the user's choice.
    no_keyring: Option<String>,
    store: Store,
}

impl NewSignIn {
    /// Chooses the place for the tokens: the keyring, if there is one that can be used.
    pub(crate) async fn begin(url: &str, wants_file: bool, secret: Option<Secret>) -> Result<Self, Failure> {
        let server = HttpUrl::of_server(url).map_err(|why| Failure::usage(format!("`{url}`: {why}")))?;
        let folder = Folder::of_user().ok_or_else(|| {
            Failure::usage("there is no home directory to keep tokens in: set XDG_DATA_HOME")
        })?;
        let keyring = if wants_file { Ok(false) } else { os_keyring::check().await.map(|()| true) };
        let place = if keyring == Ok(true) { Place::Keyring } else { Place::File };
        let store = Store::new(place, folder.files()?).hiding_grant().client_secret(secret);
        Ok(Self { server, folder, place, no_keyring: keyring.err(), store })
    }

    /// Returns the store for the client that signs in.
    pub(crate) fn store(&self) -> Store {
        self.store.clone()
    }

    /// Returns the tokens, once they are there.
    pub(crate) async fn grant(&self) -> Result<Option<Grant>, Failure> {
        let record = self.store.load(self.server.as_str()).await;
        let record = record.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        Ok(record.and_then(|record| record.grant))
    }

    /// Notes where the tokens are, and forgets those that were in the other place.
    pub(crate) async fn finish(&self, issuer: Option<String>) -> Result<(), Failure> {
        let server = self.server.as_str();
        let before = self.folder.note(server).ok().flatten();
        self.folder.write(&Note::new(server, self.place, issuer))?;
        if let Some(before) = before.filter(|before| before.kept_in != self.place) {
            // A keyring that is out of reach keeps tokens that are not used any more.
            let _ = delete(&Store::new(before.kept_in, self.folder.files()?), server).await;
        }
        Ok(())
    }

    /// Says where the tokens are kept, and why they are not in the keyring.
    pub(crate) fn kept_in(&self) -> String {
        let place = described(self.place, &self.folder);
        match &self.no_keyring {
            Some(why) => format!("{place}, because there is no keyring that can be used: {why}"),
            None => place,
        }
    }
}

/// Returns the settings of a client that was registered by hand.
pub(crate) fn registered(client_id: &str, secret: Option<Secret>, issuer: Option<&str>) -> OAuth {
    let mut oauth = OAuth::new(NAME).client(client_id);
    if let Some(secret) = secret {
        oauth = oauth.secret(secret);
    }
    match issuer {
        Some(issuer) => oauth.issuer(issuer),
        None => oauth,
    }
}

fn described(place: Place, folder: &Folder) -> String {
    match place {
        Place::Keyring => "the keyring of the operating system".to_owned(),
        Place::File => format!("{}, which its owner alone can read", folder.shown()),
    }
}

fn unreadable(error: &StoreError) -> Failure {
    Failure::new(Exit::SignIn, format!("the stored tokens cannot be read: {error}"))
}
