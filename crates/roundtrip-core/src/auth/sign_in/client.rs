//! The client at an issuer: which registration it uses, and on which terms it gets tokens.

use super::need::Known;
use super::settings::{RegisteredClient, Settings};
use crate::auth::challenge::TokenScheme;
use crate::auth::client_auth::ClientAuthMethod;
use crate::auth::error::AuthError;
use crate::auth::grant::Terms;
use crate::auth::jwt::Signer;
use crate::auth::registration::{Registration, RegistrationSource};
use crate::auth::scope::ScopeSet;
use crate::auth::secret::Secret;
use crate::auth::text::quote;
use crate::auth::url::HttpUrl;
use crate::seal::Timestamp;

/// Returns the registration to use, or `None` if there is none yet: the configured one, a metadata document where the issuer
/// takes those, one that is stored.
pub(super) fn registration(
    settings: &Settings,
    known: &Known,
    now: Timestamp,
) -> Result<Option<Registration>, AuthError> {
    let issuer = &known.server.issuer;
    if let Some(client) = &settings.choices.registered {
        let bound = settings.choices.client_issuer.as_ref();
        let bound = bound.or_else(|| bound_before(known, &client.client_id));
        if let Some(bound) = bound.filter(|bound| *bound != issuer && *bound != &known.target.issuer) {
            return Err(AuthError::WrongIssuer { registered: bound.clone(), offered: quote(issuer) });
        }
        let mut registration = Registration::new(issuer, &client.client_id, RegistrationSource::Configured);
        registration.method = client.method;
        return Ok(Some(registration));
    }
    if let Some(url) = &settings.choices.metadata_url
        && takes_document(known)
        && may_be_known_elsewhere(settings, known)
    {
        return Ok(Some(Registration::new(issuer, url.as_str(), RegistrationSource::MetadataDocument)));
    }
    let redirect_uri = settings.redirect_uri().map(HttpUrl::as_str);
    let usable = |held: &&Registration| {
        held.source == RegistrationSource::Dynamic && held.serves(issuer, redirect_uri, now)
    };
    Ok(known.flow.registrations.iter().find(usable).cloned())
}

/// Returns whether the issuer takes client metadata documents.
pub(super) fn takes_document(known: &Known) -> bool {
    known.server.client_id_metadata_document_supported == Some(true)
}

/// Returns whether the client id may be one that other issuers know. There a hostile issuer could send the browser on to an
/// honest one, whose code would come back here: `iss` shows whose it is, or the author has chosen the issuer (RFC 9700, 4.4).
pub(super) fn may_be_known_elsewhere(settings: &Settings, known: &Known) -> bool {
    let choices = &settings.choices;
    let has_callback = settings.redirect_uri().is_some();
    !has_callback || known.server.promises_iss() || choices.names_issuer() || choices.any_issuer
}

/// Returns the issuer that a configured client was used with before.
fn bound_before<'a>(known: &'a Known, client_id: &str) -> Option<&'a String> {
    let held = known.flow.registrations.iter();
    let mut same =
        held.filter(|held| held.source == RegistrationSource::Configured && held.client_id == client_id);
    same.next().map(|held| &held.issuer)
}

/// Returns the terms on which the client gets tokens.
pub(super) fn terms(
    settings: &Settings,
    known: &Known,
    client: Registration,
    requested: ScopeSet,
) -> Result<Terms, AuthError> {
    let (secret, key) = (secret_of(settings, &client), key_of(settings, &client));
    let method = ClientAuthMethod::choose(&known.server, client.method, secret.is_some(), key.is_some())?;
    if let (ClientAuthMethod::PrivateKeyJwt, Some(key)) = (method, key) {
        check_algorithm(known, key)?;
    }
    let endpoint = known.server.endpoint("token_endpoint", &known.flow.policy);
    Ok(Terms {
        server: known.flow.server().clone(),
        resource: known.target.resource.clone(),
        issuer: known.server.issuer.clone(),
        resource_metadata: known.target.metadata.clone(),
        token_endpoint: endpoint.map_err(|why| known.refused(why))?,
        client,
        method,
        requested,
        dpop: dpop(settings, known)?,
        requires_dpop: requires_dpop(settings, known),
        assumed_endpoints: known.assumed_endpoints,
        sign_in: None,
    })
}

/// Returns whether terms are those of the client in the settings: it shows what it has to no issuer but its own, and binds
/// tokens to a key where it has to.
pub(super) fn is_of(settings: &Settings, terms: &Terms) -> bool {
    let choices = &settings.choices;
    let is_same = |client: &RegisteredClient| client.client_id == terms.client.client_id;
    let configured = terms.client.source == RegistrationSource::Configured;
    let has_key = terms.dpop.is_some() || !choices.require_dpop;
    has_key
        && choices.allows(&terms.issuer)
        && (!configured || choices.registered.as_ref().is_some_and(is_same))
}

/// Refuses terms of another client than that in the settings.
pub(super) fn check_terms(settings: &Settings, terms: &Terms) -> Result<(), AuthError> {
    let other = "the sign-in was begun by another client, at another issuer, or without the key that these settings want: begin it again";
    if is_of(settings, terms) { Ok(()) } else { Err(AuthError::Settings(other)) }
}

/// Returns the client's secret: of its registration, or of the settings where it is configured.
pub(super) fn secret_of<'a>(settings: &'a Settings, client: &'a Registration) -> Option<&'a Secret> {
    match client.source {
        RegistrationSource::Configured => settings.choices.registered.as_ref()?.secret.as_ref(),
        _ => client.secret.as_ref(),
    }
}

/// Returns the key of a client that is configured.
pub(super) fn key_of<'a>(settings: &'a Settings, client: &Registration) -> Option<&'a dyn Signer> {
    match client.source {
        RegistrationSource::Configured => settings.choices.registered.as_ref()?.key.as_deref(),
        _ => None,
    }
}

fn check_algorithm(known: &Known, key: &dyn Signer) -> Result<(), AuthError> {
    let listed = known.server.token_endpoint_auth_signing_alg_values_supported.as_ref();
    match listed.filter(|listed| !listed.iter().any(|name| name == key.algorithm().as_str())) {
        Some(listed) => Err(AuthError::ClientAuthentication {
            listed: format!("private_key_jwt with {}", quote(&listed.join(", "))),
        }),
        None => Ok(()),
    }
}

/// Returns whether tokens have to be bound to a key.
fn requires_dpop(settings: &Settings, known: &Known) -> bool {
    let challenged = known.flow.demand.as_ref().is_some_and(|demand| demand.requires_dpop);
    // An author who has taken the key out of the settings wants no bound tokens any more.
    let bound_before = settings.dpop.is_some() && known.flow.bound_by.as_ref() == Some(&known.server.issuer);
    challenged || known.target.dpop_required || settings.choices.require_dpop || bound_before
}

/// Returns the thumbprint of the key that tokens are bound to, where the server wants or takes that.
pub(super) fn dpop(settings: &Settings, known: &Known) -> Result<Option<String>, AuthError> {
    let challenged = known.flow.demand.as_ref().is_some_and(|demand| demand.scheme == TokenScheme::Dpop);
    let wanted = challenged || requires_dpop(settings, known);
    match &settings.dpop {
        None if wanted => Err(AuthError::DpopKey),
        Some(key) if wanted || known.server.lists_dpop(key.algorithm().as_str()) => {
            Ok(Some(key.public_key().thumbprint()))
        }
        _ => Ok(None),
    }
}
