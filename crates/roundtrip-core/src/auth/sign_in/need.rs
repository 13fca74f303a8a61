//! The need for a token, and what is known of the server so far.

use super::settings::{ScopeChoice, Settings};
use crate::auth::challenge::Demand;
use crate::auth::error::AuthError;
use crate::auth::grant::Terms;
use crate::auth::metadata::ServerMetadata;
use crate::auth::registration::Registration;
use crate::auth::scope::{OFFLINE_ACCESS, ScopeSet};
use crate::auth::url::{HttpUrl, shown_url};
use crate::auth::url_policy::UrlPolicy;

/// Need for a token: a server, and how it refused.
#[derive(Debug, Clone)]
pub struct Need {
    server: String,
    demand: Option<Demand>,
    requested: ScopeSet,
    registrations: Vec<Registration>,
    bound_by: Option<String>,
}

impl Need {
    /// Names the server, by the URL as the author gave it.
    pub fn new(server: impl Into<String>) -> Self {
        let (demand, requested, registrations, bound_by) = Default::default();
        Self { server: server.into(), demand, requested, registrations, bound_by }
    }

    /// Adds the demand of the response that refused the request.
    #[must_use]
    pub fn demand(mut self, demand: Option<Demand>) -> Self {
        self.demand = demand;
        self
    }

    /// Requests these scopes too: those of [`step_up_scopes`](crate::auth::step_up_scopes).
    #[must_use]
    pub fn step_up(mut self, scopes: ScopeSet) -> Self {
        self.requested = scopes;
        self
    }

    /// Adds registrations that are stored, of any issuer.
    #[must_use]
    pub fn registrations(mut self, registrations: Vec<Registration>) -> Self {
        self.registrations = registrations;
        self
    }

    /// Names the issuer that bound the token before to the client's key: it has to bind the next one too.
    #[must_use]
    pub fn bound_by(mut self, issuer: Option<String>) -> Self {
        self.bound_by = issuer;
        self
    }

    /// Checks the server's URL.
    pub(super) fn into_flow(self, settings: &Settings) -> Result<Flow, AuthError> {
        let refuse = |why| AuthError::Server { server: shown_url(&self.server), why };
        let server = HttpUrl::of_server(&self.server).map_err(refuse)?;
        let policy = UrlPolicy::new(server, settings.choices.private_networks).map_err(refuse)?;
        let Self { demand, requested, registrations, bound_by, .. } = self;
        Ok(Flow { policy, demand, requested, registrations, bound_by, checked: None })
    }
}

/// A sign-in before its issuer is known.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) policy: UrlPolicy,
    pub(super) demand: Option<Demand>,
    pub(super) requested: ScopeSet,
    pub(super) registrations: Vec<Registration>,
    /// Issuer that bound the token before to the client's key.
    pub(super) bound_by: Option<String>,
    /// Terms that are compared with what the server publishes now, in place of a sign-in.
    pub(super) checked: Option<Box<Terms>>,
}

impl Flow {
    pub(super) fn server(&self) -> &HttpUrl {
        self.policy.server()
    }
}

/// Resource and issuer of the tokens.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) resource: String,
    pub(super) scopes: ScopeSet,
    pub(super) dpop_required: bool,
    /// Issuer that is asked, byte for byte as published.
    pub(super) issuer: String,
    /// URL of the resource metadata that led to the issuer.
    pub(super) metadata: Option<HttpUrl>,
    /// Tells that no resource metadata led to the issuer: it is assumed at the origin of the server.
    pub(super) assumed: bool,
}

/// A sign-in whose issuer is known.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) flow: Flow,
    pub(super) target: Target,
    pub(super) server: ServerMetadata,
    /// Tells that the endpoints are assumed too.
    pub(super) assumed_endpoints: bool,
}

impl Known {
    /// Returns the scopes to request. The list in the authorization server's metadata is for all its resources, and not asked for.
    pub(super) fn scopes(&self, settings: &Settings, offline: bool) -> ScopeSet {
        let lists_offline = self.server.lists_scope(OFFLINE_ACCESS);
        let demanded = || {
            let demand = self.flow.demand.as_ref().and_then(|demand| demand.scope.clone());
            demand.unwrap_or_else(|| self.target.scopes.clone())
        };
        let (of_server, of_author) = match &settings.choices.scopes {
            ScopeChoice::Demanded => (demanded(), ScopeSet::new()),
            ScopeChoice::And(more) => (demanded(), more.clone()),
            ScopeChoice::Only(these) => (ScopeSet::new(), these.clone()),
        };
        let of_server = of_server.union(&self.flow.requested);
        let of_server = if lists_offline { of_server } else { of_server.without(OFFLINE_ACCESS) };
        let scopes = of_server.union(&of_author);
        // No scope at all means the server's default, which this one scope would replace.
        if offline && lists_offline && !scopes.is_empty() { scopes.with(OFFLINE_ACCESS) } else { scopes }
    }

    /// Names the issuer in an error about its metadata.
    pub(super) fn refused(&self, why: crate::auth::metadata::MetadataError) -> AuthError {
        AuthError::ServerMetadata { issuer: self.server.issuer.clone(), why }
    }
}
