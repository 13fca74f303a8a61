//! Settings of a client that signs in.

use std::sync::Arc;

use crate::auth::client_auth::ClientAuthMethod;
use crate::auth::error::AuthError;
use crate::auth::jwt::Signer;
use crate::auth::registration::ClientMetadataUrl;
use crate::auth::scope::ScopeSet;
use crate::auth::secret::Secret;
use crate::auth::url::HttpUrl;

/// Way in which tokens are got.
#[derive(Debug, Clone)]
pub(super) enum GrantType {
    /// By a person, with a browser that comes back to the redirect URI.
    Code { redirect_uri: HttpUrl },
    /// By a person, with a browser elsewhere.
    Device,
    /// By the client itself.
    ClientCredentials,
    /// By an identity assertion of an organisation's identity provider.
    Enterprise(Box<IdentityProvider>),
    /// By a token of the platform that the client runs on.
    Workload,
}

/// Choice of the scopes to request.
#[derive(Debug, Clone, Default)]
pub enum ScopeChoice {
    /// Those of the challenge, or all that the resource lists.
    #[default]
    Demanded,
    /// Those, and these.
    And(ScopeSet),
    /// These alone, until the server demands more.
    Only(ScopeSet),
}

/// A client that was registered by hand.
#[derive(Debug, Clone, Default)]
pub struct RegisteredClient {
    /// Its id.
    pub client_id: String,
    /// Its secret.
    pub secret: Option<Secret>,
    /// Its key.
    pub key: Option<Arc<dyn Signer>>,
    /// Way in which it authenticates itself, in place of a choice by what the server lists.
    pub method: Option<ClientAuthMethod>,
}

/// Choices of an author about a server, its issuer, and the client there. They are the same for every way to get tokens.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The client, if it was registered by hand.
    pub registered: Option<RegisteredClient>,
    /// URL of a client metadata document, for issuers that take those.
    pub metadata_url: Option<ClientMetadataUrl>,
    /// Scopes to request.
    pub scopes: ScopeChoice,
    /// Issuer that the client is bound to.
    pub client_issuer: Option<String>,
    /// Issuer of the server, whose resource metadata is then not read.
    pub issuer: Option<String>,
    /// Issuer whose metadata has another name.
    pub trusted_issuer: Option<TrustedIssuer>,
    /// Lets the server choose the issuer of a client that is known beyond one issuer.
    pub any_issuer: bool,
    /// Refuses tokens that are not bound to a key.
    pub require_dpop: bool,
    /// Allows URLs in private networks.
    pub private_networks: bool,
    /// Uses endpoints at the origin of a server that publishes no metadata at all.
    pub legacy_endpoints: bool,
}

/// An issuer whose metadata has another name, as with one document for many tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// Issuer that is asked.
    pub asked: String,
    /// `issuer` of the metadata that it publishes.
    pub published: String,
}

impl Choices {
    /// Returns whether the author has chosen the issuer.
    pub(super) fn names_issuer(&self) -> bool {
        self.client_issuer.is_some() || self.issuer.is_some()
    }

    /// Returns whether metadata of one issuer may have the name of another. Where the document came from counts: anybody can
    /// publish a name.
    pub(super) fn trusts(&self, asked: &str, published: &str) -> bool {
        self.trusted_issuer.as_ref().is_some_and(|pair| pair.asked == asked && pair.published == published)
    }

    /// Returns whether an issuer is the one that the author has chosen, if there is one.
    pub(super) fn allows(&self, issuer: &str) -> bool {
        let mut named = [&self.client_issuer, &self.issuer].into_iter().flatten();
        named.all(|named| named == issuer || self.trusts(named, issuer))
    }
}

/// An organisation's identity provider, and the identity that it is shown.
#[derive(Debug, Clone)]
pub struct IdentityProvider {
    pub(super) token_endpoint: HttpUrl,
    pub(super) client_id: String,
    pub(super) secret: Option<Secret>,
    pub(super) identity: Secret,
    pub(super) identity_type: &'static str,
}

impl IdentityProvider {
    /// Names the provider's token endpoint, the client id there, and an ID token of the person.
    ///
    /// # Errors
    /// Fails if the endpoint is not a URL that is used.
    pub fn new(
        token_endpoint: &str,
        client_id: impl Into<String>,
        id_token: Secret,
    ) -> Result<Self, AuthError> {
        let issuer = |why| AuthError::Issuer { issuer: token_endpoint.to_owned(), why };
        Ok(Self {
            token_endpoint: HttpUrl::parse(token_endpoint).map_err(issuer)?,
            client_id: client_id.into(),
            secret: None,
            identity: id_token,
            identity_type: "urn:ietf:params:oauth:token-type:id_token",
        })
    }

    /// Sets the client's secret at the provider.
    #[must_use]
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Shows a SAML assertion in place of an ID token.
    #[must_use]
    pub fn saml(mut self, assertion: Secret) -> Self {
        self.identity = assertion;
        self.identity_type = "urn:ietf:params:oauth:token-type:saml2";
        self
    }
}

/// Settings of a client that signs in.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(super) name: String,
    pub(super) grant: GrantType,
    pub(super) choices: Choices,
    pub(super) dpop: Option<Arc<dyn Signer>>,
}

impl Settings {
    fn new(name: impl Into<String>, grant: GrantType) -> Self {
        Self { name: name.into(), grant, choices: Choices::default(), dpop: None }
    }

    /// Signs in with a browser that comes back to a redirect URI. The name is shown to the person.
    ///
    /// # Errors
    /// Fails if the redirect URI is neither `https` nor on this machine, or has a query.
    pub fn browser(name: impl Into<String>, redirect_uri: &str) -> Result<Self, AuthError> {
        let refuse = || AuthError::RedirectUri(redirect_uri.to_owned());
        let url = HttpUrl::parse(redirect_uri).map_err(|_| refuse())?;
        if url.query().is_some() || !(url.is_https() || url.is_loopback()) {
            return Err(refuse());
        }
        Ok(Self::new(name, GrantType::Code { redirect_uri: url }))
    }

    /// Signs in with a browser on another device, which shows a code.
    pub fn device(name: impl Into<String>) -> Self {
        Self::new(name, GrantType::Device)
    }

    /// Gets tokens as the client itself. Add a secret or a key.
    pub fn machine(client_id: impl Into<String>) -> Self {
        Self::new("", GrantType::ClientCredentials).registered(client_id)
    }

    /// Gets tokens by an identity assertion of an organisation's identity provider.
    pub fn enterprise(client_id: impl Into<String>, provider: IdentityProvider) -> Self {
        Self::new("", GrantType::Enterprise(Box::new(provider))).registered(client_id)
    }

    /// Gets tokens by a token of the platform, which is asked for anew for every sign-in ([`Step::Assert`](super::Step::Assert)).
    pub fn workload(client_id: impl Into<String>) -> Self {
        Self::new("", GrantType::Workload).registered(client_id)
    }

    /// Checks that the issuer of a client is chosen by its author, where the client was registered by hand: a hostile server
    /// would name its own, and be sent the secret, the assertion or the code.
    ///
    /// # Errors
    /// Fails if the server could choose the issuer.
    pub fn check(&self) -> Result<(), AuthError> {
        let choices = &self.choices;
        if choices.registered.is_none() || choices.names_issuer() || choices.any_issuer {
            return Ok(());
        }
        Err(AuthError::Settings(
            "the server could have what the client shows sent to any issuer: add `issuer` with the one that the client is registered with",
        ))
    }

    /// Takes all choices of an author at once.
    #[must_use]
    pub fn choices(mut self, choices: Choices) -> Self {
        self.choices = choices;
        self
    }

    /// Uses a client id that was registered by hand.
    #[must_use]
    pub fn registered(mut self, client_id: impl Into<String>) -> Self {
        let client = RegisteredClient { client_id: client_id.into(), ..RegisteredClient::default() };
        self.choices.registered = Some(client);
        self
    }

    /// Sets the secret of a client that was registered by hand.
    #[must_use]
    pub fn secret(self, secret: Secret) -> Self {
        self.with_registered(|client| client.secret = Some(secret))
    }

    /// Sets the key of a client that was registered by hand.
    #[must_use]
    pub fn key(self, key: Arc<dyn Signer>) -> Self {
        self.with_registered(|client| client.key = Some(key))
    }

    /// Sets the way in which a client that was registered by hand authenticates itself, in place of a choice by what the
    /// server lists.
    #[must_use]
    pub fn auth_method(self, method: ClientAuthMethod) -> Self {
        self.with_registered(|client| client.method = Some(method))
    }

    /// Binds the client to its issuer. A client that was registered by hand needs one.
    #[must_use]
    pub fn registered_with(mut self, issuer: impl Into<String>) -> Self {
        self.choices.client_issuer = Some(issuer.into());
        self
    }

    /// Lets the server choose the issuer, which is then shown what the client has.
    #[must_use]
    pub fn any_issuer(mut self) -> Self {
        self.choices.any_issuer = true;
        self
    }

    fn with_registered(mut self, change: impl FnOnce(&mut RegisteredClient)) -> Self {
        if let Some(registered) = &mut self.choices.registered {
            change(registered);
        }
        self
    }

    /// Uses a client metadata document where the issuer takes those.
    #[must_use]
    pub fn client_metadata(mut self, url: ClientMetadataUrl) -> Self {
        self.choices.metadata_url = Some(url);
        self
    }

    /// Chooses the scopes to request.
    #[must_use]
    pub fn scopes(mut self, scopes: ScopeChoice) -> Self {
        self.choices.scopes = scopes;
        self
    }

    /// Names the issuer of the server, whose resource metadata is then not read.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.choices.issuer = Some(issuer.into());
        self
    }

    /// Accepts metadata that names another issuer than was asked: some publish one document for many tenants.
    #[must_use]
    pub fn trust_issuer(mut self, asked: impl Into<String>, published: impl Into<String>) -> Self {
        let (asked, published) = (asked.into(), published.into());
        self.choices.trusted_issuer = Some(TrustedIssuer { asked, published });
        self
    }

    /// Allows URLs in private networks.
    #[must_use]
    pub fn private_networks(mut self) -> Self {
        self.choices.private_networks = true;
        self
    }

    /// Uses endpoints at the origin of a server that publishes no metadata at all, as revision 2025-03-26 had it.
    #[must_use]
    pub fn legacy_endpoints(mut self) -> Self {
        self.choices.legacy_endpoints = true;
        self
    }

    /// Binds tokens to a key where the server takes that (DPoP).
    #[must_use]
    pub fn dpop(mut self, key: Arc<dyn Signer>) -> Self {
        self.dpop = Some(key);
        self
    }

    /// Refuses tokens that are not bound to the key, whatever the issuer lists.
    #[must_use]
    pub fn require_dpop(mut self) -> Self {
        self.choices.require_dpop = true;
        self
    }

    /// Returns whether a person signs in.
    pub(super) fn by_person(&self) -> bool {
        matches!(self.grant, GrantType::Code { .. } | GrantType::Device)
    }

    pub(super) fn redirect_uri(&self) -> Option<&HttpUrl> {
        match &self.grant {
            GrantType::Code { redirect_uri } => Some(redirect_uri),
            _ => None,
        }
    }

    /// Returns the key that is used by terms, if it is still the same.
    pub(super) fn dpop_key(&self, thumbprint: Option<&str>) -> Result<Option<&dyn Signer>, AuthError> {
        let Some(thumbprint) = thumbprint else {
            return Ok(None);
        };
        let key = self.dpop.as_deref().filter(|key| key.public_key().thumbprint() == thumbprint);
        key.map(Some).ok_or(AuthError::DpopKey)
    }
}
