//! HTTP link to a server: every request is a POST of its own.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use reqwest::{Response, Url};
use roundtrip_core::wire::encode_header_value;

use super::{answer, broken, shown};
use crate::client::{ApiMisuse, Error, Failure, Incoming, Link, Outgoing, Sent};
use crate::http::{JSON, name};

pub(super) const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// URL of a server, and the HTTP client and headers to reach it.
#[derive(Clone)]
pub(super) struct Http {
    pub(super) client: reqwest::Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Gets and presents tokens.
    #[cfg(feature = "oauth")]
    pub(super) oauth: super::authorized::OAuthState,
}

impl Http {
    /// Returns the headers of a modern request. Those of the protocol win over those of the user (H2, H3).
    fn headers_for(&self, outgoing: &Outgoing) -> Result<HeaderMap, Error> {
        let value = |text: &str| {
            HeaderValue::from_str(text)
                .map_err(|error| ApiMisuse::Header(format!("{text:?} cannot be in a header: {error}")))
        };
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, BOTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(name::PROTOCOL_VERSION, HeaderValue::from_static(outgoing.version.as_str()));
        headers.insert(name::METHOD, value(outgoing.method)?);
        if let Some(target) = &outgoing.target {
            headers.insert(name::NAME, value(&encode_header_value(target))?);
        }
        for (name, text) in &outgoing.mirrored {
            let name = HeaderName::try_from(name)
                .map_err(|error| ApiMisuse::Header(format!("`{name}` cannot name a header: {error}")))?;
            headers.insert(name, value(text)?);
        }
        Ok(headers)
    }

    /// Sends a request, with a token where the client has any.
    pub(super) async fn exchange(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, Error> {
        let response = self.exchange_with(None, method, headers, body).await?;
        response.ok_or_else(|| Error::closed_by_server("the request was not sent", Sent::No))
    }

    /// Sends a request, if the client still has tokens of the credentials that this number is of.
    pub(super) async fn exchange_with(
        &self,
        credentials: Option<u64>,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Option<Response>, Error> {
        #[cfg(feature = "oauth")]
        if let Some(authorizer) = &self.oauth.authorizer {
            return self.authorized(authorizer, method, headers, body, credentials).await;
        }
        let _ = credentials;
        self.exchange_once(method, headers, body).await.map(Some)
    }

    /// Returns the number of the credentials that requests are sent with. It grows when these become another person's.
    #[cfg(any(feature = "legacy", feature = "oauth"))]
    pub(super) fn credentials(&self) -> u64 {
        #[cfg(feature = "oauth")]
        if let Some(authorizer) = &self.oauth.authorizer {
            return authorizer.tokens().changes();
        }
        0
    }

    pub(super) async fn exchange_once(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, Error> {
        let mut request = self.client.request(method, self.url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        request.send().await.map_err(|error| {
            let sent = if error.is_connect() || error.is_builder() { Sent::No } else { Sent::Maybe };
            broken(&format!("cannot reach {}", shown(&self.url)), error, sent)
        })
    }
}

impl Link for Http {
    const PROBES: bool = false;

    fn life(&self) -> Option<u64> {
        Some(1)
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Incoming, Failure> {
        let headers = self.headers_for(outgoing)?;
        let response = self.exchange(Method::POST, headers, Some(outgoing.message.clone())).await?;
        answer::read(response).await
    }

    /// Does nothing: connections end with their responses.
    fn shut(&self) {}
}
