//! [`Authorize`]: the settings of a resource server.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::auth::{
    ClaimRules, Claims, HttpUrl, ImpliedScopes, ProtectedResource, ResourceIdentifier, ScopeSet, Secret,
    UrlPolicy, check_issuer, check_scopes, resource_metadata_url,
};

use super::challenges::Challenges;
use super::guard::Guard;
use super::sparse::Sparse;
use super::token::{
    CheckerSettings, Clock, Fetch, Introspection, IssuerSettings, TokenChecker, Verified, Verifier,
};
use crate::server::{Principal, ScopeRules, SetupError};

/// Path of the metadata of a resource without a path of its own.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Function of the author's that names the principal of a token.
pub(super) type PrincipalOf = dyn Fn(&Claims) -> Option<Principal> + Send + Sync;

/// Settings of a resource server: its identifier, the issuers whose tokens it accepts, and the scopes that callers need.
///
/// ```
/// use roundtrip::authorize::Authorize;
/// use roundtrip::{Server, Tool};
///
/// # fn app() -> Result<axum::Router, Box<dyn std::error::Error>> {
/// let guard = Authorize::at("https://tools.example/mcp")
///     .issuer("https://login.example/tenant1")
///     .scopes(["files:read"]);
/// let server = Server::new("files", "1.0.0")
///     .tool(Tool::new("read_file", async || "its text"))
///     .tool(Tool::new("write_file", async || "written").scopes(["files:write"]));
/// let app = axum::Router::new()
///     .route_service(guard.path(), guard.metadata())
///     .route_service("/mcp", server.into_http()?.authorize(guard).checked()?);
/// # Ok(app)
/// # }
/// ```
///
/// The audience of every token is checked: it contains the identifier, or an [`audience`](Self::audience) that was named. There is
/// no way to switch that off.
#[derive(Clone)]
#[must_use = "settings do nothing until `Http::authorize` takes them"]
pub struct Authorize {
    resource: String,
    path: String,
    name: Option<String>,
    issuers: Vec<IssuerSettings>,
    introspection: Vec<Introspection>,
    verifier: Option<Verifier>,
    audiences: Vec<String>,
    accept_bound: bool,
    scopes: ScopeSet,
    implied: ImpliedScopes,
    list_permitted: bool,
    principal: Option<Arc<PrincipalOf>>,
    private: bool,
    http: Option<reqwest::Client>,
    clock: Clock,
    fetch: Option<Arc<dyn Fetch>>,
    /// The first mistake.
    mistake: Option<String>,
}

/// Published metadata of a resource.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    /// Path at which it is served.
    pub(crate) path: String,
    /// The document.
    pub(crate) document: Bytes,
}

impl Authorize {
    /// Names the resource: the URL at which clients reach the server. Tokens are for it, metadata and challenges name it, byte for
    /// byte. It is never taken from a request, so it is the same behind any proxy.
    pub fn at(resource: impl Into<String>) -> Self {
        let resource = resource.into();
        let metadata = metadata_url(&resource);
        Self {
            path: metadata.map_or_else(|_| WELL_KNOWN.to_owned(), |url| url.path().to_owned()),
            resource,
            name: None,
            issuers: Vec::new(),
            introspection: Vec::new(),
            verifier: None,
            audiences: Vec::new(),
            accept_bound: false,
            scopes: ScopeSet::new(),
            implied: ImpliedScopes::default(),
            list_permitted: false,
            principal: None,
            private: false,
            http: None,
            clock: Clock::default(),
            fetch: None,
            mistake: None,
        }
    }

    /// Accepts the tokens of an issuer: its `issuer` string, byte for byte. Its keys are found by its metadata, cached, and
    /// fetched again when they change.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuers.push(IssuerSettings { name: issuer.into(), untyped: false, jwks: None });
        self
    }

    /// Fetches the keys of the issuer named last from a URL, in place of the one in its metadata.
    pub fn keys_at(self, url: impl Into<String>) -> Self {
        self.last_issuer("keys_at", |issuer| issuer.jwks = Some(url.into()))
    }

    /// Accepts tokens of the issuer named last whose `typ` is `JWT` or missing, in place of `at+jwt`. Its ID tokens are still
    /// refused.
    pub fn accept_untyped_tokens(self) -> Self {
        self.last_issuer("accept_untyped_tokens", |issuer| issuer.untyped = true)
    }

    fn last_issuer(mut self, method: &str, change: impl FnOnce(&mut IssuerSettings)) -> Self {
        match self.issuers.last_mut() {
            Some(issuer) => change(issuer),
            None => self.mistaken(format!("`{method}` is about the issuer before it: name that first")),
        }
        self
    }

    /// Asks an endpoint of an issuer about tokens that are not JWTs (RFC 7662), or that
    /// [do not say enough](Introspection::incomplete_jwts).
    pub fn introspect(mut self, endpoint: Introspection) -> Self {
        self.introspection.push(endpoint);
        self
    }

    /// Has a function of yours judge every token, in place of keys and endpoints. `Ok(None)` refuses a token (401), an error says that
    /// it cannot be judged now (503). Issuer, audience and expiry of the verdict are checked all the same.
    ///
    /// ```
    /// use roundtrip::authorize::{Authorize, Verified};
    ///
    /// let guard = Authorize::at("https://tools.example/mcp").issuer("https://login.example").verify(async |token| {
    ///     let known = token.expose() == "a token of your own";
    ///     let verified = Verified::new("https://login.example", "alice").audience("https://tools.example/mcp");
    ///     Ok::<_, std::io::Error>(known.then_some(verified))
    /// });
    /// ```
    pub fn verify<F, Fut, E>(mut self, judge: F) -> Self
    where
        F: Fn(Secret) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Verified>, E>> + Send + 'static,
        E: fmt::Display,
    {
        self.verifier = Some(Verifier::new(judge));
        self
    }

    /// Accepts tokens for another audience beside the resource itself, for issuers that name it otherwise.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Accepts tokens that are bound to a key or a certificate (`cnf`: RFC 9449, RFC 8705) as plain bearer tokens. Without
    /// this they are refused: the server checks no proof, and a stolen token would lose its binding. Use it behind a proxy
    /// that checks the proof.
    pub fn accept_bound_tokens(mut self) -> Self {
        self.accept_bound = true;
        self
    }

    /// Sets the scopes that every request needs. Those of single tools, prompts and resources are added by
    /// [`Tool::scopes`](crate::Tool::scopes) and the like.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        match read(scopes) {
            Ok(scopes) => self.scopes = self.scopes.union(&scopes),
            Err(mistake) => self.mistaken(format!("its scopes: {mistake}")),
        }
        self
    }

    /// Declares that a scope implies others, and what those imply.
    pub fn implies<S: AsRef<str>>(
        mut self,
        scope: impl Into<String>,
        implied: impl IntoIterator<Item = S>,
    ) -> Self {
        let scope = scope.into();
        match read([&scope]).and_then(|_| read(implied)) {
            Ok(implied) => self.implied.add(scope, &implied),
            Err(mistake) => self.mistaken(format!("the scopes that `{scope}` implies: {mistake}")),
        }
        self
    }

    /// Leaves out of lists what a caller lacks scopes for. A call of it is answered by 403 all the same, so that a client
    /// that knows of it can sign in for more.
    pub fn list_permitted(mut self) -> Self {
        self.list_permitted = true;
        self
    }

    /// Derives the principal from the claims, in place of issuer and subject. `None` refuses the token.
    ///
    /// State, sessions, tasks and recorded replies are bound to it: two users with one principal have them in common, and a
    /// principal that changes loses them. Scopes, times and token ids have no place in it.
    pub fn principal<F>(mut self, principal: F) -> Self
    where
        F: Fn(&Claims) -> Option<Principal> + Send + Sync + 'static,
    {
        self.principal = Some(Arc::new(principal));
        self
    }

    /// Sets the name of the resource for people, in its metadata.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Allows issuers in private networks.
    pub fn allow_private_network(mut self) -> Self {
        self.private = true;
        self
    }

    /// Sets the HTTP client by which issuers are reached: for proxies, or a certificate authority of your own. It resolves names by
    /// itself, so that a name is checked against private networks before it is connected to, and not as it is.
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.http = Some(client);
        self
    }

    /// Reaches issuers by other means than HTTP.
    pub(crate) fn fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetch = Some(fetch);
        self
    }

    /// Returns the path of the metadata, to mount [`metadata`](Self::metadata) at: the resource's own, behind
    /// `/.well-known/oauth-protected-resource`.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn mistaken(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    fn identifier(&self) -> Result<ResourceIdentifier, String> {
        ResourceIdentifier::parse(&self.resource).map_err(|error| error.to_string())
    }

    /// Returns the metadata to serve.
    pub(crate) fn published(&self) -> Result<Published, SetupError> {
        self.document().map_err(|mistake| self.setup_error(mistake))
    }

    fn document(&self) -> Result<Published, String> {
        let issuers: Vec<String> = self.issuers.iter().map(|issuer| issuer.name.clone()).collect();
        let mut document = ProtectedResource::publish(&self.identifier()?, &issuers, &self.scopes)
            .map_err(|error| error.to_string())?;
        document.resource_name.clone_from(&self.name);
        let document = serde_json::to_vec(&document).map_err(|error| error.to_string())?;
        Ok(Published { path: self.path.clone(), document: document.into() })
    }

    /// Builds the guard.
    pub(crate) fn build(self) -> Result<Guard, SetupError> {
        let named = self.clone();
        self.try_build().map_err(|mistake| named.setup_error(mistake))
    }

    fn setup_error(&self, mistake: String) -> SetupError {
        SetupError::new("authorization at", &self.resource, mistake)
    }

    fn try_build(mut self) -> Result<Guard, String> {
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        let published = self.document()?;
        let challenges = Challenges::new(metadata_url(&self.resource)?, &self.scopes);
        let challenges = challenges.map_err(|error| error.to_string())?;
        let resource = self.identifier()?;
        let policy = UrlPolicy::new(resource.url().clone(), self.private);
        let introspection = self.endpoints()?;
        let rules = self.audiences.into_iter().fold(ClaimRules::new(self.resource), ClaimRules::audience);
        let rules = if self.accept_bound { rules.accept_bound() } else { rules };
        let checker = TokenChecker::new(CheckerSettings {
            rules,
            issuers: self.issuers,
            introspection,
            verifier: self.verifier,
            policy: policy.map_err(|error| error.to_string())?,
            clock: self.clock,
            http: self.http,
            fetch: self.fetch,
        });
        let rules =
            ScopeRules { needed: self.scopes, implied: self.implied, list_permitted: self.list_permitted };
        let (rules, refusals) = (Arc::new(rules), Sparse::default());
        Ok(Guard { checker, rules, challenges, principal: self.principal, published, refusals })
    }

    /// Returns the introspection endpoints, each with its issuer.
    fn endpoints(&mut self) -> Result<Vec<Introspection>, String> {
        let mut endpoints = std::mem::take(&mut self.introspection);
        for endpoint in &mut endpoints {
            let at = format!("the introspection endpoint `{}`", endpoint.url);
            check_issuer(&endpoint.url)
                .map_err(|_| format!("{at} must be https, or http on this machine, without a query"))?;
            if endpoint.client.is_none() {
                return Err(format!("{at} needs credentials: give them with `Introspection::client`"));
            }
            let issuer = match (&endpoint.issuer, &*self.issuers) {
                (None, [only]) => only.name.clone(),
                (Some(named), issuers) if issuers.iter().any(|issuer| issuer.name == *named) => named.clone(),
                (None, _) => {
                    return Err(format!("{at} belongs to one issuer: name it with `Introspection::issuer`"));
                }
                (Some(named), _) => {
                    return Err(format!("{at} is of `{named}`: accept that issuer with `Authorize::issuer`"));
                }
            };
            endpoint.issuer = Some(issuer);
        }
        Ok(endpoints)
    }
}

/// Returns the URL of a resource's metadata.
fn metadata_url(resource: &str) -> Result<HttpUrl, String> {
    let resource = ResourceIdentifier::parse(resource).map_err(|error| error.to_string())?;
    HttpUrl::parse(&resource_metadata_url(resource.url())).map_err(|error| error.to_string())
}

/// Reads scopes that a resource server may ask for.
fn read<S: AsRef<str>>(scopes: impl IntoIterator<Item = S>) -> Result<ScopeSet, String> {
    let scopes = ScopeSet::of(scopes).map_err(|error| error.to_string())?;
    check_scopes(&scopes).map(|()| scopes).map_err(|error| error.to_string())
}

impl fmt::Debug for Authorize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorize")
            .field("resource", &self.resource)
            .field("issuers", &self.issuers)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
