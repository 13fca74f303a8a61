//! Settings of a sign-in as the author gave them, and as the core wants them.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::auth::{
    AuthError, Choices, DevicePending, HttpUrl, IdentityProvider, RegisteredClient, Secret, Settings, Signer,
};

use super::proof_key::ProofKey;
use crate::client::BoxFuture;

/// Redirect URI of a client that has no browser and names none. No program listens there: the URL is pasted by hand.
const PASTED: &str = "http://127.0.0.1/callback";
/// Time that a person has to come back from the browser.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Code of the author's: it gives a value, or a text that says why not.
pub(super) type Hook<I, O> = Arc<dyn Fn(I) -> BoxFuture<Result<O, String>> + Send + Sync>;
pub(super) type Source<O> = Arc<dyn Fn() -> BoxFuture<Result<O, String>> + Send + Sync>;

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
    Workload(Source<Secret>),
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
    /// Lets credentials go to any issuer that the server names.
    pub(super) any_issuer: bool,
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
            any_issuer: false,
        }
    }

    /// Returns whether a person signs in.
    pub(super) fn has_person(&self) -> bool {
        matches!(self.kind, Kind::Code | Kind::Device(_))
    }

    /// Returns whether a secret or a key would go to whatever issuer the server names, against the author's will.
    pub(super) fn is_unbound(&self) -> bool {
        let Choices { registered, issuer, .. } = &self.choices;
        let has_credentials = |client: &RegisteredClient| client.secret.is_some() || client.key.is_some();
        let client = registered.as_ref().filter(|client| has_credentials(client));
        !self.any_issuer && issuer.is_none() && client.is_some_and(|client| client.issuer.is_none())
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
        let Choices { registered, issuer, trusted_issuer, .. } = &self.choices;
        let registered = registered.as_ref().and_then(|client| client.issuer.as_ref());
        let named = [provider, registered, issuer.as_ref(), trusted_issuer.as_ref()];
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
        assertion: Option<Secret>,
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
            // A refresh needs none.
            Kind::Workload(_) => Settings::workload("", assertion.unwrap_or_else(|| Secret::new(""))),
        };
        let settings = settings.choices(self.choices.clone());
        Ok(match key {
            Some(key) => settings.dpop(key),
            None => settings,
        })
    }
}
