//! Authentication of a client at the token endpoint (RFC 6749, 2.3; RFC 7523).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::json;
use zeroize::Zeroizing;

use super::error::AuthError;
use super::jwt::{Signer, sign_jwt};
use super::metadata::ServerMetadata;
use super::pairs::{Pairs, encode};
use super::secret::Secret;
use super::surroundings::Surroundings;
use super::text::quote;

/// Lifetime of a client assertion, in seconds.
const ASSERTION_TTL: u64 = 120;

/// Way in which a client authenticates itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuthMethod {
    /// `none`: the client id alone, as of programs on people's machines.
    None,
    /// `client_secret_basic`: id and secret in the `Authorization` header.
    ClientSecretBasic,
    /// `client_secret_post`: id and secret in the body.
    ClientSecretPost,
    /// `private_key_jwt`: an assertion signed with the client's key.
    PrivateKeyJwt,
}

impl ClientAuthMethod {
    /// Methods in the order of preference.
    const PREFERRED: [Self; 4] =
        [Self::PrivateKeyJwt, Self::ClientSecretBasic, Self::ClientSecretPost, Self::None];

    /// Returns the name of the method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Reads the name of a method.
    pub fn parse(name: &str) -> Option<Self> {
        Self::PREFERRED.into_iter().find(|method| method.as_str() == name)
    }

    /// Chooses from what the server lists, what it said when it registered the client, and what the client has.
    ///
    /// # Errors
    /// Fails if the client has a secret or a key, and the server lists nothing that takes it.
    pub fn choose(
        server: &ServerMetadata,
        said: Option<Self>,
        has_secret: bool,
        has_key: bool,
    ) -> Result<Self, AuthError> {
        let usable = |method: &Self| match method {
            Self::None => true,
            Self::ClientSecretBasic | Self::ClientSecretPost => has_secret,
            Self::PrivateKeyJwt => has_key,
        };
        let said = said.filter(usable);
        let Some(listed) = &server.token_endpoint_auth_methods_supported else {
            // RFC 8414, 2: absent means `client_secret_basic`; a client without a secret has no choice.
            return Ok(said.or(Self::PREFERRED.into_iter().find(usable)).unwrap_or(Self::None));
        };
        let lists = |method: &Self| listed.iter().any(|name| name == method.as_str());
        if let Some(said) = said.filter(lists) {
            return Ok(said);
        }
        let chosen = Self::PREFERRED.into_iter().find(|method| usable(method) && lists(method)).or(said);
        match chosen {
            Some(chosen) => Ok(chosen),
            None if !has_secret && !has_key => Ok(Self::None),
            None => Err(AuthError::ClientAuthentication { listed: quote(&listed.join(", ")) }),
        }
    }
}

/// A client as it presents itself to one issuer.
pub(super) struct ClientAuth<'a> {
    pub(super) method: ClientAuthMethod,
    pub(super) client_id: &'a str,
    pub(super) secret: Option<&'a Secret>,
    pub(super) key: Option<&'a dyn Signer>,
    /// Issuer of the token endpoint: the audience of an assertion.
    pub(super) issuer: &'a str,
}

impl ClientAuth<'_> {
    /// Adds what authenticates the client to a request.
    pub(super) fn apply(
        &self,
        form: &mut Pairs,
        headers: &mut HeaderMap,
        around: &mut dyn Surroundings,
    ) -> Result<(), AuthError> {
        match self.method {
            ClientAuthMethod::None => form.push("client_id", self.client_id),
            ClientAuthMethod::ClientSecretBasic => {
                headers.insert(AUTHORIZATION, self.basic()?);
            }
            ClientAuthMethod::ClientSecretPost => {
                form.push("client_id", self.client_id);
                form.push("client_secret", self.needed_secret()?.expose());
            }
            ClientAuthMethod::PrivateKeyJwt => {
                form.push("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
                form.push("client_assertion", &self.assertion(around)?);
            }
        }
        Ok(())
    }

    /// Writes the header of `client_secret_basic`: both parts are encoded like a form first (RFC 6749, 2.3.1).
    pub(super) fn basic(&self) -> Result<HeaderValue, AuthError> {
        let secret = encode(self.needed_secret()?.expose());
        let pair = Zeroizing::new(format!("{}:{}", *encode(self.client_id), *secret));
        let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| AuthError::Settings("the client id cannot be sent"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn needed_secret(&self) -> Result<&Secret, AuthError> {
        self.secret
            .ok_or(AuthError::Settings("the client has no secret: configure the one it was registered with"))
    }

    /// Signs an assertion. Its audience is the issuer, not the token endpoint: a URL that a hostile server could have chosen.
    fn assertion(&self, around: &mut dyn Surroundings) -> Result<String, AuthError> {
        let key = self
            .key
            .ok_or(AuthError::Settings("the client has no key: configure the one it was registered with"))?;
        let now = around.now().as_unix();
        let claims = json!({
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": self.issuer,
            "jti": URL_SAFE_NO_PAD.encode(around.random()),
            "iat": now,
            "exp": now.saturating_add(ASSERTION_TTL),
        });
        Ok(sign_jwt(key, &json!({ "typ": "JWT" }), &claims)?)
    }
}
