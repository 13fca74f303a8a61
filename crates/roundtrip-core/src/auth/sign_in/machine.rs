//! The state machine: a request, and the step that its response leads to.

use std::sync::Arc;

use super::authorize::{self, Registering};
use super::client;
use super::device::{self, DevicePending};
use super::discovery;
use super::http::{AuthRequest, AuthResponse};
use super::identity::{self, AssertionRequest};
use super::need::{Flow, Known, Need, Target};
use super::pending::{Answered, Pending};
use super::search::Search;
use super::settings::Settings;
use super::token::{TokenCall, TokenKind};
use crate::auth::error::AuthError;
use crate::auth::grant::{Grant, Terms};
use crate::auth::secret::Secret;
use crate::auth::surroundings::Surroundings;
use crate::auth::url::HttpUrl;

/// A sign-in, or the renewal of a token, with a request to send.
#[derive(Debug)]
#[must_use = "a sign-in does nothing until its request is sent"]
pub struct SignIn {
    settings: Arc<Settings>,
    request: AuthRequest,
    state: State,
}

/// Next step of a sign-in.
#[derive(Debug)]
#[must_use = "the sign-in goes on only when the step is taken"]
pub enum Step {
    /// Send the request and pass the response to [`SignIn::respond`].
    Send(Box<SignIn>),
    /// Open the URL in a browser, and wait for the callback. Store the registration now: the person may never come back.
    Browse(Box<Pending>),
    /// Show the code, wait, and go on with [`SignIn::poll`].
    ShowCode(Box<DevicePending>),
    /// Ask the platform for a token, and continue with [`SignIn::assert`].
    Assert(Box<AssertionRequest>),
    /// Tokens. Store them before they are used.
    Done(Box<Grant>),
    /// End of [`SignIn::check`].
    Checked {
        /// Tells that the terms are not those of the server any more: sign in again.
        moved: bool,
    },
}

/// State of a sign-in while its request is under way.
#[derive(Debug)]
pub(super) enum State {
    Resource(Box<Flow>, Search),
    Server(Box<Flow>, Target, Search),
    Register(Box<Known>, Registering),
    Identity(Box<Terms>),
    DeviceCode(Box<Terms>),
    Token(Box<TokenCall>),
}

impl SignIn {
    /// Begins a sign-in after a request was refused.
    ///
    /// # Errors
    /// Fails if the server's URL, or the settings, do not allow one.
    pub fn begin(settings: Arc<Settings>, need: Need) -> Result<Step, AuthError> {
        settings.check()?;
        let flow = need.into_flow(&settings)?;
        discovery::begin(settings, flow)
    }

    /// Goes on with a sign-in whose person has come back, in any process.
    ///
    /// # Errors
    /// Fails if the settings are of another client than the one that began it, or name another issuer for it.
    pub fn resume(
        settings: Arc<Settings>,
        answered: Answered,
        around: &mut dyn Surroundings,
    ) -> Result<Step, AuthError> {
        client::check_terms(&settings, &answered.terms)?;
        TokenCall::of_code(answered).send(settings, around)
    }

    /// Asks whether the person has entered the code of a device.
    ///
    /// # Errors
    /// Fails if the code has ended, and if the settings are of another client, or name another issuer for it.
    pub fn poll(
        settings: Arc<Settings>,
        device: DevicePending,
        around: &mut dyn Surroundings,
    ) -> Result<Step, AuthError> {
        if device.is_over(around.now()) {
            return Err(AuthError::DeviceCodeExpired);
        }
        let terms = device.terms.clone();
        client::check_terms(&settings, &terms)?;
        TokenCall::new(terms, TokenKind::Device(Box::new(device))).send(settings, around)
    }

    /// Continues with an assertion of the platform, which is sent to the issuer of the request.
    ///
    /// # Errors
    /// Fails if the settings are of another client, or name another issuer for it.
    pub fn assert(
        settings: Arc<Settings>,
        request: AssertionRequest,
        assertion: Secret,
        around: &mut dyn Surroundings,
    ) -> Result<Step, AuthError> {
        client::check_terms(&settings, &request.terms)?;
        TokenCall::new(request.terms, TokenKind::Assertion(assertion)).send(settings, around)
    }

    /// Renews a grant by its refresh token, or once more as the client itself. `None` means that there is no way to, and that a
    /// sign-in is needed: it has no refresh token; or the settings are of another client than the one that has it, or name
    /// another issuer for it, which their secret is for.
    ///
    /// # Errors
    /// Fails if a key that the grant needs is not there.
    pub fn refresh(
        settings: Arc<Settings>,
        grant: &Grant,
        around: &mut dyn Surroundings,
    ) -> Result<Option<Step>, AuthError> {
        let Some(call) = TokenCall::of_refresh(grant, &settings) else {
            return Ok(None);
        };
        call.send(settings, around).map(Some)
    }

    /// Reads the server's metadata again after a grant could not be renewed: the server may have moved to another issuer, or its
    /// issuer to another token endpoint. It ends with [`Step::Checked`].
    ///
    /// # Errors
    /// Fails if the server's URL, or the settings, do not allow a sign-in.
    pub fn check(settings: Arc<Settings>, need: Need, terms: Terms) -> Result<Step, AuthError> {
        let flow = Flow { checked: Some(Box::new(terms)), ..need.into_flow(&settings)? };
        discovery::begin(settings, flow)
    }

    /// Returns the request to send.
    pub fn request(&self) -> &AuthRequest {
        &self.request
    }

    /// Takes the response.
    ///
    /// # Errors
    /// Fails if the sign-in cannot go on; the error says what to do.
    pub fn respond(
        self,
        response: &AuthResponse<'_>,
        around: &mut dyn Surroundings,
    ) -> Result<Step, AuthError> {
        let Self { settings, request, state } = self;
        let url = &request.url;
        match state {
            State::Resource(flow, search) => discovery::resource(settings, (flow, search), url, response),
            State::Server(flow, target, search) => {
                match discovery::server(&settings, (flow, target, search), url, response)? {
                    discovery::Found::Ask(state, url) => Ok(Self::get(settings, *state, url)),
                    discovery::Found::Server(known) => match &known.flow.checked {
                        Some(terms) => Ok(Step::Checked { moved: discovery::has_moved(&known, terms)? }),
                        None => authorize::proceed(&settings, known, around),
                    },
                }
            }
            State::Register(known, registering) => {
                authorize::registered(&settings, known, registering, (url, response), around)
            }
            State::Identity(terms) => identity::respond(settings, *terms, (url, response), around),
            State::DeviceCode(terms) => device::respond(*terms, url, response, around),
            State::Token(call) => call.respond(settings, url, response, around),
        }
    }

    pub(super) fn get(settings: Arc<Settings>, state: State, url: HttpUrl) -> Step {
        Self::send(settings, state, AuthRequest::get(url))
    }

    pub(super) fn send(settings: Arc<Settings>, state: State, request: AuthRequest) -> Step {
        Step::Send(Box::new(Self { settings, request, state }))
    }
}
