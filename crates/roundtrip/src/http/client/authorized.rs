//! Requests with a token: it is renewed where that is all it takes, and got where the client can.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Method};
use reqwest::Response;
use roundtrip_core::auth::CallAttempts;

use super::link::Http;
use super::{HttpTransport, http_client};
use crate::client::{ApiMisuse, BoxFuture, Client, Error, HttpRefusal, Sent, Unreachable};
use crate::oauth::{Answered, Authorizer, Fetch, OAuth, Verdict, Wanted, allows};
use crate::outbound::Outbound;

/// State of the sign-in of a client.
#[derive(Clone)]
pub(super) struct OAuthState {
    /// URL of the server as the author gave it: no URL type prints it (O62).
    server: Arc<str>,
    pub(super) authorizer: Option<Arc<Authorizer>>,
    /// HTTP clients of the sign-in, unless the author gave one.
    outbound: Option<Outbound>,
    /// Tells that the HTTP client is the author's.
    own_client: bool,
}

/// Number of the token that a request was sent with.
#[derive(Clone, Copy)]
pub(super) struct TokenNumber(pub(super) u64);

impl OAuthState {
    pub(super) fn new(server: &str) -> Self {
        Self { server: server.into(), authorizer: None, outbound: None, own_client: false }
    }

    /// Notes that the HTTP client is the author's, which resolves names by itself.
    pub(super) fn unguard(&mut self) {
        self.outbound = None;
        self.own_client = true;
    }

    /// Refuses a header that the sign-in sets.
    pub(super) fn permits(&self, header: &HeaderName) -> Result<(), String> {
        match (&self.authorizer, header) {
            (Some(_), &AUTHORIZATION) => Err(BOTH_SET.to_owned()),
            _ => Ok(()),
        }
    }
}

const BOTH_SET: &str = "this client signs in, and has an `authorization` header too: leave one of them out";

impl Client {
    /// Signs in where the server wants a token, and sends it with every request. For clients made by [`http`](Self::http).
    ///
    /// Discovery, registration, renewal and step-up use the client's own [`http_client`](Self::http_client). A client of yours
    /// should follow no redirects; it resolves names by itself, so that a name is checked against private networks before
    /// it is connected to, and not as it is.
    pub fn oauth(self, oauth: OAuth) -> Self {
        let extension = oauth.extension();
        let client = self.set_transport("oauth", |transport: &mut HttpTransport| {
            let http = transport.connection.link();
            if http.headers.contains_key(AUTHORIZATION) {
                return Err(BOTH_SET.to_owned());
            }
            let authorizer = oauth.authorizer(&http.oauth.server).map_err(|error| error.to_string())?;
            let outbound = if http.oauth.own_client { None } else { Some(outbound()?) };
            transport.change(|http| {
                http.oauth.authorizer = Some(Arc::new(authorizer));
                if let Some(outbound) = &outbound {
                    http.client = outbound.client(http.url.host_str().unwrap_or_default()).clone();
                }
                http.oauth.outbound = outbound;
            });
            Ok(())
        });
        match extension {
            Some(extension) => client.declaring(extension),
            None => client,
        }
    }

    /// Signs in before a request is refused: for programs that do it as a step of its own, and for servers that want a token for
    /// some requests alone. Does nothing where this client has a token in use already.
    ///
    /// ```
    /// use roundtrip::oauth::OAuth;
    /// use roundtrip::{Client, Error};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::http("https://tools.example/mcp")?.oauth(OAuth::new("Travel agent"));
    /// if let Err(Error::SignIn(pending)) = client.begin_sign_in().await {
    ///     println!("open {}", pending.url());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails as a call does that needs a sign-in: with [`Error::SignIn`] where there is no browser.
    pub async fn begin_sign_in(&self) -> Result<(), Error> {
        let (authorizer, fetch) = self.authorizer()?;
        authorizer.authorize(Wanted::default(), fetch).await
    }

    /// Finishes a sign-in whose person has come back, in any process: pass the whole callback URL to
    /// [`Pending::answered`](crate::oauth::Pending::answered). The client needs the same settings as the one that began it.
    ///
    /// The person may be another than the one before: kept results are dropped, streams of changes end, and a server that has
    /// sessions gets another one.
    ///
    /// # Errors
    /// Fails if the authorization server gives no token, or it cannot be stored.
    pub async fn sign_in(&self, answered: Answered) -> Result<(), Error> {
        let (authorizer, fetch) = self.authorizer()?;
        Ok(authorizer.finish(answered, fetch).await?)
    }

    /// Drops the tokens of this client, here and in the store, and the results that it kept. Streams of changes end, and so
    /// does the session with a server that has sessions, also where it is just being begun. The tokens stay good at the server
    /// until they end.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let (authorizer, _) = self.authorizer()?;
        let connection = self.http_transport().map(|transport| &transport.connection);
        if let Some(connection) = connection {
            // Before the token is gone: the server ends the session of the one who began it.
            connection.end_session().await;
        }
        let signed_out = authorizer.sign_out().await;
        if let Some(connection) = connection {
            connection.end_session().await;
        }
        Ok(signed_out?)
    }

    fn http_transport(&self) -> Option<&HttpTransport> {
        let any: &dyn std::any::Any = self.transport();
        any.downcast_ref()
    }

    fn authorizer(&self) -> Result<(Arc<Authorizer>, Fetch), Error> {
        let link = self.http_transport().map(|transport| transport.connection.link());
        let misuse = || ApiMisuse::Settings("this client does not sign in: add `oauth`".to_owned());
        let (http, authorizer) =
            link.and_then(|http| Some((http, http.oauth.authorizer.as_ref()?))).ok_or_else(misuse)?;
        Ok((Arc::clone(authorizer), http.fetch(authorizer)))
    }
}

/// Waits for a sign-out, or for the grant of another sign-in, and returns the error that ends the streams from before it.
pub(super) fn changed(authorizer: &Authorizer) -> impl Future<Output = Error> + Send + 'static {
    let changed = authorizer.tokens().changed();
    async move {
        changed.await;
        let why = "this client has signed out, or in again, perhaps as somebody else: listen again";
        Error::unreachable(Unreachable::Closed(why.to_owned()), Sent::Maybe)
    }
}

/// Makes HTTP clients that keep names from the network away from private addresses.
fn outbound() -> Result<Outbound, String> {
    Outbound::new(http_client, allows).map_err(|error| error.to_string())
}

impl Http {
    fn fetch(&self, authorizer: &Authorizer) -> Fetch {
        let outbound = self.oauth.outbound.clone();
        authorizer.fetch(outbound.unwrap_or_else(|| Outbound::own(self.client.clone(), allows)))
    }

    /// Sends a request with the token. It is sent again once with a renewed token, and once with a proof that has the nonce
    /// which the server wants; the body has not been looked at before. `None` means that it was not sent: the client's tokens are
    /// not of these credentials any more.
    pub(super) async fn authorized(
        &self,
        authorizer: &Arc<Authorizer>,
        method: Method,
        mut headers: HeaderMap,
        body: Option<Bytes>,
        credentials: Option<u64>,
    ) -> Result<Option<Response>, Error> {
        let mut token = authorizer.token(|| self.fetch(authorizer)).await?;
        let (mut may_renew, mut may_prove) = (true, true);
        loop {
            // After the token was taken: it is not of a later count than this.
            if credentials.is_some_and(|credentials| credentials != authorizer.tokens().changes()) {
                return Ok(None);
            }
            authorizer.present(&token, &method, &mut headers).await?;
            let mut response = self.exchange_once(method.clone(), headers.clone(), body.clone()).await?;
            match (authorizer.judge(&token, response.status(), response.headers()), &token) {
                (Verdict::Nonce, _) if std::mem::take(&mut may_prove) => continue,
                (Verdict::Rejected, Some(used)) if std::mem::take(&mut may_renew) => {
                    let fetch = self.fetch(authorizer);
                    let renewed = authorizer.renewed(used, response.headers(), fetch).await?;
                    if renewed.is_some() {
                        token = renewed;
                        continue;
                    }
                }
                _ => {}
            }
            response.extensions_mut().insert(TokenNumber(authorizer.number(&token)));
            return Ok(Some(response));
        }
    }

    /// Gets another token after a refusal.
    pub(super) fn authorize(
        &self,
        refusal: &HttpRefusal,
        attempts: &mut CallAttempts,
        left: Duration,
    ) -> Option<BoxFuture<Result<Duration, Error>>> {
        let authorizer = Arc::clone(self.oauth.authorizer.as_ref()?);
        let wanted = authorizer.wanted(refusal, attempts)?;
        let fetch = self.fetch(&authorizer);
        Some(Box::pin(async move { authorizer.authorize_within(left, wanted?, fetch).await }))
    }
}
