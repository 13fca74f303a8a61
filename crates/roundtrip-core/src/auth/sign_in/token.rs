//! Token requests: a code, a refresh token, an assertion or a client's own credentials against tokens.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::client;
use super::device::DevicePending;
use super::http::{AuthRequest, AuthResponse};
use super::machine::{SignIn, State, Step};
use super::pending::Answered;
use super::settings::{GrantType, Settings};
use crate::auth::client_auth::ClientAuth;
use crate::auth::dpop::{DPOP, Proof, nonce_of};
use crate::auth::error::AuthError;
use crate::auth::grant::{Grant, Terms};
use crate::auth::pairs::Pairs;
use crate::auth::pkce::Verifier;
use crate::auth::registration::DEVICE_CODE;
use crate::auth::secret::Secret;
use crate::auth::surroundings::Surroundings;
use crate::auth::text::PeerError;
use crate::auth::token_response::TokenResponse;
use crate::auth::url::HttpUrl;

/// A request for tokens.
#[derive(Debug)]
pub(super) struct TokenCall {
    terms: Terms,
    kind: TokenKind,
    /// Nonce that the server demanded for the proof.
    nonce: Option<String>,
}

/// The grant that is exchanged for tokens.
#[derive(Debug)]
pub(super) enum TokenKind {
    Code { code: Secret, verifier: Verifier, redirect_uri: HttpUrl },
    Refresh { old: Box<Grant>, token: Secret },
    Device(Box<DevicePending>),
    Assertion(Secret),
    ClientCredentials,
}

impl TokenKind {
    fn write(&self, form: &mut Pairs) {
        match self {
            Self::Code { code, verifier, redirect_uri } => {
                form.push("grant_type", "authorization_code");
                form.push("code", code.expose());
                form.push("code_verifier", verifier.secret().expose());
                form.push("redirect_uri", redirect_uri.as_str());
            }
            Self::Refresh { token, .. } => {
                form.push("grant_type", "refresh_token");
                form.push("refresh_token", token.expose());
            }
            Self::Device(device) => {
                form.push("grant_type", DEVICE_CODE);
                form.push("device_code", device.code.expose());
            }
            Self::Assertion(assertion) => {
                form.push("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
                form.push("assertion", assertion.expose());
            }
            Self::ClientCredentials => form.push("grant_type", "client_credentials"),
        }
    }

    /// Returns whether the request says itself which scopes it is for; the others go back to a request that did.
    fn has_scope(&self) -> bool {
        matches!(self, Self::Assertion(_) | Self::ClientCredentials)
    }

    fn old(&self) -> Option<&Grant> {
        match self {
            Self::Refresh { old, .. } => Some(old),
            _ => None,
        }
    }
}

impl TokenCall {
    pub(super) fn new(terms: Terms, kind: TokenKind) -> Self {
        Self { terms, kind, nonce: None }
    }

    pub(super) fn of_code(answered: Answered) -> Self {
        let Answered { terms, code, verifier, redirect_uri } = answered;
        Self::new(terms, TokenKind::Code { code, verifier, redirect_uri })
    }

    /// Returns the request that renews a grant: by its refresh token, or once more as the client itself. The identity that other
    /// grants without a person show may have ended since.
    pub(super) fn of_refresh(grant: &Grant, settings: &Settings) -> Option<Self> {
        if !client::is_of(settings, &grant.terms) {
            return None;
        }
        let kind = match (&grant.refresh_token, &settings.grant) {
            (Some(token), _) => TokenKind::Refresh { old: Box::new(grant.clone()), token: token.clone() },
            (None, GrantType::ClientCredentials) => TokenKind::ClientCredentials,
            (None, _) => return None,
        };
        Some(Self::new(grant.terms.clone(), kind))
    }

    pub(super) fn send(
        self,
        settings: Arc<Settings>,
        around: &mut dyn Surroundings,
    ) -> Result<Step, AuthError> {
        let request = self.request(&settings, around)?;
        Ok(SignIn::send(settings, State::Token(Box::new(self)), request))
    }

    fn request(&self, settings: &Settings, around: &mut dyn Surroundings) -> Result<AuthRequest, AuthError> {
        let mut form = Pairs::default();
        self.kind.write(&mut form);
        form.push("resource", &self.terms.resource);
        if self.kind.has_scope() && !self.terms.requested.is_empty() {
            form.push("scope", &self.terms.requested.to_string());
        }
        let mut headers = http::HeaderMap::new();
        authenticate(settings, &self.terms, &mut form, &mut headers, around)?;
        let mut request = AuthRequest::form(self.terms.token_endpoint.clone(), form.as_str());
        request.headers.extend(headers);
        if let Some(proof) = self.proof(settings, around)? {
            request.headers.insert(HeaderName::from_static(DPOP), proof);
        }
        Ok(request)
    }

    fn proof(
        &self,
        settings: &Settings,
        around: &mut dyn Surroundings,
    ) -> Result<Option<HeaderValue>, AuthError> {
        let Some(key) = settings.dpop_key(self.terms.dpop.as_deref())? else {
            return Ok(None);
        };
        let (url, nonce) = (&self.terms.token_endpoint, self.nonce.as_deref());
        let (now, random) = (around.now(), around.random());
        let proof = Proof { method: "POST", url, token: None, nonce, now, random }.sign(key)?;
        Ok(HeaderValue::from_str(&proof).ok())
    }

    /// Takes the response. A nonce that is demanded is sent once, with a new proof.
    pub(super) fn respond(
        mut self,
        settings: Arc<Settings>,
        url: &HttpUrl,
        response: &AuthResponse<'_>,
        around: &mut dyn Surroundings,
    ) -> Result<Step, AuthError> {
        if response.status.is_success() {
            let tokens = TokenResponse::parse(response.body)?;
            let grant = tokens.into_grant(self.terms, self.kind.old(), around.now())?;
            return Ok(Step::Done(Box::new(grant)));
        }
        let error = match response.error(url, AuthError::TokenRefused) {
            AuthError::TokenRefused(error) => error,
            other => return Err(other),
        };
        let nonce = nonce_of(response.headers).filter(|_| self.terms.dpop.is_some() && self.nonce.is_none());
        match (error.code.as_str(), nonce, self.kind) {
            ("use_dpop_nonce", Some(nonce), kind) => {
                self = Self { terms: self.terms, kind, nonce: Some(nonce.to_owned()) };
                self.send(settings, around)
            }
            (_, _, TokenKind::Device(device)) => device.refused(error, around.now()),
            _ => Err(refusal(error)),
        }
    }
}

/// Sorts a refusal: one that ends the grant from one of the client.
pub(super) fn refusal(error: PeerError) -> AuthError {
    if error.code == "invalid_grant" { AuthError::GrantOver(error) } else { AuthError::TokenRefused(error) }
}

/// Adds what authenticates the client to a request to its issuer.
pub(super) fn authenticate(
    settings: &Settings,
    terms: &Terms,
    form: &mut Pairs,
    headers: &mut http::HeaderMap,
    around: &mut dyn Surroundings,
) -> Result<(), AuthError> {
    let auth = ClientAuth {
        method: terms.method,
        client_id: &terms.client.client_id,
        secret: client::secret_of(settings, &terms.client),
        key: client::key_of(settings, &terms.client),
        issuer: &terms.issuer,
    };
    auth.apply(form, headers, around)
}
