//! HTTP of a sign-in: the client's own `reqwest::Client`, within bounds.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use reqwest::{Response, Url};
use roundtrip_core::auth::{AuthError, AuthRequest, AuthResponse, HttpUrl, LONGEST_DOCUMENT, SignIn, Step};

use super::guard::{Guard, public_addresses};
use super::surroundings::around;
use crate::causes::causes;

/// Longest time of one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Greatest number of requests in a row without a person: discovery asks a few URLs, each with a few redirects.
const MOST_REQUESTS: usize = 32;

/// HTTP client of a sign-in: the one that the server is called with (O54).
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) client: reqwest::Client,
    /// Guard that is the resolver of the client. A client of the author's has a resolver of its own: its names are looked up
    /// ahead of it.
    pub(crate) guard: Option<Guard>,
    /// Hosts that may have private addresses: those that the author named.
    pub(crate) trusted: Vec<String>,
    /// Tells that all hosts may.
    pub(crate) private_networks: bool,
}

/// A response, read to its end or to one byte more than is allowed.
struct Read {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Fetch {
    /// Takes steps until one wants something else than a request.
    pub(super) async fn drive(&self, mut step: Step) -> Result<Step, AuthError> {
        for _ in 0..MOST_REQUESTS {
            let Step::Send(sign_in) = step else { return Ok(step) };
            step = self.take(*sign_in).await?;
        }
        Err(AuthError::Settings("the sign-in led in a circle: ask the operator of the server"))
    }

    async fn take(&self, sign_in: SignIn) -> Result<Step, AuthError> {
        let url = sign_in.request().url.clone();
        let read = tokio::time::timeout(TIMEOUT, self.send(sign_in.request())).await;
        let Read { status, headers, body } =
            read.unwrap_or_else(|_| Err(unreachable(&url, format!("no answer within {TIMEOUT:?}"))))?;
        let response = AuthResponse { status, headers: &headers, body: &body };
        around(|around| sign_in.respond(&response, around))
    }

    async fn send(&self, request: &AuthRequest) -> Result<Read, AuthError> {
        let AuthRequest { method, url, headers, body, .. } = request;
        self.check_host(url).await?;
        let target = Url::parse(url.as_str()).map_err(|error| unreachable(url, error.to_string()))?;
        let mut request = self.client.request(method.clone(), target.clone()).headers(headers.clone());
        if let Some(body) = body {
            request = request.body(body.expose().to_owned());
        }
        let response = request.send().await.map_err(|error| broken(url, error))?;
        if *response.url() != target {
            let why = "the HTTP client followed a redirect: give it `redirect::Policy::none()`";
            return Err(AuthError::Settings(why));
        }
        read(url, response).await
    }

    /// Keeps names that came from the network away from private addresses.
    async fn check_host(&self, url: &HttpUrl) -> Result<(), AuthError> {
        let host = url.host();
        let trusted = self.trusted.iter().any(|trusted| trusted.eq_ignore_ascii_case(host));
        if self.private_networks || trusted || url.address().is_some() {
            return Ok(());
        }
        match &self.guard {
            Some(guard) if guard.add(host) => Ok(()),
            Some(_) => Err(unreachable(url, "the sign-in led to too many hosts".to_owned())),
            // A name that does not resolve here may do so at a proxy.
            None => match public_addresses(host).await {
                Err(error) if !error.is::<std::io::Error>() => Err(unreachable(url, error.to_string())),
                _ => Ok(()),
            },
        }
    }
}

/// Reads a response. A longer one than is allowed is cut off one byte behind that, which its reader refuses.
async fn read(url: &HttpUrl, mut response: Response) -> Result<Read, AuthError> {
    let mut body = Vec::new();
    while body.len() <= LONGEST_DOCUMENT
        && let Some(chunk) = response.chunk().await.map_err(|error| broken(url, error))?
    {
        let room = LONGEST_DOCUMENT + 1 - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    Ok(Read { status: response.status(), headers: std::mem::take(response.headers_mut()), body })
}

fn broken(url: &HttpUrl, error: reqwest::Error) -> AuthError {
    unreachable(url, causes(&error.without_url()))
}

fn unreachable(url: &HttpUrl, why: String) -> AuthError {
    AuthError::Unreachable { url: url.without_query().to_owned(), why }
}
