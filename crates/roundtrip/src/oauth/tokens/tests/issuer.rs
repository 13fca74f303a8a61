//! An issuer that takes every refresh token once, and ends the grant when one comes again.

use std::sync::atomic::AtomicUsize;

use http::{HeaderMap, StatusCode};
use roundtrip_core::auth::{AuthResponse, Settings, SignIn, Step, Surroundings};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use super::*;

pub(super) const SERVER: &str = "https://tools.example/mcp";

/// Returns the time in this many seconds.
pub(super) fn life(seconds: i64) -> Option<u64> {
    now().as_unix().checked_add_signed(seconds)
}

/// Returns a grant with the tokens of this number.
pub(super) fn grant(number: usize, expires_at: Option<u64>) -> Grant {
    let client = json!({
        "issuer": "https://login.example", "client_id": "c1", "source": "dynamic", "secret": null,
        "secret_expires_at": null, "method": null, "redirect_uri": "http://127.0.0.1/callback",
    });
    serde_json::from_value(json!({
        "terms": {
            "server": SERVER, "resource": SERVER, "issuer": "https://login.example",
            "token_endpoint": "https://login.example/token", "client": client, "method": "none",
            "requested": "read", "dpop": null, "assumed_endpoints": false,
        },
        "access_token": format!("a{number}"), "scheme": "Bearer", "expires_at": expires_at,
        "refresh_token": format!("r{number}"), "granted": "read",
    }))
    .expect("a grant")
}

/// Returns the grant that follows a response of the token endpoint.
pub(super) fn exchange(old: &Grant, status: u16, body: &Value) -> Result<Option<Grant>, AuthError> {
    struct World;
    impl Surroundings for World {
        fn now(&self) -> Timestamp {
            now()
        }

        fn random(&mut self) -> [u8; 32] {
            [0; 32]
        }
    }
    let settings = Arc::new(Settings::browser("test", "http://127.0.0.1/callback")?);
    let Some(Step::Send(sign_in)) = SignIn::refresh(settings, old, &mut World)? else { return Ok(None) };
    let (status, body) = (StatusCode::from_u16(status).expect("a status"), body.to_string());
    let response = AuthResponse { status, headers: &HeaderMap::new(), body: body.as_bytes() };
    match sign_in.respond(&response, &mut World)? {
        Step::Done(grant) => Ok(Some(*grant)),
        other => panic!("no grant: {other:?}"),
    }
}

/// Returns the response to a refresh token: the next tokens, or an end to the grant if it is not the newest one.
pub(super) fn rotate(old: &Grant, newest: usize) -> Result<Option<Grant>, AuthError> {
    let Some(token) = &old.refresh_token else { return Ok(None) };
    if token.expose() != format!("r{newest}") {
        return exchange(
            old,
            400,
            &json!({ "error": "invalid_grant", "error_description": "it was used before" }),
        );
    }
    let next = newest + 1;
    let (access, refresh) = (format!("a{next}"), format!("r{next}"));
    let tokens = json!({ "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600 });
    exchange(old, 200, &tokens)
}

/// An issuer in the process.
#[derive(Clone, Default)]
pub(super) struct Issuer(Arc<Inner>);

#[derive(Default)]
struct Inner {
    exchanges: AtomicUsize,
    rotations: AtomicUsize,
    /// Responses in place of new tokens.
    script: std::sync::Mutex<Vec<(u16, Value)>>,
    gate: Option<Gate>,
}

impl Issuer {
    /// Returns an issuer whose responses wait at a gate.
    pub(super) fn gated() -> (Self, Gate) {
        let gate = Gate(Arc::new((Notify::new(), Semaphore::new(0))));
        (Self(Arc::new(Inner { gate: Some(gate.clone()), ..Inner::default() })), gate)
    }

    /// Returns an issuer that answers so at first.
    pub(super) fn answering(status: u16, body: Value) -> Self {
        let issuer = Self::default();
        issuer.refuse(status, body);
        issuer
    }

    /// Answers the next exchange so.
    pub(super) fn refuse(&self, status: u16, body: Value) {
        self.0.script.lock().expect("a script").push((status, body));
    }

    /// Returns how many refresh tokens it has got.
    pub(super) fn exchanges(&self) -> usize {
        self.0.exchanges.load(SeqCst)
    }

    fn answer(&self, old: &Grant) -> Result<Option<Grant>, AuthError> {
        if old.refresh_token.is_some() {
            self.0.exchanges.fetch_add(1, SeqCst);
        }
        if let Some((status, body)) = self.0.script.lock().expect("a script").pop() {
            return exchange(old, status, &body);
        }
        rotate(old, 1 + self.0.rotations.fetch_add(1, SeqCst))
    }
}

impl Exchange for Issuer {
    async fn refresh(&self, old: &Grant) -> Result<Option<Grant>, AuthError> {
        // The refresh token is used up when it has come, whatever becomes of the response.
        let answer = self.answer(old);
        if let Some(gate) = &self.0.gate {
            gate.0.0.notify_one();
            gate.0.1.acquire().await.expect("a gate").forget();
        }
        answer
    }
}

/// A gate at which responses wait.
#[derive(Clone)]
pub(super) struct Gate(Arc<(Notify, Semaphore)>);

impl Gate {
    /// Waits until a response is at the gate.
    pub(super) async fn reached(&self) {
        self.0.0.notified().await;
    }

    /// Lets one response pass.
    pub(super) fn open(&self) {
        self.0.1.add_permits(1);
    }
}
