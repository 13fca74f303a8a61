//! Settings of a sign-in as the author gave them, and as the core wants them.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::auth::{
    AuthError, ClientAuthMethod, ClientMetadataUrl, DevicePending, HttpUrl, IdentityProvider, ScopeChoice,
    Secret, Settings, Signer,
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

/// A client that was registered by hand.
#[derive(Clone, Default)]
pub(super) struct Registered {
    pub(super) client_id: String,
    pub(super) issuer: Option<String>,
    pub(super) secret: Option<Secret>,
    pub(super) key: Option<Arc<dyn Signer>>,
    pub(super) method: Option<ClientAuthMethod>,
}

/// Settings as the author gave them.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) registered: Option<Registered>,
    pub(super) metadata_url: Option<ClientMetadataUrl>,
    pub(super) scopes: ScopeChoice,
    pub(super) issuer: Option<String>,
    pub(super) trusted_issuer: Option<String>,
    pub(super) private_networks: bool,
    pub(super) legacy_endpoints: bool,
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
            registered: None,
            metadata_url: None,
            scopes: ScopeChoice::Demanded,
            issuer: None,
            trusted_issuer: None,
            private_networks: false,
            legacy_endpoints: false,
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
        let registered = self.registered.as_ref().and_then(|client| client.issuer.as_ref());
        let named = [provider, registered, self.issuer.as_ref(), self.trusted_issuer.as_ref()];
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
        let client_id = self.registered.as_ref().map(|client| client.client_id.clone()).unwrap_or_default();
        let mut settings = match &self.kind {
            Kind::Code => {
                let own = self.redirect_uri.as_deref().unwrap_or(PASTED);
                let settings =
                    Settings::browser(&self.name, if redirect_uri.is_empty() { own } else { redirect_uri })?;
                if self.registered.is_some() { settings.registered(client_id) } else { settings }
            }
            Kind::Device(_) if self.registered.is_some() => {
                Settings::device(&self.name).registered(client_id)
            }
            Kind::Device(_) => Settings::device(&self.name),
            Kind::Machine => Settings::machine(client_id),
            Kind::Enterprise(provider) => Settings::enterprise(client_id, provider.provider()?),
            // A refresh needs none.
            Kind::Workload(_) => Settings::workload(client_id, assertion.unwrap_or_else(|| Secret::new(""))),
        };
        if let Some(client) = &self.registered {
            settings = of_registered(settings, client);
        }
        if let Some(url) = &self.metadata_url {
            settings = settings.client_metadata(url.clone());
        }
        Ok(self.of_server(settings, key))
    }

    /// Adds what the author said of the server and its issuer.
    fn of_server(&self, mut settings: Settings, key: Option<Arc<dyn Signer>>) -> Settings {
        settings = settings.scopes(self.scopes.clone());
        if let Some(issuer) = &self.issuer {
            settings = settings.issuer(issuer);
        }
        if let Some(issuer) = &self.trusted_issuer {
            settings = settings.trust_issuer(issuer);
        }
        if self.private_networks {
            settings = settings.private_networks();
        }
        if self.legacy_endpoints {
            settings = settings.legacy_endpoints();
        }
        match key {
            Some(key) => settings.dpop(key),
            None => settings,
        }
    }
}

/// Adds what the author said of a client that was registered by hand.
fn of_registered(mut settings: Settings, client: &Registered) -> Settings {
    if let Some(issuer) = &client.issuer {
        settings = settings.registered_with(issuer);
    }
    if let Some(secret) = &client.secret {
        settings = settings.secret(secret.clone());
    }
    if let Some(key) = &client.key {
        settings = settings.key(Arc::clone(key));
    }
    match client.method {
        Some(method) => settings.auth_method(method),
        None => settings,
    }
}
