//! From the issuer's metadata to the request that gets tokens: registration, then the grant of the settings.

use std::sync::Arc;

use super::client;
use super::device;
use super::http::{AuthRequest, AuthResponse};
use super::identity::{self, AssertionRequest};
use super::machine::{SignIn, State, Step};
use super::need::Known;
use super::pending::Pending;
use super::settings::{GrantType, Settings};
use super::token::{TokenCall, TokenKind};
use crate::auth::error::AuthError;
use crate::auth::registration::{self, ApplicationType, ClientMetadataUrl, Registration};
use crate::auth::surroundings::Surroundings;
use crate::auth::url::HttpUrl;

/// A registration request that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registering {
    kind: ApplicationType,
    again: bool,
}

/// Goes on once the issuer is known.
pub(super) fn proceed(
    settings: &Arc<Settings>,
    known: Box<Known>,
    around: &mut dyn Surroundings,
) -> Result<Step, AuthError> {
    // Before anything is registered: a server is not signed in to that does no PKCE, has no page for a device's code, or wants
    // a key that there is not.
    client::dpop(settings, &known)?;
    if settings.redirect_uri().is_some() {
        known.server.check_pkce().map_err(|why| known.refused(why))?;
    }
    if matches!(settings.grant, GrantType::Device) {
        device::endpoint(&known)?;
    }
    match client::registration(settings, &known, around.now())? {
        Some(client) => with_client(settings, &known, client, around),
        None => {
            let kind = ApplicationType::of(settings.redirect_uri());
            register(Arc::clone(settings), known, Registering { kind, again: false })
        }
    }
}

/// Registers the client, which is one that a person uses.
fn register(settings: Arc<Settings>, known: Box<Known>, registering: Registering) -> Result<Step, AuthError> {
    if known.server.registration_endpoint.is_none() || !settings.by_person() {
        let has_document = settings.choices.metadata_url.is_some() && client::takes_document(&known);
        let issuer = known.server.issuer;
        return Err(if has_document { AuthError::NoIss(issuer) } else { AuthError::NoRegistration(issuer) });
    }
    let url = known.server.endpoint("registration_endpoint", &known.flow.policy);
    let url = url.map_err(|why| known.refused(why))?;
    let (name, redirect_uri) = (&settings.name, settings.redirect_uri());
    let body = registration::request_body(name, redirect_uri, registering.kind, &known.server);
    Ok(SignIn::send(settings, State::Register(known, registering), AuthRequest::json(url, &body)))
}

/// Takes the response to a registration request. A refusal of what the client says of itself is answered once with the other
/// kind of application.
pub(super) fn registered(
    settings: &Arc<Settings>,
    known: Box<Known>,
    registering: Registering,
    (url, response): (&HttpUrl, &AuthResponse<'_>),
    around: &mut dyn Surroundings,
) -> Result<Step, AuthError> {
    if response.status.is_success() {
        let (issuer, redirect_uri) = (&known.server.issuer, settings.redirect_uri());
        let client = registration::read_answer(response.body, issuer, redirect_uri)?;
        let is_document = ClientMetadataUrl::parse(&client.client_id).is_ok();
        if is_document && !client::may_be_known_elsewhere(settings, &known) {
            return Err(AuthError::TokenResponse(
                "the registration has a URL as its `client_id`, which other issuers may know",
            ));
        }
        return with_client(settings, &known, client, around);
    }
    match response.error(url, AuthError::RegistrationRefused) {
        AuthError::RegistrationRefused(error)
            if !registering.again
                && matches!(error.code.as_str(), "invalid_client_metadata" | "invalid_redirect_uri") =>
        {
            register(Arc::clone(settings), known, Registering { kind: registering.kind.other(), again: true })
        }
        error => Err(error),
    }
}

/// Goes on with the grant of the settings, as a client that the issuer knows.
fn with_client(
    settings: &Arc<Settings>,
    known: &Known,
    client: Registration,
    around: &mut dyn Surroundings,
) -> Result<Step, AuthError> {
    let requested = known.scopes(settings, settings.by_person());
    let terms = client::terms(settings, known, client, requested)?;
    match &settings.grant {
        GrantType::Code { redirect_uri } => {
            Ok(Step::Browse(Box::new(Pending::new(known, terms, redirect_uri, around)?)))
        }
        GrantType::Device => device::begin(Arc::clone(settings), known, terms, around),
        GrantType::ClientCredentials => {
            TokenCall::new(terms, TokenKind::ClientCredentials).send(Arc::clone(settings), around)
        }
        GrantType::Workload => Ok(Step::Assert(Box::new(AssertionRequest { terms }))),
        GrantType::Enterprise(provider) => identity::begin(Arc::clone(settings), provider, terms),
    }
}
