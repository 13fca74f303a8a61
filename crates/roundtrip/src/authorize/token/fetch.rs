//! Requests to issuers: over HTTP, with bounds on size, time and addresses.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, StatusCode};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use roundtrip_core::auth::{AuthRequest, LONGEST_DOCUMENT, UrlPolicy};

use crate::outbound::Outbound;

/// Longest time that a request takes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Future of a response, or of the reason there is none.
pub(crate) type Fetching = Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send>>;

/// Sender of requests to issuers: HTTP, or an issuer in this process.
pub(crate) trait Fetch: Send + Sync + fmt::Debug {
    /// Sends a request, follows no redirect, and reads a bounded response in a bounded time.
    fn send(&self, request: AuthRequest) -> Fetching;
}

/// Response of an issuer.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    /// Status.
    pub(crate) status: StatusCode,
    /// Body.
    pub(crate) body: Bytes,
    /// Time for which it may be kept, by `Cache-Control`.
    pub(crate) max_age: Option<Duration>,
}

impl Fetched {
    /// Returns the body of a success.
    ///
    /// # Errors
    /// Fails for any other status: redirects are not followed.
    pub(super) fn success(&self) -> Result<&[u8], String> {
        if self.status == StatusCode::OK { Ok(&self.body) } else { Err(format!("HTTP {}", self.status)) }
    }
}

/// Sender over HTTP. It connects to the addresses that the policy allows.
#[derive(Debug)]
pub(super) struct HttpFetch {
    policy: UrlPolicy,
    outbound: Result<Outbound, String>,
}

impl HttpFetch {
    /// Creates a sender, with an HTTP client of the author's if there is one.
    pub(super) fn new(policy: UrlPolicy, client: Option<Client>) -> Self {
        let rule = policy.clone();
        let allows = move |host: &str, address| rule.allows_address(host, address);
        let settings = || Client::builder().redirect(Policy::none()).timeout(TIMEOUT);
        let outbound = match client {
            Some(client) => Ok(Outbound::own(client, allows)),
            None => Outbound::new(settings, allows).map_err(with_causes),
        };
        Self { policy, outbound }
    }
}

impl Fetch for HttpFetch {
    fn send(&self, request: AuthRequest) -> Fetching {
        let allowed = self.policy.check(&request.url).map_err(|why| why.to_string());
        let outbound = allowed.and_then(|()| self.outbound.clone());
        Box::pin(async move {
            let exchange = async {
                let outbound = outbound?;
                exchange(outbound.checked(&request.url.clone()).await?, request).await
            };
            let answer = tokio::time::timeout(TIMEOUT, exchange).await;
            answer.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")))
        })
    }
}

async fn exchange(client: &Client, request: AuthRequest) -> Result<Fetched, String> {
    let url = Url::parse(request.url.as_str()).map_err(|error| error.to_string())?;
    let mut sent = client.request(request.method, url.clone()).headers(request.headers);
    if let Some(body) = &request.body {
        sent = sent.body(body.expose().to_owned());
    }
    let response = sent.send().await.map_err(with_causes)?;
    // A client of the author's may have followed a redirect: what it found there is not used.
    if *response.url() != url {
        return Err("it redirects, which is not followed".to_owned());
    }
    let (status, max_age) = (response.status(), max_age(response.headers()));
    Ok(Fetched { status, body: read(response).await?, max_age })
}

async fn read(mut response: Response) -> Result<Bytes, String> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(with_causes)? {
        if body.len() + chunk.len() > LONGEST_DOCUMENT {
            return Err(format!("the response is longer than {LONGEST_DOCUMENT} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives = values.flat_map(|value| value.split(',')).map(|one| one.trim().to_ascii_lowercase());
    let ages = directives.filter_map(|directive| match directive.as_str() {
        "no-store" | "no-cache" => Some(0),
        other => other.strip_prefix("max-age=")?.parse().ok(),
    });
    ages.min().map(Duration::from_secs)
}

/// Describes an error with its causes. The URL is left out: the log has the issuer.
fn with_causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_keys_is_found_among_directives() {
        let age = |value: &'static str| {
            let value = http::HeaderValue::from_static(value);
            max_age(&HeaderMap::from_iter([(CACHE_CONTROL, value)]))
        };
        assert_eq!(age("public, max-age=600, must-revalidate"), Some(Duration::from_secs(600)));
        assert_eq!(age("Max-Age=600, no-cache"), Some(Duration::ZERO));
        assert_eq!(age("max-age=99999999999999999999999"), None);
        assert_eq!(age("public"), None);
    }
}
