//! Tests of the checks, against an issuer in the process.

mod forged;
mod hostile;
mod introspection;
mod introspection_load;
mod keys;
#[path = "../../../../tests/common/logged.rs"]
mod logged;
mod memory;
mod verifier;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use http::StatusCode;
use roundtrip_core::auth::{AuthRequest, HttpUrl};

use super::*;
use crate::lock::lock;
use crate::server::Owner;
use crate::testing::{Issuer, IssuerToken};

const RESOURCE: &str = "https://tools.example/mcp";
const ISSUER: &str = "https://login.example/tenant1";

fn issuer() -> Issuer {
    Issuer::new(ISSUER, RESOURCE).unwrap()
}

fn alice(issuer: &Issuer) -> IssuerToken {
    issuer.token("alice").scopes(["files:read"])
}

/// Settings with one issuer, which is reached without a socket.
fn settings(issuer: &Issuer) -> CheckerSettings {
    let name = issuer.name().to_owned();
    CheckerSettings {
        rules: ClaimRules::new(RESOURCE),
        issuers: vec![IssuerSettings { name, untyped: false, jwks: None }],
        introspection: Vec::new(),
        verifier: None,
        policy: UrlPolicy::new(HttpUrl::parse(RESOURCE).unwrap(), false).unwrap(),
        clock: Clock::default(),
        http: None,
        fetch: Some(Arc::new(issuer.clone())),
    }
}

fn checker(issuer: &Issuer) -> Arc<TokenChecker> {
    Arc::new(TokenChecker::new(settings(issuer)))
}

impl TokenChecker {
    /// Checks a token of a caller that nothing is known about.
    async fn check(&self, token: &str) -> Result<Arc<Claims>, CheckError> {
        self.check_for(token, &Owner::Unknown).await
    }
}

/// Lets the tasks that can run do so.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Checks a token that is expected to be refused, and returns the reason.
async fn refusal(checker: &TokenChecker, token: &str) -> TokenRefusal {
    match checker.check(token).await {
        Err(CheckError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// A clock that is off by some seconds.
#[derive(Clone, Default)]
struct Ahead(Arc<AtomicI64>);

impl Ahead {
    fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let ahead = Arc::clone(&self.0);
        Clock::new(move || {
            let seconds = ahead.load(Ordering::SeqCst);
            let distance = Duration::from_secs(seconds.unsigned_abs());
            if seconds < 0 { SystemTime::now() - distance } else { SystemTime::now() + distance }
        })
    }
}

/// An issuer whose answers are written down. Other URLs are not found.
#[derive(Debug, Default)]
struct Scripted {
    answers: HashMap<String, (StatusCode, String)>,
    asked: Mutex<Vec<String>>,
}

impl Scripted {
    fn new<const N: usize>(answers: [(&str, u16, String); N]) -> Arc<Self> {
        let answer = |(url, status, body): (&str, u16, String)| {
            (url.to_owned(), (StatusCode::from_u16(status).unwrap(), body))
        };
        Arc::new(Self { answers: answers.into_iter().map(answer).collect(), asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }
}

impl Fetch for Scripted {
    fn send(&self, request: AuthRequest) -> Fetching {
        let url = request.url.as_str().to_owned();
        lock(&self.asked).push(url.clone());
        let not_found = (StatusCode::NOT_FOUND, String::new());
        let (status, body) = self.answers.get(&url).cloned().unwrap_or(not_found);
        Box::pin(async move { Ok(Fetched { status, body: body.into(), max_age: None }) })
    }
}
