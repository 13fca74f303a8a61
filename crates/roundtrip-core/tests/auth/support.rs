//! A scripted authorization server, a clock that stands still, and randomness that counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use roundtrip_core::auth::*;
use roundtrip_core::seal::Timestamp;
use serde_json::{Value, json};

pub(super) const NOON: u64 = 1_785_000_000;
pub(super) const SERVER: &str = "https://tools.example/mcp";
pub(super) const METADATA: &str = "https://tools.example/.well-known/oauth-protected-resource/mcp";
pub(super) const ISSUER: &str = "https://login.example/tenant1";
pub(super) const ISSUER_METADATA: &str =
    "https://login.example/.well-known/oauth-authorization-server/tenant1";
pub(super) const CALLBACK: &str = "http://127.0.0.1:7777/callback";

/// A clock and a source of randomness.
#[derive(Default)]
pub(super) struct World {
    seconds: u64,
    drawn: u8,
}

impl World {
    /// Returns the world this many seconds after noon.
    pub(super) fn after(seconds: u64) -> Self {
        Self { seconds, drawn: 0 }
    }
}

impl Surroundings for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix(NOON + self.seconds)
    }

    fn random(&mut self) -> [u8; 32] {
        self.drawn += 1;
        [self.drawn; 32]
    }
}

/// A key whose signatures are the length of what they are over.
#[derive(Debug)]
pub(super) struct TestKey;

impl Signer for TestKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }

    fn public_key(&self) -> PublicKey {
        PublicKey::Ec { crv: "P-256".into(), x: "eA".into(), y: "eQ".into() }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        Ok(message.len().to_be_bytes().to_vec())
    }
}

pub(super) fn browser() -> Arc<Settings> {
    Arc::new(Settings::browser("Travel agent", CALLBACK).unwrap())
}

pub(super) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    // Fields of one name are kept side by side.
    let mut map = HeaderMap::new();
    for (name, value) in pairs.iter().map(pair) {
        map.append(name, value);
    }
    map
}

/// Metadata of the server's resource.
pub(super) fn resource() -> Value {
    json!({ "resource": SERVER, "authorization_servers": [ISSUER] })
}

/// Metadata of the issuer, which registers clients.
pub(super) fn issuer() -> Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://login.example/authorize",
        "token_endpoint": "https://login.example/token",
        "registration_endpoint": "https://login.example/register",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    })
}

/// Returns a document with one member changed.
pub(super) fn with(mut document: Value, member: &str, value: Value) -> Value {
    document[member] = value;
    document
}

/// Returns a document without a member.
pub(super) fn without(mut document: Value, member: &str) -> Value {
    document.as_object_mut().unwrap().remove(member).unwrap();
    document
}

/// A sign-in under way, and the world around it.
pub(super) struct Play {
    pub(super) world: World,
    pub(super) step: Option<Step>,
    /// URLs that were asked, in order.
    pub(super) asked: Vec<String>,
}

impl Play {
    pub(super) fn begin(settings: &Arc<Settings>, need: Need) -> Result<Self, AuthError> {
        Ok(Self::of(SignIn::begin(Arc::clone(settings), need)?, World::default()))
    }

    pub(super) fn of(step: Step, world: World) -> Self {
        Self { world, step: Some(step), asked: Vec::new() }
    }

    #[track_caller]
    pub(super) fn request(&self) -> &AuthRequest {
        match self.step.as_ref().expect("a step") {
            Step::Send(sign_in) => sign_in.request(),
            other => panic!("nothing to send: {other:?}"),
        }
    }

    pub(super) fn url(&self) -> String {
        self.request().url.to_string()
    }

    /// Returns the body of the request, as a form.
    pub(super) fn form(&self) -> BTreeMap<String, String> {
        form(self.request().body.as_ref().expect("a body").expose())
    }

    /// Returns the body of the request, as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(self.request().body.as_ref().expect("a body").expose()).unwrap()
    }

    pub(super) fn raw(&mut self, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<(), AuthError> {
        self.asked.push(self.url());
        let Some(Step::Send(sign_in)) = self.step.take() else { panic!("nothing to send") };
        let status = StatusCode::from_u16(status).unwrap();
        self.step = Some(sign_in.respond(&AuthResponse { status, headers, body }, &mut self.world)?);
        Ok(())
    }

    pub(super) fn answer(&mut self, status: u16, body: &Value) -> Result<(), AuthError> {
        self.raw(status, &HeaderMap::new(), body.to_string().as_bytes())
    }

    pub(super) fn ok(&mut self, body: &Value) -> Result<(), AuthError> {
        self.answer(200, body)
    }

    /// Plays discovery and registration with the usual answers, up to the browser.
    pub(super) fn to_browser(
        settings: &Arc<Settings>,
        need: Need,
        server: &Value,
    ) -> Result<Self, AuthError> {
        let mut play = Self::to_issuer(settings, need)?;
        play.ok(server)?;
        if matches!(play.step, Some(Step::Send(_))) {
            play.answer(201, &json!({ "client_id": "c1", "redirect_uris": [CALLBACK] }))?;
        }
        Ok(play)
    }

    /// Plays discovery up to the request for the issuer's metadata.
    pub(super) fn to_issuer(settings: &Arc<Settings>, need: Need) -> Result<Self, AuthError> {
        let mut play = Self::begin(settings, need)?;
        play.ok(&resource())?;
        Ok(play)
    }

    #[track_caller]
    pub(super) fn pending(&self) -> &Pending {
        match self.step.as_ref().expect("a step") {
            Step::Browse(pending) => pending,
            other => panic!("no browser: {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn grant(&self) -> &Grant {
        match self.step.as_ref().expect("a step") {
            Step::Done(grant) => grant,
            other => panic!("no grant: {other:?}"),
        }
    }
}

/// Returns the parameters of a URL's query.
pub(super) fn query(url: &HttpUrl) -> BTreeMap<String, String> {
    form(url.query().expect("a query"))
}

/// Decodes a form, each of whose names is there once.
pub(super) fn form(text: &str) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    for pair in text.split('&') {
        let (name, value) = pair.split_once('=').expect("a pair");
        assert!(pairs.insert(decode(name), decode(value)).is_none(), "{name} is there twice");
    }
    pairs
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// Returns header and claims of a token in compact form.
pub(super) fn parts(token: &str) -> (Value, Value) {
    use base64::Engine as _;
    let mut parts = token
        .split('.')
        .map(|part| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).expect("base64url"));
    let mut part = || serde_json::from_slice(&parts.next().expect("a part")).expect("JSON");
    (part(), part())
}

/// Writes a token without a signature worth the name.
pub(super) fn token(header: &Value, claims: &Value) -> String {
    use base64::Engine as _;
    let part = |value: &Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.c2ln", part(header), part(claims))
}
