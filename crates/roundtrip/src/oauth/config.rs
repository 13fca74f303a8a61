//! Settings of a sign-in as the author gave them, and as the core wants them.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::auth::{
    AssertionRequest, AuthError, Choices, DevicePending, HttpUrl, IdentityProvider, Secret, Settings, Signer,
};

use super::proof_key::ProofKey;
use crate::client::BoxFuture;

/// Redirect URI of a client that has no browser and names none. No program listens there: the URL is pasted by hand.
const PASTED: &str = "http://127.0.0.1/callback";
/// Time that a person has to come back from the browser.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Code of the author's: it gives a value, or a text that says why not.
pub(super) type Hook<I, O> = Arc<dyn Fn(I) -> BoxFuture<Result<O, String>> + Send + Sync>;

/// Way in which tokens are got.
#[derive(Clone)]
pub(super) enum Kind {
    /// By a person with a browser.
    Code,
    /// By a person with a browser elsewhere, who is shown a code.
    Device(Hook<DevicePending, ()>),
    /// By the client itself.
    Machine,
    /// By an identity provider.
    Enterprise(Idp),
    /// By a token of the platform.
    Workload(Hook<AssertionRequest, Secret>),
}

/// Identity provider of an organisation: its token endpoint, and the client there.
#[derive(Debug, Clone)]
#[must_use = "an identity provider is for `OAuth::enterprise`"]
pub struct Idp {
    token_endpoint: String,
    client_id: String,
    secret: Option<Secret>,
    pub(super) identity: Option<Identity>,
}

/// Identity that the provider is shown.
#[derive(Debug, Clone)]
pub(super) enum Identity {
    IdToken(Secret),
    Saml(Secret),
}

impl Idp {
    /// Names the token endpoint of the provider, which the organisation tells.
    pub fn at(token_endpoint: impl Into<String>) -> Self {
        Self { token_endpoint: token_endpoint.into(), client_id: String::new(), secret: None, identity: None }
    }

    /// Sets the client id at the provider.
    pub fn client(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = client_id.into();
        self
    }

    /// Sets the client's secret at the provider.
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Returns the client id at the provider.
    pub(super) fn client_id(&self) -> &str {
        &self.client_id
    }

    fn provider(&self) -> Result<IdentityProvider, AuthError> {
        let missing =
            AuthError::Settings("the identity provider is shown no identity: add `identity` or `saml`");
        let (id_token, saml) = match self.identity.clone().ok_or(missing)? {
            Identity::IdToken(token) => (token, None),
            Identity::Saml(assertion) => (Secret::new(""), Some(assertion)),
        };
        let mut provider = IdentityProvider::new(&self.token_endpoint, &self.client_id, id_token)?;
        if let Some(secret) = &self.secret {
            provider = provider.secret(secret.clone());
        }
        Ok(match saml {
            Some(assertion) => provider.saml(assertion),
            None => provider,
        })
    }
}

/// Settings as the author gave them.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) choices: Choices,
    pub(super) redirect_uri: Option<String>,
    pub(super) browser: Option<Hook<HttpUrl, ()>>,
    pub(super) patience: Duration,
    pub(super) dpop: Option<ProofKey>,
}

impl Config {
    pub(super) fn new(name: String, kind: Kind) -> Self {
        Self {
            name,
            kind,
            choices: Choices::default(),
            redirect_uri: None,
            browser: None,
            patience: PATIENCE,
            dpop: None,
        }
    }

    /// Returns whether a person signs in.
    pub(super) fn has_person(&self) -> bool {
        matches!(self.kind, Kind::Code | Kind::Device(_))
    }

    /// Returns whether tokens can be bound to a key.
    pub(super) fn has_key(&self) -> bool {
        self.dpop.is_some()
    }

    /// Returns the hosts that the author named, which may be in a private network.
    pub(super) fn trusted_hosts(&self, server: &HttpUrl) -> Vec<String> {
        let provider = match &self.kind {
            Kind::Enterprise(provider) => Some(&provider.token_endpoint),
            _ => None,
        };
        let Choices { client_issuer, issuer, trusted_issuer, .. } = &self.choices;
        let trusted = trusted_issuer.as_ref().map(|pair| &pair.asked);
        let named = [provider, client_issuer.as_ref(), issuer.as_ref(), trusted];
        let named = named.into_iter().flatten().filter_map(|url| HttpUrl::parse(url).ok());
        named.chain([server.clone()]).map(|url| url.host().to_owned()).collect()
    }

    /// Makes the settings of a sign-in.
    ///
    /// # Errors
    /// Fails if something is missing, or a URL is not one.
    pub(super) fn settings(
        &self,
        redirect_uri: &str,
        key: Option<Arc<dyn Signer>>,
    ) -> Result<Settings, AuthError> {
        let settings = match &self.kind {
            Kind::Code => {
                let own = self.redirect_uri.as_deref().unwrap_or(PASTED);
                Settings::browser(&self.name, if redirect_uri.is_empty() { own } else { redirect_uri })?
            }
            Kind::Device(_) => Settings::device(&self.name),
            // The client's id is among the choices.
            Kind::Machine => Settings::machine(""),
            Kind::Enterprise(provider) => Settings::enterprise("", provider.provider()?),
            Kind::Workload(_) => Settings::workload(""),
        };
        let settings = settings.choices(self.choices.clone());
        Ok(match key {
            Some(key) => settings.dpop(key),
            None => settings,
        })
    }
}
