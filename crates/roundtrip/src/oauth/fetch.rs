//! HTTP of a sign-in: the client's own `reqwest::Client`, within bounds.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use reqwest::{Response, Url};
use roundtrip_core::auth::{
    AuthError, AuthRequest, AuthResponse, HttpUrl, LONGEST_DOCUMENT, SignIn, Step, is_public_address,
};

use tokio::time::{Instant, timeout_at};

use super::surroundings::around;
use crate::causes::causes;
use crate::outbound::Outbound;

/// Longest time of one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time of requests in a row without a person.
const LONGEST_DRIVE: Duration = Duration::from_secs(30);
/// Greatest number of requests in a row without a person: discovery asks a few URLs, each with a few redirects.
const MOST_REQUESTS: usize = 32;

/// HTTP client of a sign-in: the one that the server is called with (O54).
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) outbound: Outbound,
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
        let end = Instant::now() + LONGEST_DRIVE;
        for _ in 0..MOST_REQUESTS {
            let Step::Send(sign_in) = step else { return Ok(step) };
            step = self.take(*sign_in, end).await?;
        }
        Err(AuthError::Settings("the sign-in led in a circle: ask the operator of the server"))
    }

    async fn take(&self, sign_in: SignIn, end: Instant) -> Result<Step, AuthError> {
        let url = sign_in.request().url.clone();
        let late = Instant::now() + TIMEOUT;
        let read = timeout_at(late.min(end), self.send(sign_in.request())).await;
        let too_late = |_| {
            let why =
                if late <= end { "no answer within" } else { "the requests of the sign-in took longer than" };
            let limit = if late <= end { TIMEOUT } else { LONGEST_DRIVE };
            Err(unreachable(&url, format!("{why} {limit:?}")))
        };
        let Read { status, headers, body } = read.unwrap_or_else(too_late)?;
        let response = AuthResponse { status, headers: &headers, body: &body };
        around(|around| sign_in.respond(&response, around))
    }

    async fn send(&self, request: &AuthRequest) -> Result<Read, AuthError> {
        let AuthRequest { method, url, headers, body, .. } = request;
        let client = self.client(url).await?;
        let target = Url::parse(url.as_str()).map_err(|error| unreachable(url, error.to_string()))?;
        let mut request = client.request(method.clone(), target.clone()).headers(headers.clone());
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

    /// Returns the client for a URL. Names that came from the network are kept away from private addresses.
    async fn client(&self, url: &HttpUrl) -> Result<&reqwest::Client, AuthError> {
        let host = url.host();
        let trusted = self.trusted.iter().any(|trusted| trusted.eq_ignore_ascii_case(host));
        if self.private_networks || trusted {
            return Ok(self.outbound.client(host));
        }
        self.outbound.checked(url).await.map_err(|why| unreachable(url, why))
    }
}

/// Returns whether an address of a host from the network may be connected to. `localhost` comes from servers on this machine
/// only.
pub(crate) fn allows(host: &str, address: IpAddr) -> bool {
    is_public_address(address) || host.eq_ignore_ascii_case("localhost") && address.is_loopback()
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roundtrip_core::auth::{Need, Settings};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    fn fetch(redirects: reqwest::redirect::Policy) -> Fetch {
        let client = reqwest::Client::builder().redirect(redirects).build().unwrap();
        let outbound = Outbound::own(client, allows);
        Fetch { outbound, trusted: vec!["127.0.0.1".to_owned()], private_networks: false }
    }

    /// Signs in to a server on this machine that treats every connection in one way. Returns the error.
    async fn sign_in<F>(fetch: &Fetch, treat: impl Fn(TcpStream) -> F + Send + 'static) -> AuthError
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(treat(stream));
            }
        });
        let settings = Arc::new(Settings::machine("client").secret("secret".into()).any_issuer());
        let step = SignIn::begin(settings, Need::new(url)).unwrap();
        fetch.drive(step).await.map(|step| format!("{step:?}")).expect_err("no way to sign in")
    }

    /// O52: a server that does not answer is waited for ten seconds.
    #[tokio::test(start_paused = true)]
    async fn a_request_has_a_time_limit() {
        let fetch = fetch(reqwest::redirect::Policy::none());
        let error = sign_in(&fetch, async |_held| std::future::pending().await).await;
        assert!(matches!(&error, AuthError::Unreachable { why, .. } if why.contains("10s")), "{error:?}");
    }

    /// O52: servers that each answer in time, and lead on and on, are followed for thirty seconds.
    #[tokio::test(start_paused = true)]
    async fn requests_in_a_row_have_a_time_limit() {
        // Time does not pass by itself while a thread works.
        let (work, rest) = std::sync::mpsc::channel::<()>();
        let working = tokio::task::spawn_blocking(move || rest.recv().is_err());
        let slow = async |mut stream: TcpStream| {
            drop(stream.read(&mut [0; 4096]).await);
            tokio::time::advance(Duration::from_secs(9)).await;
            let moved = "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            drop(stream.write_all(moved.as_bytes()).await);
        };
        let error = sign_in(&fetch(reqwest::redirect::Policy::none()), slow).await;
        assert!(matches!(&error, AuthError::Unreachable { why, .. } if why.contains("30s")), "{error:?}");
        drop(work);
        assert!(working.await.unwrap());
    }

    /// O52: a response without an end is not read to its end.
    #[tokio::test]
    async fn an_endless_response_is_cut_off() {
        let endless = async |mut stream: TcpStream| {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
            drop(stream.read(&mut [0; 4096]).await);
            let mut wrote = stream.write_all(head).await;
            while wrote.is_ok() {
                wrote = stream.write_all(&[b' '; 16 * 1024]).await;
            }
        };
        let error = sign_in(&fetch(reqwest::redirect::Policy::none()), endless).await;
        assert!(!matches!(error, AuthError::Unreachable { .. }), "{error:?}");
    }

    /// O51: a redirect that the author's HTTP client follows by itself is noticed: the rules for redirects are not its.
    #[tokio::test]
    async fn redirects_are_not_left_to_the_http_client() {
        let redirect = async |mut stream: TcpStream| {
            let mut asked = vec![0; 4096];
            let read = stream.read(&mut asked).await.unwrap_or_default();
            let moved = "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let there = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let answer = if asked[..read].starts_with(b"GET /elsewhere") { there } else { moved };
            drop(stream.write_all(answer.as_bytes()).await);
        };
        let error = sign_in(&fetch(reqwest::redirect::Policy::default()), redirect).await;
        assert!(matches!(error, AuthError::Settings(why) if why.contains("redirect")), "{error:?}");
    }
}
