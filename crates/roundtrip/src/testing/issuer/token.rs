//! Access tokens of an issuer for tests.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::auth::sign_jwt;
use roundtrip_core::seal::Timestamp;
use serde_json::{Map, Value, json};

use super::Issuer;

/// An access token that an [`Issuer`] is about to sign. Claims and header can be anything, so that a test can have bad tokens.
#[must_use = "a token is signed by `sign`"]
pub struct IssuerToken {
    issuer: Issuer,
    header: Map<String, Value>,
    claims: Map<String, Value>,
}

impl IssuerToken {
    pub(super) fn new(issuer: Issuer, subject: String) -> Self {
        let token = Self { header: Map::new(), claims: Map::new(), issuer };
        let (name, audience) = (token.issuer.0.name.clone(), token.issuer.0.audience.clone());
        let token = token.header("typ", "at+jwt").claim("iss", name).claim("aud", audience);
        let token = token.claim("sub", subject).claim("client_id", "test-client");
        token.claim("iat", seconds(SystemTime::now())).expires_in(Duration::from_secs(3600))
    }

    /// Sets the scopes.
    pub fn scopes<S: AsRef<str>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes: Vec<String> = scopes.into_iter().map(|scope| scope.as_ref().to_owned()).collect();
        self.claim("scope", scopes.join(" "))
    }

    /// Sets the audience.
    pub fn audience(self, audience: impl Into<String>) -> Self {
        self.claim("aud", audience.into())
    }

    /// Sets the client that the token is given to.
    pub fn client_id(self, client: impl Into<String>) -> Self {
        self.claim("client_id", client.into())
    }

    /// Sets the time until the token expires.
    pub fn expires_in(self, time: Duration) -> Self {
        self.claim("exp", seconds(SystemTime::now() + time))
    }

    /// Makes a token that has expired an hour ago.
    pub fn expired(self) -> Self {
        self.claim("exp", seconds(SystemTime::now()).saturating_sub(3600))
    }

    /// Sets a claim. `null` is a value, too: [`without`](Self::without) leaves one out.
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.claims.insert(name.into(), value.into());
        self
    }

    /// Leaves a claim out.
    pub fn without(mut self, name: &str) -> Self {
        self.claims.remove(name);
        self
    }

    /// Sets a member of the header. `null` leaves it out.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let (name, value) = (name.into(), value.into());
        match value {
            Value::Null => drop(self.header.remove(&name)),
            value => drop(self.header.insert(name, value)),
        }
        self
    }

    /// Signs the token with the issuer's newest key.
    ///
    /// # Panics
    /// Panics if the operating system has no randomness.
    pub fn sign(self) -> String {
        let (header, claims) = (Value::Object(self.header), Value::Object(self.claims));
        let signed = self.issuer.key().map(|key| sign_jwt(&*key, &header, &claims));
        signed.and_then(Result::ok).unwrap_or_else(|| panic!("the issuer of the test could not sign a token"))
    }

    /// Makes a token that says nothing by itself: the issuer's introspection endpoint knows its claims.
    ///
    /// # Panics
    /// Panics if the operating system has no randomness.
    pub fn opaque(mut self) -> String {
        let mut bytes = [0; 24];
        if aws_lc_rs::rand::fill(&mut bytes).is_err() {
            panic!("the issuer of the test has no randomness");
        }
        let token = URL_SAFE_NO_PAD.encode(bytes);
        self.claims.entry("active").or_insert(json!(true));
        self.issuer.keep_opaque(&token, Value::Object(self.claims));
        token
    }
}

fn seconds(time: SystemTime) -> u64 {
    Timestamp::from(time).as_unix()
}

impl fmt::Debug for IssuerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerToken").field("claims", &self.claims.keys()).finish_non_exhaustive()
    }
}
