//! Client side: every request is a POST of its own, and closing its response cancels it. Sessions and resumable streams of
//! the handshake eras are in `legacy.rs`.

mod answer;
#[cfg(feature = "oauth")]
mod authorized;
#[cfg(feature = "legacy")]
mod legacy;
mod link;
mod sse;

use std::fmt;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use reqwest::redirect::Policy;
#[cfg(feature = "oauth")]
use roundtrip_core::auth::CallAttempts;
use roundtrip_core::auth::shown_url;
use roundtrip_core::wire::ProtocolVersion;
#[cfg(feature = "oauth")]
use roundtrip_core::wire::{Method as _, SubscriptionsListen};

#[cfg(feature = "legacy")]
use self::legacy::Connection;
use self::link::Http;
use super::{EVENT_STREAM, JSON};
use crate::causes::causes;
use crate::client::{ApiMisuse, BoxFuture, Client, Error, Incoming, Outgoing, Sent, Transport, Unreachable};
#[cfg(feature = "oauth")]
use crate::client::{HttpRefusal, until};
use crate::outbound::by_proxy_unless_local;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Network;

/// Connection of a client to its server.
#[cfg(not(feature = "legacy"))]
type Connection = crate::client::ModernClient<Http>;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl Client {
    /// Creates a client of a server at a URL. Nothing is sent before the first call.
    ///
    /// Redirects are not followed: a request that may change something must not be replayed elsewhere. Proxies of the environment
    /// are used (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`), except for servers on this machine.
    ///
    /// # Errors
    /// If the URL does not parse, or its scheme is neither `http` nor `https`.
    pub fn http(url: impl AsRef<str>) -> Result<Self, Error> {
        HttpTransport::new(url.as_ref()).map(Self::new)
    }

    /// Adds a header to every request, for example a token. For clients made by [`http`](Self::http).
    pub fn header(self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.set_transport("header", |transport: &mut HttpTransport| {
            let name: HeaderName =
                name.as_ref().parse().map_err(|_| format!("`{}` is no header name", name.as_ref()))?;
            let mut value: HeaderValue = value
                .as_ref()
                .parse()
                .map_err(|_| format!("the value of `{name}` is not valid in a header"))?;
            // Headers people add are credentials more often than not.
            value.set_sensitive(true);
            #[cfg(feature = "oauth")]
            transport.connection.link().oauth.permits(&name)?;
            transport.change(|http| drop(http.headers.insert(name, value)));
            Ok(())
        })
    }

    /// Replaces the HTTP client, to set proxies, roots and timeouts. For clients made by [`http`](Self::http).
    ///
    /// Give it [`Policy::none()`] for redirects.
    pub fn http_client(self, client: reqwest::Client) -> Self {
        self.set_transport("http_client", |transport: &mut HttpTransport| {
            transport.change(|http| {
                http.client = client;
                #[cfg(feature = "oauth")]
                http.oauth.unguard();
            });
            Ok(())
        })
    }
}

/// Returns the settings of the HTTP client of our own.
fn http_client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT)
}

/// Streamable HTTP transport of a client.
#[derive(Clone)]
pub struct HttpTransport {
    connection: Connection,
}

impl HttpTransport {
    fn new(url: &str) -> Result<Self, Error> {
        let misuse = |why: &dyn fmt::Display| {
            Error::from(ApiMisuse::Url(format!("`{}` cannot be called: {why}", shown_url(url))))
        };
        let parsed = Url::parse(url).map_err(|error| misuse(&error))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(misuse(&"the scheme must be http or https"));
        }
        let client = by_proxy_unless_local(http_client(), parsed.host_str().unwrap_or_default());
        let client = client.build().map_err(|error| misuse(&error))?;
        let http = Http {
            client,
            url: parsed,
            headers: HeaderMap::new(),
            #[cfg(feature = "oauth")]
            oauth: authorized::OAuthState::new(url),
        };
        Ok(Self { connection: Connection::new(http) })
    }

    /// Changes the settings and forgets the server's era: other credentials may see another server.
    fn change(&mut self, change: impl FnOnce(&mut Http)) {
        let mut http = self.connection.link().clone();
        change(&mut http);
        self.connection = Connection::new(http);
    }
}

impl Transport for HttpTransport {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        #[cfg(feature = "oauth")]
        if outgoing.method == SubscriptionsListen::NAME
            && let Some(authorizer) = &self.connection.link().oauth.authorizer
        {
            let changed = authorized::changed(authorizer);
            let sending = self.connection.send(outgoing);
            return Box::pin(async move { Ok(until(sending.await?, changed)) });
        }
        self.connection.send(outgoing)
    }

    #[cfg(feature = "oauth")]
    fn credentials(&self) -> u64 {
        self.connection.link().credentials()
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn speaks(&self, version: ProtocolVersion) -> bool {
        Connection::speaks(version)
    }

    #[cfg(feature = "legacy")]
    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.connection.protocol_version()
    }

    #[cfg(feature = "oauth")]
    fn authorize(
        &self,
        refusal: &HttpRefusal,
        attempts: &mut CallAttempts,
        left: Duration,
    ) -> Option<BoxFuture<Result<Duration, Error>>> {
        self.connection.link().authorize(refusal, attempts, left)
    }

    #[cfg(feature = "opentelemetry")]
    fn network(&self) -> Network {
        let url = &self.connection.link().url;
        let network = Network::http(None);
        self.connection.in_session(match url.host_str() {
            Some(host) => network.server(host, url.port_or_known_default()),
            None => network,
        })
    }

    #[cfg(feature = "legacy")]
    fn abandon(&self, state: &str) {
        self.connection.abandon(state);
    }

    /// Ends the session, if there is one, and waits for tokens that were asked for: a refresh token is good for one use.
    fn close(&self) -> BoxFuture<()> {
        let connection = self.connection.clone();
        Box::pin(async move {
            connection.close().await;
            #[cfg(feature = "oauth")]
            if let Some(authorizer) = &connection.link().oauth.authorizer {
                authorizer.tokens().close().await;
            }
        })
    }
}

/// Returns the URL without its secret parts (credentials, query).
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Builds the error of a broken connection.
fn broken(what: &str, error: reqwest::Error, sent: Sent) -> Error {
    let connected = !error.is_connect() && !error.is_builder();
    let error = error.without_url();
    let message = format!("{what}: {}", causes(&error));
    let why = if connected { Unreachable::Broken(message) } else { Unreachable::NoConnection(message) };
    Error::Unreachable { why, sent, cause: Some(Box::new(error)) }
}

/// Returns the media type of a response, without parameters.
fn media_type(headers: &HeaderMap) -> Option<&'static str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let bare = value.split(';').next().unwrap_or_default().trim();
    [JSON, EVENT_STREAM].into_iter().find(|known| known.eq_ignore_ascii_case(bare))
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport")
            .field("url", &shown(&self.connection.link().url))
            .finish_non_exhaustive()
    }
}
