//! An authorization server for tests, in this process.

mod key;
mod serve;
mod token;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode, header};
use roundtrip_core::auth::{Algorithm, AuthRequest, HttpUrl, Signer as _, issuer_candidates};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::authorize::Introspection;
use crate::authorize::token::{Fetch, Fetched, Fetching};
use crate::lock::lock;
use key::SigningKey;
pub use token::IssuerToken;

/// Credentials that the introspection endpoint asks for.
const CLIENT: (&str, &str) = ("resource", "secret of the resource");

/// An authorization server for tests: it signs access tokens for any principal and scope, and publishes its keys.
///
/// Keys can be rotated and the server stopped, so that a test sees what a resource server does then. Clones are the same issuer.
///
/// ```
/// use roundtrip::testing::Issuer;
///
/// let issuer = Issuer::new("https://login.example", "https://tools.example/mcp")?;
/// let token = issuer.token("alice").scopes(["files:read"]).sign();
/// assert_eq!(token.split('.').count(), 3);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Issuer(Arc<Inner>);

struct Inner {
    name: String,
    audience: String,
    metadata_urls: Vec<String>,
    state: Mutex<State>,
    mode: watch::Sender<Mode>,
    metadata_fetches: AtomicUsize,
    key_fetches: AtomicUsize,
    introspections: AtomicUsize,
}

struct State {
    /// Published keys; the last one signs.
    keys: Vec<Arc<SigningKey>>,
    /// Number of keys made so far, for their ids.
    made: usize,
    /// Claims of opaque tokens.
    opaque: HashMap<String, Value>,
    max_age: Option<Duration>,
    /// Ends the accept loop with the issuer.
    serving: Option<serve::Serving>,
}

/// Behaviour of the endpoints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Up,
    Held,
    Down,
}

impl Issuer {
    /// Creates an issuer that is reached without a socket, for tokens of a resource. Its key is for ES256.
    ///
    /// # Errors
    /// Fails if `name` is not a URL, and if no key can be made.
    pub fn new(name: impl Into<String>, resource: impl Into<String>) -> io::Result<Self> {
        Self::with_key(name.into(), resource.into(), Algorithm::ES256)
    }

    /// Creates an issuer with a key for an algorithm.
    ///
    /// # Errors
    /// Fails if `name` is not a URL, and if no key can be made.
    pub fn signing(
        algorithm: Algorithm,
        name: impl Into<String>,
        resource: impl Into<String>,
    ) -> io::Result<Self> {
        Self::with_key(name.into(), resource.into(), algorithm)
    }

    /// Creates an issuer on a free port of this machine, for tokens of a resource.
    ///
    /// # Errors
    /// Fails if there is no port, and if no key can be made.
    pub async fn bind(resource: impl Into<String>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let name = format!("http://{}", listener.local_addr()?);
        let issuer = Self::with_key(name, resource.into(), Algorithm::ES256)?;
        lock(&issuer.0.state).serving = Some(serve::start(listener, &issuer));
        Ok(issuer)
    }

    fn with_key(name: String, audience: String, algorithm: Algorithm) -> io::Result<Self> {
        let url = HttpUrl::parse(&name).map_err(io::Error::other)?;
        let key = SigningKey::generate(algorithm, 1)?;
        let state = State {
            keys: vec![Arc::new(key)],
            made: 1,
            opaque: HashMap::new(),
            max_age: None,
            serving: None,
        };
        Ok(Self(Arc::new(Inner {
            metadata_urls: issuer_candidates(&url),
            name,
            audience,
            state: Mutex::new(state),
            mode: watch::Sender::new(Mode::Up),
            metadata_fetches: AtomicUsize::new(0),
            key_fetches: AtomicUsize::new(0),
            introspections: AtomicUsize::new(0),
        })))
    }

    /// Returns the issuer's identifier, the `iss` of its tokens.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the URL of its keys.
    pub fn jwks_uri(&self) -> String {
        format!("{}/keys", self.0.name)
    }

    /// Returns its introspection endpoint, with credentials that it takes.
    pub fn introspection(&self) -> Introspection {
        Introspection::at(format!("{}/introspect", self.0.name)).client(CLIENT.0, CLIENT.1)
    }

    /// Begins an access token for a subject: for the issuer's resource, without scopes, for an hour.
    pub fn token(&self, subject: impl Into<String>) -> IssuerToken {
        IssuerToken::new(self.clone(), subject.into())
    }

    /// Makes a new key, which signs from now on. The old ones stay published.
    ///
    /// # Errors
    /// Fails if no key can be made.
    pub fn rotate(&self) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        let algorithm = state.keys.last().map_or(Algorithm::ES256, |key| key.algorithm());
        let key = SigningKey::generate(algorithm, state.made + 1)?;
        state.made += 1;
        state.keys.push(Arc::new(key));
        Ok(())
    }

    /// Withdraws all keys but the one that signs.
    pub fn withdraw_old_keys(&self) {
        let mut state = lock(&self.0.state);
        let old = state.keys.len().saturating_sub(1);
        drop(state.keys.drain(..old));
    }

    /// Revokes an opaque token.
    pub fn revoke(&self, token: &str) {
        lock(&self.0.state).opaque.remove(token);
    }

    /// Sets `max-age` of the keys.
    pub fn set_max_age(&self, age: Duration) {
        lock(&self.0.state).max_age = Some(age);
    }

    /// Stops the issuer: it cannot be reached. Tokens can still be signed.
    pub fn stop(&self) {
        self.0.mode.send_replace(Mode::Down);
    }

    /// Lets requests wait until [`start`](Self::start) or [`stop`](Self::stop).
    pub fn hold(&self) {
        self.0.mode.send_replace(Mode::Held);
    }

    /// Starts the issuer again.
    pub fn start(&self) {
        self.0.mode.send_replace(Mode::Up);
    }

    /// Returns how often its metadata was asked for.
    pub fn metadata_fetches(&self) -> usize {
        self.0.metadata_fetches.load(Ordering::SeqCst)
    }

    /// Returns how often its keys were asked for.
    pub fn key_fetches(&self) -> usize {
        self.0.key_fetches.load(Ordering::SeqCst)
    }

    /// Returns how often tokens were introspected.
    pub fn introspections(&self) -> usize {
        self.0.introspections.load(Ordering::SeqCst)
    }

    fn key(&self) -> Option<Arc<SigningKey>> {
        lock(&self.0.state).keys.last().cloned()
    }

    /// Signs a header and claims that need not be JSON.
    #[cfg(test)]
    pub(crate) fn sign_raw(&self, header: &str, claims: &str) -> String {
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.key().unwrap().sign(signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Sets the answer of the introspection endpoint about a token.
    pub(crate) fn keep_opaque(&self, token: &str, claims: Value) {
        lock(&self.0.state).opaque.insert(token.to_owned(), claims);
    }

    /// Answers a request. `None` means that the issuer cannot be reached.
    async fn answer(&self, url: &str, headers: &HeaderMap, body: &str) -> Option<Fetched> {
        self.count(url);
        let mut mode = self.0.mode.subscribe();
        let mode = *mode.wait_for(|mode| *mode != Mode::Held).await.ok()?;
        if mode == Mode::Down {
            return None;
        }
        let endpoint = url.strip_prefix(self.name()).unwrap_or_default();
        let answer = match endpoint {
            "/keys" => Some(self.published_keys()),
            "/introspect" => return Some(self.introspect(headers, body)),
            _ if self.is_metadata(url) => Some(self.metadata()),
            _ => None,
        };
        Some(match answer {
            Some(document) => fetched(StatusCode::OK, &document, lock(&self.0.state).max_age),
            None => fetched(StatusCode::NOT_FOUND, &json!({}), None),
        })
    }

    fn count(&self, url: &str) {
        let counter = match url.strip_prefix(self.name()).unwrap_or_default() {
            "/keys" => &self.0.key_fetches,
            "/introspect" => &self.0.introspections,
            _ if self.is_metadata(url) => &self.0.metadata_fetches,
            _ => return,
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }

    fn is_metadata(&self, url: &str) -> bool {
        self.0.metadata_urls.first().is_some_and(|metadata| metadata == url)
    }

    fn metadata(&self) -> Value {
        json!({
            "issuer": self.name(),
            "jwks_uri": self.jwks_uri(),
            "introspection_endpoint": format!("{}/introspect", self.name()),
            "response_types_supported": ["code"],
        })
    }

    pub(crate) fn published_keys(&self) -> Value {
        let state = lock(&self.0.state);
        json!({ "keys": state.keys.iter().map(|key| key.published()).collect::<Vec<_>>() })
    }

    fn introspect(&self, headers: &HeaderMap, body: &str) -> Fetched {
        let (id, secret) = CLIENT;
        let expected = format!("Basic {}", STANDARD.encode(format!("{id}:{}", secret.replace(' ', "+"))));
        if headers.get(header::AUTHORIZATION).is_none_or(|sent| sent != expected.as_str()) {
            return fetched(StatusCode::UNAUTHORIZED, &json!({ "error": "invalid_client" }), None);
        }
        let token = body.split('&').find_map(|pair| pair.strip_prefix("token=")).unwrap_or_default();
        let known = lock(&self.0.state).opaque.get(token).cloned();
        fetched(StatusCode::OK, &known.unwrap_or_else(|| json!({ "active": false })), None)
    }
}

fn fetched(status: StatusCode, document: &Value, max_age: Option<Duration>) -> Fetched {
    Fetched { status, body: document.to_string().into(), max_age }
}

impl Fetch for Issuer {
    fn send(&self, request: AuthRequest) -> Fetching {
        let issuer = self.clone();
        Box::pin(async move {
            let body = request.body.as_ref().map_or("", |body| body.expose());
            let answer = issuer.answer(request.url.as_str(), &request.headers, body).await;
            answer.ok_or_else(|| "the issuer of the test is stopped".to_owned())
        })
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("name", &self.0.name).finish_non_exhaustive()
    }
}
