//! A server that wants tokens, and the authorization server that gives them, on one port of this machine.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use roundtrip::testing::Issuer;
use roundtrip::{Authorize, Caller, Server, Tool};
use serde_json::{Value, json};

/// Settings of the authorization server, and what it has done.
pub(crate) struct Shared {
    /// Scopes by code, by refresh token and by device code.
    grants: HashMap<String, String>,
    issued: usize,
    /// Grant types of the token requests so far.
    pub(crate) granted: Vec<String>,
    /// Secrets of the clients that asked for tokens.
    pub(crate) secrets: Vec<Option<String>>,
    /// Subject of the tokens.
    pub(crate) subject: &'static str,
    /// Time that tokens are said to be good for, in seconds.
    pub(crate) lifetime: u64,
    /// Gives tokens that are over already.
    pub(crate) gives_old: bool,
    /// Refuses consent, and refresh tokens, with this error.
    pub(crate) refuses: Option<(&'static str, &'static str)>,
    pub(crate) user_code: &'static str,
    /// Time until a refresh token is answered, and a sender that is told when one has come.
    pub(crate) slow_renewal: Option<(Duration, mpsc::Sender<()>)>,
}

/// The two servers, as long as their test runs.
#[derive(Clone)]
pub(crate) struct World {
    /// URL of the server.
    pub(crate) url: String,
    /// Origin of both, which is the name of the issuer.
    pub(crate) base: String,
    issuer: Issuer,
    shared: Arc<Mutex<Shared>>,
}

impl World {
    /// Starts both. The server needs the scope `read` for everything, and `write` for the tool `write`.
    pub(crate) fn start() -> Self {
        let (send, started) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let world = Self::at(format!("http://{}", socket.local_addr().unwrap()));
                let app = world.app();
                send.send(world).unwrap();
                axum::serve(socket, app).await.unwrap();
            });
        });
        started.recv().unwrap()
    }

    fn at(base: String) -> Self {
        let url = format!("{base}/mcp");
        let issuer = Issuer::new(&base, &url).unwrap();
        let shared = Shared {
            grants: HashMap::new(),
            issued: 0,
            granted: Vec::new(),
            secrets: Vec::new(),
            subject: "alice",
            lifetime: 3600,
            gives_old: false,
            refuses: None,
            user_code: "WDJB-MJHT",
            slow_renewal: None,
        };
        Self { url, base, issuer, shared: Arc::new(Mutex::new(shared)) }
    }

    fn app(&self) -> axum::Router {
        let guard = Authorize::testing(&self.url, &self.issuer).scopes(["read"]);
        let greet = async |caller: Caller| {
            let subject = caller.claims().and_then(|claims| claims.subject.clone());
            format!("Hello, {}!", subject.unwrap_or_default())
        };
        let server = Server::new("world", "1.0.0")
            .tool(Tool::new("hello", greet))
            .tool(Tool::new("write", async || "written").scopes(["write"]));
        axum::Router::new()
            .route_service(guard.path(), guard.metadata())
            .route_service("/mcp", server.into_http().unwrap().authorize(guard).checked().unwrap())
            .fallback(answer)
            .with_state(self.clone())
    }

    pub(crate) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.base);
        json!({
            "issuer": self.base,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "device_authorization_endpoint": at("/device"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    /// Keeps scopes under a new name: a code, for one.
    fn keep(&self, what: &str, scope: &str) -> String {
        let mut shared = self.shared();
        shared.issued += 1;
        let name = format!("{what}-{}", shared.issued);
        shared.grants.insert(name.clone(), scope.to_owned());
        name
    }

    fn authorize(&self, query: &Pairs) -> Response<Body> {
        let outcome = match self.shared().refuses {
            Some((error, why)) => vec![("error", error.to_owned()), ("error_description", why.to_owned())],
            None => vec![],
        };
        let outcome =
            if outcome.is_empty() { vec![("code", self.keep("code", &query["scope"]))] } else { outcome };
        let mut to = reqwest::Url::parse(&query["redirect_uri"]).unwrap();
        to.query_pairs_mut()
            .extend_pairs(outcome)
            .append_pair("state", &query["state"])
            .append_pair("iss", &self.base);
        let mut response = give(StatusCode::FOUND, &json!({}));
        response.headers_mut().insert("location", to.as_str().parse().unwrap());
        response
    }

    fn token(&self, form: &Pairs) -> Response<Body> {
        let mut shared = self.shared();
        let kind = form["grant_type"].clone();
        shared.granted.push(kind.clone());
        shared.secrets.push(form.get("client_secret").cloned());
        let proof = ["code", "refresh_token", "device_code"].iter().find_map(|name| form.get(*name)).unwrap();
        let refusal = shared.refuses.filter(|_| kind == "refresh_token");
        let Some(scope) = shared.grants.remove(proof).filter(|_| refusal.is_none()) else {
            let (error, why) = refusal.unwrap_or(("invalid_grant", "unknown"));
            return give(StatusCode::BAD_REQUEST, &json!({ "error": error, "error_description": why }));
        };
        let token = self.issuer.token(shared.subject).scopes(scope.split(' '));
        let token = if shared.gives_old { token.expired() } else { token };
        let lifetime = shared.lifetime;
        drop(shared);
        let grant = json!({
            "access_token": token.sign(), "refresh_token": self.keep("refresh", &scope), "token_type": "Bearer",
            "scope": scope, "expires_in": lifetime,
        });
        give(StatusCode::OK, &grant)
    }

    fn device(&self, form: &Pairs) -> Response<Body> {
        let user_code = self.shared().user_code;
        let answer = json!({
            "device_code": self.keep("device", &form["scope"]), "user_code": user_code,
            "verification_uri": format!("{}/enter", self.base), "expires_in": 60, "interval": 1,
        });
        give(StatusCode::OK, &answer)
    }

    /// Visits the page of a sign-in as a person who agrees. Returns where the browser is sent.
    pub(crate) fn visits(&self, page: &str) -> String {
        let response = get(page);
        response.headers()["location"].to_str().unwrap().to_owned()
    }

    /// Visits a page of this machine.
    pub(crate) fn comes_back(&self, callback: &str) {
        assert!(get(callback).status().is_success());
    }
}

/// Gets a page, and follows no redirect.
fn get(page: &str) -> reqwest::Response {
    let browser = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let browser = browser.timeout(Duration::from_secs(30)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { browser.get(page).send().await }).unwrap()
}

type Pairs = BTreeMap<String, String>;

fn pairs(text: &str) -> Pairs {
    let url = reqwest::Url::parse(&format!("http://localhost/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

fn give(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

async fn answer(State(world): State<World>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 64 * 1024).await.unwrap();
    let form = || pairs(std::str::from_utf8(&body).unwrap());
    match parts.uri.path() {
        "/.well-known/oauth-authorization-server" => give(StatusCode::OK, &world.metadata()),
        "/authorize" => world.authorize(&pairs(parts.uri.query().unwrap_or_default())),
        "/token" => {
            let (given, slow) = (world.token(&form()), world.shared().slow_renewal.clone());
            if let Some((time, come)) = slow {
                come.send(()).unwrap();
                tokio::time::sleep(time).await;
            }
            given
        }
        "/device" => world.device(&form()),
        "/register" => {
            let mut client: Value = serde_json::from_slice(&body).unwrap();
            client["client_id"] = "client-1".into();
            give(StatusCode::CREATED, &client)
        }
        _ => give(StatusCode::NOT_FOUND, &json!({})),
    }
}
