//! The device grant (RFC 8628): a code that a person enters in a browser elsewhere.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::http::{AuthRequest, AuthResponse};
use super::machine::{SignIn, State, Step};
use super::need::Known;
use super::settings::Settings;
use super::token::{authenticate, refusal};
use crate::auth::error::AuthError;
use crate::auth::grant::Terms;
use crate::auth::json;
use crate::auth::pairs::Pairs;
use crate::auth::secret::Secret;
use crate::auth::surroundings::Surroundings;
use crate::auth::text::{PeerError, quote};
use crate::auth::url::HttpUrl;
use crate::seal::Timestamp;
use crate::wire::json::ByName;

/// Pause between two questions where the server names none (RFC 8628, 3.2), and what `slow_down` adds, in seconds.
const PAUSE: u64 = 5;
/// Longest pause that is kept, in seconds.
const LONGEST_PAUSE: u64 = 60;
/// Longest life of a code that is believed, in seconds.
const LONGEST_LIFE: u64 = 3600;

/// A sign-in that waits for a code to be entered elsewhere. It serialises as JSON, and any process can finish it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DevicePending {
    pub(super) terms: Terms,
    pub(super) code: Secret,
    user_code: String,
    verification_uri: HttpUrl,
    verification_uri_complete: Option<HttpUrl>,
    ends_at: u64,
    pause: u64,
}

/// The stored form of [`DevicePending`].
#[derive(Deserialize)]
#[serde(remote = "DevicePending")]
struct Stored {
    terms: Terms,
    code: Secret,
    user_code: String,
    verification_uri: HttpUrl,
    verification_uri_complete: Option<HttpUrl>,
    ends_at: u64,
    pause: u64,
}

// A store is trusted no more than a peer: lists are not taken for structs.
impl<'de> Deserialize<'de> for DevicePending {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(ByName::new(deserializer))
    }
}

impl DevicePending {
    /// Returns the code to show.
    pub fn user_code(&self) -> &str {
        &self.user_code
    }

    /// Returns the URL to show, at which the code is entered.
    pub fn url(&self) -> &HttpUrl {
        &self.verification_uri
    }

    /// Returns the URL that has the code in it, for a QR code.
    pub fn complete_url(&self) -> Option<&HttpUrl> {
        self.verification_uri_complete.as_ref()
    }

    /// Returns the pause before the next question.
    pub fn pause(&self) -> Duration {
        Duration::from_secs(self.pause)
    }

    /// Returns whether the code has ended.
    pub fn is_over(&self, now: Timestamp) -> bool {
        now.as_unix() >= self.ends_at
    }

    /// Takes a refusal, which may mean that the person is not done yet.
    pub(super) fn refused(mut self: Box<Self>, error: PeerError, now: Timestamp) -> Result<Step, AuthError> {
        match error.code.as_str() {
            "authorization_pending" | "slow_down" if self.is_over(now) => Err(AuthError::DeviceCodeExpired),
            "authorization_pending" => Ok(Step::ShowCode(self)),
            "slow_down" => {
                self.pause = self.pause.saturating_add(PAUSE).min(LONGEST_PAUSE);
                Ok(Step::ShowCode(self))
            }
            "expired_token" => Err(AuthError::DeviceCodeExpired),
            _ => Err(refusal(error)),
        }
    }
}

/// Returns the URL at which a code is asked for.
pub(super) fn endpoint(known: &Known) -> Result<HttpUrl, AuthError> {
    let url = known.server.endpoint("device_authorization_endpoint", &known.flow.policy);
    url.map_err(|why| known.refused(why))
}

/// Asks for a code.
pub(super) fn begin(
    settings: Arc<Settings>,
    known: &Known,
    terms: Terms,
    around: &mut dyn Surroundings,
) -> Result<Step, AuthError> {
    let mut form = Pairs::default();
    form.push("resource", &terms.resource);
    if !terms.requested.is_empty() {
        form.push("scope", &terms.requested.to_string());
    }
    let mut headers = http::HeaderMap::new();
    authenticate(&settings, &terms, &mut form, &mut headers, around)?;
    let mut request = AuthRequest::form(endpoint(known)?, form.as_str());
    request.headers.extend(headers);
    Ok(SignIn::send(settings, State::DeviceCode(Box::new(terms)), request))
}

/// Takes the code.
pub(super) fn respond(
    terms: Terms,
    url: &HttpUrl,
    response: &AuthResponse<'_>,
    around: &mut dyn Surroundings,
) -> Result<Step, AuthError> {
    #[derive(Deserialize)]
    struct Answer {
        device_code: Secret,
        user_code: String,
        verification_uri: HttpUrl,
        #[serde(default)]
        verification_uri_complete: Option<HttpUrl>,
        expires_in: u64,
        #[serde(default)]
        interval: Option<u64>,
    }
    if !response.status.is_success() {
        return Err(response.error(url, refusal));
    }
    let answer: Answer = json::document(response.body)
        .map_err(|_| AuthError::TokenResponse("it has no code and URL to show for the device"))?;
    let secure = |url: &HttpUrl| url.is_https() || url.is_loopback() && terms.server.is_loopback();
    if !secure(&answer.verification_uri)
        || answer.verification_uri_complete.as_ref().is_some_and(|url| !secure(url))
    {
        return Err(AuthError::TokenResponse("the URL to enter the code at is not https"));
    }
    Ok(Step::ShowCode(Box::new(DevicePending {
        code: answer.device_code,
        user_code: quote(&answer.user_code),
        verification_uri: answer.verification_uri,
        verification_uri_complete: answer.verification_uri_complete,
        ends_at: around.now().as_unix().saturating_add(answer.expires_in.min(LONGEST_LIFE)),
        pause: answer.interval.unwrap_or(PAUSE).clamp(1, LONGEST_PAUSE),
        terms,
    })))
}
