//! Clients as an issuer knows them: registered by hand, by a metadata document, or by request (RFC 7591).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client_auth::ClientAuthMethod;
use super::error::AuthError;
use super::json;
use super::metadata::ServerMetadata;
use super::secret::Secret;
use super::url::{HttpUrl, UrlError};
use crate::seal::Timestamp;

/// Grant type of a device code (RFC 8628).
pub(super) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Origin of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RegistrationSource {
    /// Registered by hand, and configured.
    Configured,
    /// The client id is the URL of a metadata document; it is good at every issuer that takes those.
    MetadataDocument,
    /// Registered by request.
    Dynamic,
}

/// A client as one issuer knows it. It is never used with another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Registration {
    /// Issuer that knows the client.
    pub issuer: String,
    /// Client id.
    pub client_id: String,
    /// Origin.
    pub source: RegistrationSource,
    /// Secret, if the issuer gave one.
    pub secret: Option<Secret>,
    /// Time at which the secret ends, in seconds since 1970.
    pub secret_expires_at: Option<u64>,
    /// Way in which the issuer wants the client to authenticate itself.
    pub method: Option<ClientAuthMethod>,
    /// Redirect URI that it was registered for.
    pub redirect_uri: Option<String>,
}

impl Registration {
    pub(super) fn new(issuer: &str, client_id: &str, source: RegistrationSource) -> Self {
        Self {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            source,
            secret: None,
            secret_expires_at: None,
            method: None,
            redirect_uri: None,
        }
    }

    /// Returns whether a stored registration can be used again: at the same issuer, for the same redirect URI, while its secret
    /// is good.
    pub fn serves(&self, issuer: &str, redirect_uri: Option<&str>, now: Timestamp) -> bool {
        self.issuer == issuer
            && self.redirect_uri.as_deref() == redirect_uri
            && self.secret_expires_at.is_none_or(|end| now.as_unix() < end)
    }
}

/// URL of a client's metadata document, which is its client id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientMetadataUrl(HttpUrl);

impl ClientMetadataUrl {
    /// Checks a URL: `https`, with a path, without user info, fragment and dot segments.
    ///
    /// # Errors
    /// Fails if it is not one.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let url = HttpUrl::parse(text)?;
        if !url.is_https() {
            return Err(UrlError::Insecure);
        }
        if matches!(url.path(), "" | "/") {
            return Err(UrlError::Host);
        }
        Ok(Self(url))
    }

    /// Returns the client id.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the document to host at this URL, byte for byte. With a redirect URI on the person's machine the client is a
    /// native one: authorization servers may ignore the port of those alone.
    ///
    /// ```
    /// use roundtrip_core::auth::ClientMetadataUrl;
    ///
    /// let url = ClientMetadataUrl::parse("https://agent.example/client.json").unwrap();
    /// let document = url.document("Travel agent", &["http://127.0.0.1/callback"]);
    /// assert_eq!(document["client_id"], "https://agent.example/client.json");
    /// ```
    pub fn document(&self, name: &str, redirect_uris: &[&str]) -> Value {
        json!({
            "client_id": self.as_str(),
            "client_name": name,
            "application_type": ApplicationType::of_all(redirect_uris).as_str(),
            "redirect_uris": redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        })
    }
}

/// Kind of application, by its redirect URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApplicationType {
    Native,
    Web,
}

impl ApplicationType {
    /// Returns the kind of a client: one without a redirect URI is a program on a device.
    pub(super) fn of(redirect_uri: Option<&HttpUrl>) -> Self {
        if redirect_uri.is_none_or(HttpUrl::is_loopback) { Self::Native } else { Self::Web }
    }

    /// Returns the kind of a client with all of these redirect URIs. Those of other schemes than `http` are a program's own.
    fn of_all(redirect_uris: &[&str]) -> Self {
        let on_the_web = |uri: &&str| HttpUrl::parse(uri).is_ok_and(|url| !url.is_loopback());
        if !redirect_uris.is_empty() && redirect_uris.iter().all(on_the_web) {
            Self::Web
        } else {
            Self::Native
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::Native => Self::Web,
            Self::Web => Self::Native,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Web => "web",
        }
    }
}

/// Returns the body of a registration request. A client without a redirect URI signs in with a device code.
pub(super) fn request_body(
    name: &str,
    redirect_uri: Option<&HttpUrl>,
    kind: ApplicationType,
    server: &ServerMetadata,
) -> Value {
    // A program on a person's machine keeps no secret: `none`, where the server lists it.
    let listed = server.token_endpoint_auth_methods_supported.as_deref();
    let lists =
        |method: ClientAuthMethod| listed.is_some_and(|all| all.iter().any(|name| name == method.as_str()));
    let order =
        [ClientAuthMethod::None, ClientAuthMethod::ClientSecretBasic, ClientAuthMethod::ClientSecretPost];
    let method = order.into_iter().find(|method| lists(*method)).unwrap_or(match listed {
        None => ClientAuthMethod::ClientSecretBasic,
        Some(_) => ClientAuthMethod::None,
    });
    let grant = if redirect_uri.is_some() { "authorization_code" } else { DEVICE_CODE };
    json!({
        "client_name": name,
        "application_type": kind.as_str(),
        "redirect_uris": redirect_uri.map(HttpUrl::as_str).as_slice(),
        "grant_types": [grant, "refresh_token"],
        "response_types": redirect_uri.map(|_| "code").as_slice(),
        "token_endpoint_auth_method": method.as_str(),
    })
}

/// Reads the answer to a registration request.
pub(super) fn read_answer(
    body: &[u8],
    issuer: &str,
    redirect_uri: Option<&HttpUrl>,
) -> Result<Registration, AuthError> {
    #[derive(Deserialize)]
    struct Answer {
        client_id: String,
        #[serde(default)]
        client_secret: Option<Secret>,
        #[serde(default)]
        client_secret_expires_at: Option<u64>,
        #[serde(default)]
        token_endpoint_auth_method: Option<String>,
        #[serde(default)]
        redirect_uris: Option<Vec<String>>,
    }
    let refuse = AuthError::TokenResponse;
    let answer: Answer =
        json::document(body).map_err(|_| refuse("the registration is not an object with `client_id`"))?;
    if answer.client_id.is_empty() || answer.client_id.chars().any(char::is_control) {
        return Err(refuse("the registration has a `client_id` that cannot be sent"));
    }
    let redirect_uri = redirect_uri.map(HttpUrl::as_str);
    let kept = |uri: &str| answer.redirect_uris.as_ref().is_none_or(|all| all.iter().any(|held| held == uri));
    if !redirect_uri.is_none_or(kept) {
        return Err(refuse("the registration has other redirect URIs than were asked for"));
    }
    let mut registration = Registration::new(issuer, &answer.client_id, RegistrationSource::Dynamic);
    registration.secret = answer.client_secret;
    // RFC 7591, 3.2.1: zero means that it does not end.
    registration.secret_expires_at = answer.client_secret_expires_at.filter(|end| *end > 0);
    registration.method = answer.token_endpoint_auth_method.as_deref().and_then(ClientAuthMethod::parse);
    registration.redirect_uri = redirect_uri.map(str::to_owned);
    Ok(registration)
}
