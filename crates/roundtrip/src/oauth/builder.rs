//! `OAuth`: the sign-in of a client, as its author describes it.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::auth::{
    AssertionRequest, AuthError, ClientAuthMethod, ClientMetadataUrl, DevicePending, HttpUrl,
    RegisteredClient, ScopeChoice, ScopeSet, Secret, Signer, TrustedIssuer, shown_url,
};

use super::authorizer::Authorizer;
use super::config::{Config, Identity, Idp, Kind};
use super::proof_key::ProofKey;
use super::store::{StoreHandle, TokenStore};
use super::tokens::Tokens;
use crate::signature::{KeyError, PrivateKey};

/// Sign-in of a client: who it is, and how its person, or it itself, gets tokens.
///
/// Discovery, registration, PKCE, renewal and step-up follow from what the server publishes. Give it to
/// [`Client::oauth`](crate::Client::oauth). A mistake in it is reported by the calls of the client.
///
/// ```
/// use roundtrip::Client;
/// use roundtrip::oauth::OAuth;
///
/// # fn main() -> Result<(), roundtrip::Error> {
/// let client = Client::http("https://tools.example/mcp")?.oauth(
///     OAuth::new("Travel agent")
///         .client_metadata("https://agent.example/client.json")
///         .browser(async |url| {
///             println!("open {url}");
///             Ok::<_, std::io::Error>(())
///         }),
/// );
/// # Ok(())
/// # }
/// ```
#[must_use = "a sign-in is for `Client::oauth`"]
#[derive(Clone)]
pub struct OAuth {
    config: Config,
    store: StoreHandle,
    /// First mistake.
    problem: Option<AuthError>,
}

impl OAuth {
    /// Signs a person in. The name is the application's, and shown to the person.
    pub fn new(name: impl Into<String>) -> Self {
        Self::of(Config::new(name.into(), Kind::Code))
    }

    /// Signs a person in as a client that was registered by hand: add the [`issuer`](Self::issuer) that it is registered with.
    pub fn registered(client_id: impl Into<String>) -> Self {
        Self::new("").client(client_id)
    }

    /// Gets tokens as the client itself (client credentials): add [`secret`](Self::secret) or [`key`](Self::key), and
    /// [`issuer`](Self::issuer).
    pub fn machine(client_id: impl Into<String>) -> Self {
        Self::of(Config::new(String::new(), Kind::Machine)).client(client_id)
    }

    /// Gets tokens by the identity provider of an organisation: add [`identity`](Self::identity), the
    /// [`issuer`](Self::issuer) of the server, and [`client`](Self::client) where the client id there is another one than at
    /// the provider.
    pub fn enterprise(provider: Idp) -> Self {
        let client_id = provider.client_id().to_owned();
        Self::of(Config::new(String::new(), Kind::Enterprise(provider))).client(client_id)
    }

    /// Gets tokens by a token of the platform that the client runs on, which is asked for anew every time: add the
    /// [`issuer`](Self::issuer) that it is for.
    ///
    /// The function is given the issuer. Ask the platform for a token with that audience, where it makes such: a token without one
    /// is good wherever the platform's tokens are.
    ///
    /// ```
    /// use roundtrip::oauth::{AssertionRequest, OAuth};
    ///
    /// # async fn platform_token(audience: &str) -> std::io::Result<String> { Ok(audience.to_owned()) }
    /// let sign_in = OAuth::workload("agent", async |request: AssertionRequest| platform_token(request.issuer()).await)
    ///     .issuer("https://login.example");
    /// ```
    pub fn workload<F, S, E>(
        client_id: impl Into<String>,
        token: impl Fn(AssertionRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<S, E>> + Send + 'static,
        S: Into<Secret>,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self::of(Config::new(String::new(), Kind::Workload(hook(token)))).client(client_id)
    }

    fn of(config: Config) -> Self {
        Self { config, store: StoreHandle::default(), problem: None }
    }

    /// Uses a client id that was registered by hand.
    pub fn client(mut self, client_id: impl Into<String>) -> Self {
        self.config.choices.registered.get_or_insert_default().client_id = client_id.into();
        self
    }

    /// Sets the secret of a client that was registered by hand.
    pub fn secret(self, secret: impl Into<Secret>) -> Self {
        let secret = secret.into();
        self.of_registered(|client| client.secret = Some(secret))
    }

    /// Sets the key of a client that was registered by hand: the text of a PEM file.
    ///
    /// # Errors
    /// Fails if it is not a private key that is known.
    pub fn key(self, pem: impl AsRef<str>) -> Result<Self, KeyError> {
        Ok(self.signer(Arc::new(PrivateKey::from_pem(pem.as_ref())?)))
    }

    /// Sets the key of a client that was registered by hand, in a form of the author's: in a hardware module, for one.
    pub fn signer(self, key: Arc<dyn Signer>) -> Self {
        self.of_registered(|client| client.key = Some(key))
    }

    /// Binds the client to its issuer: the `issuer` of its metadata, byte for byte. No other issuer is sent what the client shows:
    /// secret, key, identity, code. A client that was registered by hand needs one.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.config.choices.client_issuer = Some(issuer.into());
        self
    }

    /// Lets the server choose the issuer of a client that was registered by hand, in place of [`issuer`](Self::issuer).
    ///
    /// **Danger:** the server decides who is sent the secret, the platform's token, or the code of the person. One that is hostile,
    /// or was taken over, names an issuer of its own and has it. Use this for tests, and for servers that are as trusted as
    /// the issuer.
    pub fn any_issuer(mut self) -> Self {
        self.config.choices.any_issuer = true;
        self
    }

    /// Sets the way in which a client that was registered by hand authenticates itself, in place of a choice by what the
    /// issuer lists.
    pub fn auth_method(self, method: ClientAuthMethod) -> Self {
        self.of_registered(|client| client.method = Some(method))
    }

    fn of_registered(mut self, change: impl FnOnce(&mut RegisteredClient)) -> Self {
        match &mut self.config.choices.registered {
            Some(client) => change(client),
            None => self.wrong(AuthError::Settings(
                "`secret`, `key` and `auth_method` are for a client id: begin with `OAuth::registered`",
            )),
        }
        self
    }

    fn wrong(&mut self, error: AuthError) {
        self.problem.get_or_insert(error);
    }

    /// Names the document that describes the client, and is its client id, for issuers that take those. Others register the
    /// client by request. [`ClientMetadataUrl::document`] is the document to host.
    pub fn client_metadata(mut self, url: impl AsRef<str>) -> Self {
        match ClientMetadataUrl::parse(url.as_ref()) {
            Ok(url) => self.config.choices.metadata_url = Some(url),
            Err(_) => self.wrong(AuthError::Settings(
                "the URL of the client metadata must be https, with a path and without a fragment",
            )),
        }
        self
    }

    /// Opens a browser for the person, and waits for it at a port of this machine. Open the URL without a shell.
    ///
    /// Without it nothing opens a window: a call that needs a sign-in is [`Error::SignIn`](crate::Error::SignIn).
    pub fn browser<F, E>(mut self, open: impl Fn(HttpUrl) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.config.browser = Some(hook(open));
        self
    }

    /// Shows the person a code to enter in a browser elsewhere (RFC 8628), where the issuer offers that.
    pub fn device<F, E>(mut self, show: impl Fn(DevicePending) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.config.kind = Kind::Device(hook(show));
        self
    }

    /// Names the redirect URI of a client without a [`browser`](Self::browser): `https`, or on this machine. The callback URL
    /// that arrives there finishes the sign-in.
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.config.redirect_uri = Some(uri.into());
        self
    }

    /// Sets the time that a person has to come back from the browser. The default is ten minutes.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.config.patience = patience;
        self
    }

    /// Shows an ID token of the person to the identity provider.
    pub fn identity(self, id_token: impl Into<Secret>) -> Self {
        self.shows(Identity::IdToken(id_token.into()))
    }

    /// Shows a SAML assertion of the person to the identity provider.
    pub fn saml(self, assertion: impl Into<Secret>) -> Self {
        self.shows(Identity::Saml(assertion.into()))
    }

    fn shows(mut self, identity: Identity) -> Self {
        match &mut self.config.kind {
            Kind::Enterprise(provider) => provider.identity = Some(identity),
            _ => self.wrong(AuthError::Settings("`identity` and `saml` are for `OAuth::enterprise`")),
        }
        self
    }

    /// Sets the store of tokens. The default forgets them with the process.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = StoreHandle(Arc::new(store));
        self
    }

    /// Requests these scopes beside those that the server asks for.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        match ScopeSet::of(scopes) {
            Ok(scopes) => self.config.choices.scopes = ScopeChoice::And(scopes),
            Err(_) => self.wrong(AuthError::Settings("a scope has a character that scopes do not have")),
        }
        self
    }

    /// Requests these scopes alone, until the server demands more.
    pub fn only_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self = self.scopes(scopes);
        if let ScopeChoice::And(scopes) = self.config.choices.scopes {
            self.config.choices.scopes = ScopeChoice::Only(scopes);
        }
        self
    }

    /// Names the issuer of the server, whose resource metadata is then not read.
    pub fn server_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.config.choices.issuer = Some(issuer.into());
        self
    }

    /// Accepts metadata that names another issuer than was asked: some publish one document for many tenants. Takes the issuer
    /// that is asked, as the server or [`issuer`](Self::issuer) names it, and the `issuer` of its document, byte for byte.
    ///
    /// Nobody else may use that name: a document from another issuer is refused.
    pub fn trust_issuer(mut self, asked: impl Into<String>, published: impl Into<String>) -> Self {
        let (asked, published) = (asked.into(), published.into());
        self.config.choices.trusted_issuer = Some(TrustedIssuer { asked, published });
        self
    }

    /// Allows authorization servers in private networks, where a hostile server could send requests otherwise.
    pub fn private_networks(mut self) -> Self {
        self.config.choices.private_networks = true;
        self
    }

    /// Uses `/authorize`, `/token` and `/register` of a server that publishes no metadata at all, as revision 2025-03-26 had it.
    #[cfg(feature = "legacy")]
    pub fn legacy_endpoints(mut self) -> Self {
        self.config.choices.legacy_endpoints = true;
        self
    }

    /// Binds tokens to a key where the server takes that (DPoP). The key is made once, and stored with the tokens. A token that is
    /// not bound is refused where the server requires it, and where the token before was bound: by a renewal, and by a sign-in at
    /// the same issuer until [`sign_out`](crate::Client::sign_out).
    pub fn dpop(mut self) -> Self {
        self.config.dpop = Some(ProofKey::Stored);
        self
    }

    /// Binds tokens to a key of the author's: an EC key on P-256.
    pub fn dpop_signer(mut self, key: Arc<dyn Signer>) -> Self {
        self.config.dpop = Some(ProofKey::Given(key));
        self
    }

    /// Binds tokens to a key, and refuses those that are not bound: where a stolen token must be of no use. The key is that of
    /// [`dpop_signer`](Self::dpop_signer), or one that is stored, as with [`dpop`](Self::dpop).
    pub fn require_dpop(mut self) -> Self {
        self.config.choices.require_dpop = true;
        self.config.dpop.get_or_insert(ProofKey::Stored);
        self
    }

    /// Returns the extension that the client declares, where its grant is one of an extension.
    pub(crate) fn extension(&self) -> Option<&'static str> {
        match self.config.kind {
            Kind::Machine => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Kind::Enterprise(_) => Some("io.modelcontextprotocol/enterprise-managed-authorization"),
            _ => None,
        }
    }

    /// Makes the authorizer of a client of a server.
    pub(crate) fn authorizer(self, server: &str) -> Result<Authorizer, AuthError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        if self.config.browser.is_some() && self.config.redirect_uri.is_some() {
            return Err(AuthError::Settings(
                "`browser` has a redirect URI of its own: leave `redirect_uri` out, or `browser`",
            ));
        }
        // Mistakes come up here, and not at the first 401.
        self.config.settings("", None)?.check()?;
        let refuse = |why| AuthError::Server { server: shown_url(server), why };
        let url = HttpUrl::of_server(server).map_err(refuse)?;
        roundtrip_core::auth::UrlPolicy::new(url.clone(), self.config.choices.private_networks)
            .map_err(refuse)?;
        let tokens = Tokens::new(url.clone(), self.store);
        Ok(Authorizer::new(url, self.config, tokens))
    }
}

/// Wraps code of the author's: its errors become text.
fn hook<I: 'static, F, T, O, E>(code: impl Fn(I) -> F + Send + Sync + 'static) -> super::config::Hook<I, O>
where
    F: Future<Output = Result<T, E>> + Send + 'static,
    T: Into<O>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    Arc::new(move |input| {
        let done = code(input);
        Box::pin(async move { done.await.map(Into::into).map_err(|error| error.into().to_string()) })
    })
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("name", &self.config.name).finish_non_exhaustive()
    }
}
