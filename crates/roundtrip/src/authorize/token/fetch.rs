//! Requests to issuers: over HTTP, with bounds on size, time and addresses.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use roundtrip_core::auth::{AuthRequest, HttpUrl, LONGEST_DOCUMENT, UrlPolicy};

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
    client: Result<Client, String>,
    /// Tells that the client is the author's, which resolves names by itself.
    own_client: bool,
}

impl HttpFetch {
    /// Creates a sender, with an HTTP client of the author's if there is one.
    pub(super) fn new(policy: UrlPolicy, client: Option<Client>) -> Self {
        let own_client = client.is_some();
        let client = client.map_or_else(|| Self::client(&policy), Ok);
        Self { policy, client, own_client }
    }

    fn client(policy: &UrlPolicy) -> Result<Client, String> {
        let builder = Client::builder().redirect(Policy::none()).timeout(TIMEOUT);
        builder.dns_resolver(FilteringResolver(policy.clone())).build().map_err(with_causes)
    }
}

impl Fetch for HttpFetch {
    fn send(&self, request: AuthRequest) -> Fetching {
        let allowed = self.policy.check(&request.url).map_err(|why| why.to_string());
        let client = allowed.and_then(|()| self.client.clone());
        let policy = self.own_client.then(|| self.policy.clone());
        Box::pin(async move {
            let exchange = async {
                if let Some(policy) = policy {
                    check_host(&policy, &request.url).await?;
                }
                exchange(client?, request).await
            };
            let answer = tokio::time::timeout(TIMEOUT, exchange).await;
            answer.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")))
        })
    }
}

/// Refuses a name that leads to addresses alone which the policy does not allow, ahead of a client that resolves it by itself.
pub(super) async fn check_host(policy: &UrlPolicy, url: &HttpUrl) -> Result<(), String> {
    if url.address().is_some() {
        return Ok(());
    }
    match allowed_addresses(policy, url.host()).await {
        // A name that does not resolve here may do so at a proxy.
        Err(error) if !error.is::<std::io::Error>() => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Resolves a name to the addresses that the policy allows.
async fn allowed_addresses(
    policy: &UrlPolicy,
    host: &str,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let found = tokio::net::lookup_host((host, 0)).await?;
    let allowed: Vec<SocketAddr> = found.filter(|found| policy.allows_address(host, found.ip())).collect();
    if allowed.is_empty() {
        return Err("its addresses are of a private network; allow those if that is intended".into());
    }
    Ok(allowed)
}

async fn exchange(client: Client, request: AuthRequest) -> Result<Fetched, String> {
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

/// Resolver that leaves out addresses which the policy does not allow, so that none is connected to after it was checked.
pub(super) struct FilteringResolver(pub(super) UrlPolicy);

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let allowed = allowed_addresses(&policy, name.as_str()).await?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
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
