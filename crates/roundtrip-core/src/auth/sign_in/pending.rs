//! A sign-in that waits for its person.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use super::need::Known;
use crate::auth::callback::{CallbackError, Expected, read_callback};
use crate::auth::error::AuthError;
use crate::auth::grant::Terms;
use crate::auth::metadata::MetadataError;
use crate::auth::pairs::{self, Pairs};
use crate::auth::pkce::Verifier;
use crate::auth::registration::Registration;
use crate::auth::scope::OFFLINE_ACCESS;
use crate::auth::secret::Secret;
use crate::auth::surroundings::Surroundings;
use crate::auth::url::{HttpUrl, UrlError};
use crate::seal::Timestamp;
use crate::wire::json::ByName;

/// A sign-in that waits for the browser to come back: the URL to open, and all that is needed to finish it.
///
/// It serialises as JSON, and any process can finish it with the callback URL. It contains the verifier of the code, and a
/// client secret if the issuer gave one: store it as safely as those, and drop it once it was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    url: HttpUrl,
    state: Secret,
    verifier: Verifier,
    redirect_uri: HttpUrl,
    promises_iss: bool,
    begun_at: u64,
    terms: Terms,
}

/// The stored form of [`Pending`].
#[derive(Deserialize)]
#[serde(remote = "Pending")]
struct Stored {
    #[serde(deserialize_with = "request_url")]
    url: HttpUrl,
    state: Secret,
    verifier: Verifier,
    redirect_uri: HttpUrl,
    promises_iss: bool,
    begun_at: u64,
    terms: Terms,
}

// A store is trusted no more than a peer: lists are not taken for structs.
impl<'de> Deserialize<'de> for Pending {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(ByName::new(deserializer))
    }
}

/// A sign-in whose person has come back with a code.
#[derive(Debug)]
#[must_use = "the code is good for a short time: pass it to `SignIn::resume`"]
pub struct Answered {
    pub(super) terms: Terms,
    pub(super) code: Secret,
    pub(super) verifier: Verifier,
    pub(super) redirect_uri: HttpUrl,
}

impl Answered {
    /// Returns the terms on which the tokens will be got.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }
}

impl Pending {
    pub(super) fn new(
        known: &Known,
        terms: Terms,
        redirect_uri: &HttpUrl,
        around: &mut dyn Surroundings,
    ) -> Result<Self, AuthError> {
        let state = Secret::new(URL_SAFE_NO_PAD.encode(&around.random()[..16]));
        let verifier = Verifier::from_random(around.random());
        let endpoint = known.server.endpoint("authorization_endpoint", &known.flow.policy);
        let endpoint = endpoint.map_err(|why| known.refused(why))?;
        let url = authorization_url(&endpoint, &terms, redirect_uri, &state, &verifier);
        let refuse = |why| match why {
            UrlError::TooLong => AuthError::Settings(
                "the authorization request is longer than 8 KiB: request fewer scopes, with `only_scopes` for one",
            ),
            why => known.refused(MetadataError::Endpoint { member: "authorization_endpoint", why }),
        };
        Ok(Self {
            url: url.map_err(refuse)?,
            state,
            verifier,
            redirect_uri: redirect_uri.clone(),
            promises_iss: known.server.promises_iss(),
            begun_at: around.now().as_unix(),
            terms,
        })
    }

    /// Returns the URL to open: `https`, or `http` on this machine. Open it without a shell.
    pub fn url(&self) -> &HttpUrl {
        &self.url
    }

    /// Returns the redirect URI at which the callback is awaited.
    pub fn redirect_uri(&self) -> &HttpUrl {
        &self.redirect_uri
    }

    /// Returns the terms on which the tokens will be got.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the client's registration, to be stored before the browser opens.
    pub fn registration(&self) -> &Registration {
        &self.terms.client
    }

    /// Returns the time at which the sign-in was begun.
    pub fn begun_at(&self) -> Timestamp {
        Timestamp::from_unix(self.begun_at)
    }

    /// Reads the callback: the whole URL, as it arrived at the redirect URI or was pasted.
    ///
    /// # Errors
    /// [`CallbackError::NotOurs`] for a callback that is to be dropped while the wait goes on, another error where the sign-in
    /// is over.
    pub fn answered(&self, callback_url: &str) -> Result<Answered, CallbackError> {
        let expected = Expected {
            state: &self.state,
            issuer: &self.terms.issuer,
            promises_iss: self.promises_iss,
            redirect_uri: self.redirect_uri.as_str(),
        };
        Ok(Answered {
            code: read_callback(callback_url, &expected)?,
            terms: self.terms.clone(),
            verifier: self.verifier.clone(),
            redirect_uri: self.redirect_uri.clone(),
        })
    }
}

/// Writes the authorization request. An endpoint whose query repeats one of its parameters is refused: each may be there once.
fn authorization_url(
    endpoint: &HttpUrl,
    terms: &Terms,
    redirect_uri: &HttpUrl,
    state: &Secret,
    verifier: &Verifier,
) -> Result<HttpUrl, UrlError> {
    let scope = terms.requested.to_string();
    let challenge = verifier.challenge();
    let mut parameters = vec![
        ("response_type", "code"),
        ("client_id", terms.client.client_id.as_str()),
        ("redirect_uri", redirect_uri.as_str()),
        ("state", state.expose()),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("resource", &terms.resource),
    ];
    if !scope.is_empty() {
        parameters.push(("scope", &scope));
    }
    if terms.requested.contains(OFFLINE_ACCESS) {
        // OpenID Connect Core, 11: without consent the scope is ignored.
        parameters.push(("prompt", "consent"));
    }
    if let Some(thumbprint) = &terms.dpop {
        parameters.push(("dpop_jkt", thumbprint));
    }
    let given = pairs::parse(endpoint.query().unwrap_or_default()).ok_or(UrlError::Query)?;
    if given.iter().any(|(name, _)| parameters.iter().any(|(ours, _)| ours == name)) {
        return Err(UrlError::Query);
    }
    let mut query = Pairs::default();
    parameters.iter().for_each(|(name, value)| query.push(name, value));
    let separator = match endpoint.query() {
        None => "?",
        Some("") => "",
        Some(_) => "&",
    };
    HttpUrl::of_request(&format!("{endpoint}{separator}{}", query.as_str()))
}

/// Reads the URL of a stored request.
fn request_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HttpUrl, D::Error> {
    let text = String::deserialize(deserializer)?;
    HttpUrl::of_request(&text).map_err(D::Error::custom)
}
