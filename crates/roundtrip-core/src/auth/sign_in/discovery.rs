//! Discovery: from the server to its resource metadata, and from there to the metadata of its issuer.

use std::sync::Arc;

use super::http::AuthResponse;
use super::machine::{SignIn, State, Step};
use super::need::{Flow, Known, Target};
use super::search::{Look, Search};
use super::settings::Settings;
use crate::auth::error::AuthError;
use crate::auth::grant::Terms;
use crate::auth::json::DocumentError;
use crate::auth::metadata::{MetadataError, ProtectedResource, ServerMetadata};
use crate::auth::resource::speaks_for;
use crate::auth::scope::ScopeSet;
use crate::auth::text::quote;
use crate::auth::url::{HttpUrl, UrlError};
use crate::auth::well_known::{issuer_candidates, resource_candidates};

/// Outcome of the search for an issuer's metadata.
pub(super) enum Found {
    /// Ask this URL next.
    Ask(Box<State>, HttpUrl),
    /// The issuer is known.
    Server(Box<Known>),
}

/// Begins with the resource metadata: at the URL of the challenge, at the one that terms to check were found by, then at the
/// well-known ones.
pub(super) fn begin(settings: Arc<Settings>, flow: Flow) -> Result<Step, AuthError> {
    if let Some(issuer) = &settings.choices.issuer {
        let target = of_server_alone(&flow, issuer.clone(), false);
        return ask_issuer(settings, Box::new(flow), target);
    }
    let named = flow.demand.as_ref().and_then(|demand| demand.resource_metadata.as_deref());
    let named = named.and_then(|url| flow.server().resolve(url).ok()).map(String::from);
    let before = flow.checked.as_ref().and_then(|terms| terms.resource_metadata.clone()).map(String::from);
    let urls = named.into_iter().chain(before).chain(resource_candidates(flow.server()));
    let mut search = Search::new(urls, &flow.policy);
    match search.next() {
        Some(url) => Ok(SignIn::get(settings, State::Resource(Box::new(flow), search), url)),
        None => without_resource(settings, Box::new(flow), search),
    }
}

/// Takes a response that may be resource metadata.
pub(super) fn resource(
    settings: Arc<Settings>,
    (flow, mut search): (Box<Flow>, Search),
    url: &HttpUrl,
    response: &AuthResponse<'_>,
) -> Result<Step, AuthError> {
    let look = match search.look(url, response) {
        Look::Document => match ProtectedResource::parse(response.body) {
            Ok(document) => return found_resource(settings, flow, url, document),
            // A page for people, where there is no document.
            Err(DocumentError::NotJson) => search.skip(),
            Err(why) => {
                search.failed(AuthError::ResourceMetadata { url: url.without_query().to_owned(), why })
            }
        },
        look => look,
    };
    match look {
        Look::Next(url) => Ok(SignIn::get(settings, State::Resource(flow, search), url)),
        _ => without_resource(settings, flow, search),
    }
}

fn found_resource(
    settings: Arc<Settings>,
    flow: Box<Flow>,
    url: &HttpUrl,
    document: ProtectedResource,
) -> Result<Step, AuthError> {
    if !speaks_for(&document.resource, url, flow.server()) {
        let server = flow.server().without_query().to_owned();
        return Err(AuthError::ResourceMismatch { resource: quote(&document.resource), server });
    }
    let target = Target {
        issuer: choose_issuer(&settings, &flow, &document.authorization_servers)?,
        scopes: document.scopes(),
        dpop_required: document.dpop_bound_access_tokens_required == Some(true),
        resource: document.resource,
        metadata: Some(url.clone()),
        assumed: false,
    };
    ask_issuer(settings, flow, target)
}

/// Chooses an issuer: the one that the client is registered with, then in the order given. Terms that are checked come first.
fn choose_issuer(settings: &Settings, flow: &Flow, offered: &[String]) -> Result<String, AuthError> {
    let first = offered.first().ok_or(AuthError::NoAuthorizationServer)?;
    if let Some(registered) = &settings.choices.client_issuer {
        return if offered.contains(registered) {
            Ok(registered.clone())
        } else {
            Err(AuthError::WrongIssuer {
                registered: registered.clone(),
                offered: quote(&offered.join(", ")),
            })
        };
    }
    let checked = |issuer: &&String| flow.checked.as_ref().is_some_and(|terms| terms.issuer == **issuer);
    let held = |issuer: &&String| flow.registrations.iter().any(|held| held.issuer == **issuer);
    Ok(offered.iter().find(checked).or_else(|| offered.iter().find(held)).unwrap_or(first).clone())
}

/// Goes on without resource metadata, where the settings allow that and there is none: a server that is down may have some.
fn without_resource(settings: Arc<Settings>, flow: Box<Flow>, search: Search) -> Result<Step, AuthError> {
    if let Some(failure) = search.failure() {
        return Err(failure);
    }
    if !settings.choices.legacy_endpoints {
        return Err(AuthError::NoResourceMetadata(flow.server().without_query().to_owned()));
    }
    let target = of_server_alone(&flow, flow.server().base().to_owned(), true);
    ask_issuer(settings, flow, target)
}

/// Returns the target of a server without resource metadata: its URL is the resource, as it was given. Its query, which may be
/// a key, is not for the issuer.
fn of_server_alone(flow: &Flow, issuer: String, assumed: bool) -> Target {
    let resource = flow.server().without_query().to_owned();
    Target { resource, scopes: ScopeSet::new(), dpop_required: false, issuer, metadata: None, assumed }
}

fn ask_issuer(settings: Arc<Settings>, flow: Box<Flow>, target: Target) -> Result<Step, AuthError> {
    if let Some(chosen) =
        settings.choices.client_issuer.as_ref().filter(|chosen| !is_chosen(&settings, &target, chosen))
    {
        // Before it is asked anything: it must not get a registration, or the browser.
        return Err(AuthError::WrongIssuer { registered: chosen.clone(), offered: quote(&target.issuer) });
    }
    if flow.checked.as_ref().is_some_and(|terms| is_elsewhere(&settings, &target, terms)) {
        return Ok(Step::Checked { moved: true });
    }
    let refuse = |why| AuthError::Issuer { issuer: quote(&target.issuer), why };
    let issuer = flow.policy.read(&target.issuer).map_err(refuse)?;
    if issuer.query().is_some() {
        return Err(refuse(UrlError::Query));
    }
    let mut search = Search::new(issuer_candidates(&issuer), &flow.policy);
    match search.next() {
        Some(url) => Ok(SignIn::get(settings, State::Server(flow, target, search), url)),
        None => Err(AuthError::NoServerMetadata(target.issuer)),
    }
}

/// Returns whether the issuer of a target is the one that the author has chosen, by its own name or by the one of its metadata.
fn is_chosen(settings: &Settings, target: &Target, chosen: &str) -> bool {
    target.issuer == chosen
        || settings.choices.trusts(&target.issuer, chosen)
        // No string led to an issuer that is assumed: a slash is no difference there.
        || target.assumed && chosen.strip_suffix('/') == Some(&target.issuer)
}

/// Returns whether terms are for another resource or issuer than the server's.
fn is_elsewhere(settings: &Settings, target: &Target, terms: &Terms) -> bool {
    // The other name of an issuer comes with its metadata.
    let trusted = settings.choices.trusts(&target.issuer, &terms.issuer);
    target.resource != terms.resource || target.issuer != terms.issuer && !trusted
}

/// Returns whether terms are those of another issuer, or of another token endpoint.
pub(super) fn has_moved(known: &Known, terms: &Terms) -> Result<bool, AuthError> {
    let endpoint = known.server.endpoint("token_endpoint", &known.flow.policy);
    let endpoint = endpoint.map_err(|why| known.refused(why))?;
    Ok(known.server.issuer != terms.issuer || endpoint != terms.token_endpoint)
}

/// Takes a response that may be an issuer's metadata.
pub(super) fn server(
    settings: &Settings,
    (flow, target, mut search): (Box<Flow>, Target, Search),
    url: &HttpUrl,
    response: &AuthResponse<'_>,
) -> Result<Found, AuthError> {
    let look = match search.look(url, response) {
        Look::Document => match read_server(settings, &target, response.body) {
            Ok(server) => return Ok(known(*flow, target, server, false)),
            Err(MetadataError::Document(DocumentError::NotJson)) => search.skip(),
            // A document of another issuer is not used; the right one may be at the next URL.
            Err(why) => search.failed(AuthError::ServerMetadata { issuer: target.issuer.clone(), why }),
        },
        look => look,
    };
    match look {
        Look::Next(url) => Ok(Found::Ask(Box::new(State::Server(flow, target, search)), url)),
        _ => without_server(*flow, target, search),
    }
}

/// Reads metadata of the issuer that was asked, by its own name or by the one that the settings trust it with.
fn read_server(settings: &Settings, target: &Target, body: &[u8]) -> Result<ServerMetadata, MetadataError> {
    match ServerMetadata::parse(body, &target.issuer) {
        Err(MetadataError::Issuer { found, .. })
            if settings.choices.trusts(&target.issuer, &found)
                // No string led to an issuer that is assumed: a slash is no difference there.
                || target.assumed && found.strip_suffix('/') == Some(&target.issuer) =>
        {
            ServerMetadata::parse(body, &found)
        }
        read => read,
    }
}

fn known(flow: Flow, target: Target, server: ServerMetadata, assumed_endpoints: bool) -> Found {
    Found::Server(Box::new(Known { flow, target, server, assumed_endpoints }))
}

/// Assumes endpoints at the origin of a server that has no metadata at all.
fn without_server(flow: Flow, target: Target, search: Search) -> Result<Found, AuthError> {
    if let Some(failure) = search.failure() {
        return Err(failure);
    }
    if !target.assumed {
        return Err(AuthError::NoServerMetadata(target.issuer));
    }
    let server = ServerMetadata::assumed(&target.issuer);
    Ok(known(flow, target, server, true))
}
