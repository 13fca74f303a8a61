//! A server that wants tokens, and the authorization server that gives them, on one port of this machine.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use roundtrip::oauth::{HttpUrl, OAuth};
use roundtrip::{Client, Server};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower_service::Service as _;

/// A request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    #[cfg_attr(not(feature = "legacy"), expect(dead_code, reason = "sessions alone have other methods"))]
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns whether it begins a session.
    fn begins(&self) -> bool {
        self.body.contains("\"initialize\"")
    }

    /// The members of a form.
    pub(crate) fn form(&self) -> BTreeMap<String, String> {
        pairs(&self.body)
    }
}

/// Decides on the scopes that a request to the server needs.
type Needs = Box<dyn Fn(&Seen) -> &'static str + Send + Sync>;

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) log: Vec<Seen>,
    /// Scopes by access token that is good.
    tokens: HashMap<String, HashSet<String>>,
    /// Scopes by code and by refresh token.
    grants: HashMap<String, String>,
    issued: usize,
    registered: usize,
    /// Refuses all tokens.
    pub(crate) rejects_all: bool,
    /// Scope that is never granted.
    pub(crate) withheld: Option<&'static str>,
    /// Answers the person's consent with this error.
    pub(crate) consent: Option<&'static str>,
    /// Issuer that the resource metadata names, if it is not this one.
    pub(crate) names: Option<&'static str>,
    /// Path of the issuer, whose endpoints are below it.
    pub(crate) tenant: &'static str,
    /// Path of the token endpoint, if it is not the usual one.
    pub(crate) token_path: Option<&'static str>,
    /// Answers token requests with this status.
    pub(crate) token_status: Option<StatusCode>,
    /// Binds tokens to the keys of clients that have one.
    pub(crate) dpop: bool,
    /// Gate at which answers to token requests wait.
    pub(crate) token_gate: Option<Arc<Gate>>,
    /// Gate at which answers to registrations wait.
    pub(crate) register_gate: Option<Arc<Gate>>,
    /// Gate at which answers to `initialize` wait.
    pub(crate) session_gate: Option<Arc<Gate>>,
    /// `Authorization` headers with which sessions were begun, by their ids.
    sessions: HashMap<String, Option<String>>,
    /// Refuses requests of the modern era, as a server of another does.
    #[cfg(feature = "legacy")]
    pub(crate) refuses_modern: bool,
    /// Path that is never answered.
    pub(crate) silent: Option<&'static str>,
    /// Number of polls before the person has entered the code of a device.
    pub(crate) device_waits: usize,
}

/// A gate at which answers wait.
#[derive(Default)]
pub(crate) struct Gate {
    /// Told of an answer that waits.
    pub(crate) reached: Notify,
    /// Lets one answer pass.
    pub(crate) open: Notify,
}

impl Gate {
    async fn pass(gate: Option<Arc<Self>>) {
        if let Some(gate) = gate {
            gate.reached.notify_one();
            gate.open.notified().await;
        }
    }
}

impl Shared {
    /// Keeps the scopes that a form asks for under a new name.
    fn keep(&mut self, what: &str, form: &BTreeMap<String, String>) -> String {
        self.issued += 1;
        let name = format!("{what}-{}", self.issued);
        self.grants.insert(name.clone(), form.get("scope").cloned().unwrap_or_default());
        name
    }

    fn token_path(&self) -> String {
        format!("{}{}", self.tenant, self.token_path.unwrap_or("/token"))
    }
}

/// The two servers.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) base: String,
    shared: Arc<Mutex<Shared>>,
    needs: Arc<Needs>,
    http: roundtrip::http::Http,
}

impl World {
    /// Serves a server whose every request needs the scope `read`.
    pub(crate) async fn of(server: Server) -> Self {
        Self::needing(server, |_| "read").await
    }

    /// Serves a server whose requests need the scopes that a function says.
    pub(crate) async fn needing(
        server: Server,
        needs: impl Fn(&Seen) -> &'static str + Send + Sync + 'static,
    ) -> Self {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", socket.local_addr().expect("an address"));
        let http = server.into_http().expect("a sound server");
        let world = Self { base, shared: Arc::default(), needs: Arc::new(Box::new(needs)), http };
        let app = axum::Router::new().fallback(answer).with_state(world.clone());
        tokio::spawn(async move { axum::serve(socket, app).await });
        world
    }

    /// A client that signs in.
    pub(crate) fn client(&self, oauth: OAuth) -> Client {
        self.plain_client().oauth(oauth)
    }

    pub(crate) fn plain_client(&self) -> Client {
        Client::http(format!("{}/mcp", self.base)).expect("a URL")
    }

    pub(crate) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no panic")
    }

    /// The requests to a path so far.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        self.shared().log.iter().filter(|seen| seen.path == path).cloned().collect()
    }

    pub(crate) fn count(&self, path: &str) -> usize {
        self.seen(path).len()
    }

    /// The sessions so far. Fails if a request in one was sent with another token than its first.
    #[cfg(feature = "legacy")]
    pub(crate) fn checked_sessions(&self) -> usize {
        let shared = self.shared();
        for seen in shared.log.iter().filter(|seen| seen.path == "/mcp") {
            if let Some(id) = seen.header("mcp-session-id") {
                let begun = shared.sessions[id].as_deref();
                assert_eq!(seen.header("authorization"), begun, "a session has one token: {seen:?}");
            }
        }
        shared.sessions.len()
    }

    /// Lets all access tokens end.
    pub(crate) fn end_tokens(&self) {
        self.shared().tokens.clear();
    }

    /// Lets all tokens end, refresh tokens too.
    pub(crate) fn end_grants(&self) {
        self.end_tokens();
        self.shared().grants.clear();
    }

    /// The issuer.
    pub(crate) fn issuer(&self) -> String {
        format!("{}{}", self.base, self.shared().tenant)
    }

    fn give(&self, status: StatusCode, body: &Value) -> Response<Body> {
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert("content-type", "application/json".parse().expect("a value"));
        response
    }

    /// Refuses a request to the server that has no token, or too little scope.
    fn guard(&self, seen: &Seen) -> Option<Response<Body>> {
        let shared = self.shared();
        let needed = (self.needs)(seen);
        let token =
            seen.header("authorization").and_then(|value| value.split_once(' ')).map(|(_, token)| token);
        let scopes = token.and_then(|token| shared.tokens.get(token)).filter(|_| !shared.rejects_all);
        let metadata =
            format!("resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", self.base);
        let (status, challenge) = match scopes {
            None => (StatusCode::UNAUTHORIZED, format!("Bearer {metadata}, scope=\"{needed}\"")),
            Some(scopes) if !needed.split(' ').all(|scope| scopes.contains(scope)) => {
                let error = "error=\"insufficient_scope\"";
                (StatusCode::FORBIDDEN, format!("Bearer {error}, {metadata}, scope=\"{needed}\""))
            }
            Some(_) => return None,
        };
        let mut response = self.give(status, &json!({}));
        response.headers_mut().insert("www-authenticate", challenge.parse().expect("a value"));
        Some(response)
    }

    fn metadata(&self) -> Value {
        let issuer = self.issuer();
        let at = |path: &str| format!("{issuer}{path}");
        let shared = self.shared();
        json!({
            "issuer": issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": format!("{}{}", self.base, shared.token_path()),
            "dpop_signing_alg_values_supported": if shared.dpop { vec!["ES256"] } else { vec![] },
            "registration_endpoint": at("/register"),
            "device_authorization_endpoint": at("/device"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    fn authorize(&self, seen: &Seen) -> Response<Body> {
        let issuer = self.issuer();
        let mut shared = self.shared();
        let query = |name: &str| seen.query.get(name).map(String::as_str).unwrap_or_default();
        let code = format!("code-{}", shared.issued);
        shared.issued += 1;
        shared.grants.insert(code.clone(), query("scope").to_owned());
        let outcome = shared.consent.map_or(format!("code={code}"), |error| format!("error={error}"));
        let to = format!("{}?{outcome}&state={}&iss={}", query("redirect_uri"), query("state"), issuer);
        let mut response = self.give(StatusCode::FOUND, &json!({}));
        response.headers_mut().insert("location", to.parse().expect("a URL"));
        response
    }

    fn token(&self, seen: &Seen) -> Response<Body> {
        let mut shared = self.shared();
        if let Some(status) = shared.token_status {
            return self.give(status, &json!({}));
        }
        let form = seen.form();
        let member = |name: &str| form.get(name).cloned().unwrap_or_default();
        let is_device = member("grant_type").ends_with(":device_code");
        if is_device && shared.device_waits > 0 {
            shared.device_waits -= 1;
            return self.give(StatusCode::BAD_REQUEST, &json!({ "error": "authorization_pending" }));
        }
        let scope = match member("grant_type").as_str() {
            _ if is_device => shared.grants.remove(&member("device_code")),
            "authorization_code" => shared.grants.remove(&member("code")),
            "refresh_token" => shared.grants.remove(&member("refresh_token")),
            _ => Some(member("scope")),
        };
        let Some(scope) = scope else {
            return self.give(StatusCode::BAD_REQUEST, &json!({ "error": "invalid_grant" }));
        };
        let number = shared.issued;
        shared.issued += 1;
        let (access, refresh) = (format!("access-{number}"), format!("refresh-{number}"));
        let granted = scope.split(' ').filter(|scope| shared.withheld != Some(*scope)).map(str::to_owned);
        let granted = granted.collect();
        shared.tokens.insert(access.clone(), granted);
        shared.grants.insert(refresh.clone(), scope.clone());
        let kind = if seen.header("dpop").is_some() { "DPoP" } else { "Bearer" };
        let grant = json!({
            "access_token": access, "refresh_token": refresh, "token_type": kind, "scope": scope, "expires_in": 3600
        });
        self.give(StatusCode::OK, &grant)
    }

    fn register(&self, seen: &Seen) -> Response<Body> {
        let mut shared = self.shared();
        shared.registered += 1;
        let mut client: Value = serde_json::from_str(&seen.body).expect("json");
        client["client_id"] = format!("client-{}", shared.registered).into();
        self.give(StatusCode::CREATED, &client)
    }
}

async fn answer(State(mut world): State<World>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    let seen = Seen {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        query: pairs(parts.uri.query().unwrap_or_default()),
        headers: parts.headers.clone(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let (tenant, token_path) = {
        let mut shared = world.shared();
        shared.log.push(seen.clone());
        (shared.tenant, shared.token_path())
    };
    if world.shared().silent == Some(seen.path.as_str()) {
        std::future::pending::<()>().await;
    }
    let of_issuer = seen.path.strip_prefix(tenant).unwrap_or_default();
    let of_issuer = if seen.path == token_path { "/token" } else { of_issuer };
    match seen.path.as_str() {
        "/mcp" => match world.guard(&seen) {
            Some(refusal) => refusal,
            #[cfg(feature = "legacy")]
            None if world.shared().refuses_modern && seen.header("mcp-method").is_some() => {
                world.give(StatusCode::BAD_REQUEST, &json!({}))
            }
            None => {
                let request = Request::from_parts(parts, Body::from(body));
                let response = world.http.call(request).await.expect("no error").map(Body::new);
                if let Some(id) = response.headers().get("mcp-session-id").filter(|_| seen.begins()) {
                    let (id, token) = (id.to_str().expect("text").to_owned(), seen.header("authorization"));
                    world.shared().sessions.entry(id).or_insert(token.map(str::to_owned));
                    let gate = world.shared().session_gate.clone();
                    Gate::pass(gate).await;
                }
                response
            }
        },
        "/.well-known/oauth-protected-resource/mcp" => {
            let resource = format!("{}/mcp", world.base);
            let issuer = world.issuer();
            let named = world.shared().names.map_or(issuer, str::to_owned);
            let document = json!({ "resource": resource, "authorization_servers": [named] });
            world.give(StatusCode::OK, &document)
        }
        path if path.strip_prefix("/.well-known/oauth-authorization-server") == Some(tenant) => {
            world.give(StatusCode::OK, &world.metadata())
        }
        _ => match of_issuer {
            "/authorize" => world.authorize(&seen),
            "/token" if seen.path == token_path => {
                let (given, gate) = (world.token(&seen), world.shared().token_gate.clone());
                Gate::pass(gate).await;
                given
            }
            "/register" => {
                let (given, gate) = (world.register(&seen), world.shared().register_gate.clone());
                Gate::pass(gate).await;
                given
            }
            "/device" => {
                let code = world.shared().keep("device", &seen.form());
                let enter = format!("{}/enter", world.base);
                let answer = json!({
                    "device_code": code, "user_code": "A-B", "verification_uri": enter, "expires_in": 60, "interval": 1,
                });
                world.give(StatusCode::OK, &answer)
            }
            _ => world.give(StatusCode::NOT_FOUND, &json!({})),
        },
    }
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// A browser whose person agrees at once.
pub(crate) async fn visit(url: HttpUrl) -> Result<(), reqwest::Error> {
    reqwest::get(url.as_str()).await.map(drop)
}

/// A sign-in with that browser.
pub(crate) fn person() -> OAuth {
    OAuth::new("Tests").browser(visit)
}
