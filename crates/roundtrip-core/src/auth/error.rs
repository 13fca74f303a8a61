//! Errors of a sign-in: each says what to do, and who has to do it.

use http::StatusCode;

use super::callback::CallbackError;
use super::json::DocumentError;
use super::jwt::SignError;
use super::metadata::MetadataError;
use super::scope::ScopeSet;
use super::text::PeerError;
use super::url::UrlError;

/// Error of a sign-in, or of the renewal of a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The URL of the server cannot be signed in to.
    #[error("sign-in is not possible at `{server}`: {why}")]
    Server {
        /// URL of the server.
        server: String,
        /// Reason it cannot be used.
        why: UrlError,
    },
    /// The redirect URI is neither `https` nor on this machine, or has a query.
    #[error("the redirect URI `{0}` must be https, or http on this machine, without a query")]
    RedirectUri(String),
    /// The settings lack something that the grant needs.
    #[error("{0}")]
    Settings(&'static str),
    /// No metadata of the resource was found.
    #[error(
        "the server at `{0}` publishes no protected resource metadata: name its issuer in the settings, or ask its operator"
    )]
    NoResourceMetadata(String),
    /// The metadata of the resource cannot be read.
    #[error("the resource metadata at `{url}` cannot be used: {why}")]
    ResourceMetadata {
        /// URL of the document.
        url: String,
        /// Reason it cannot be used.
        why: DocumentError,
    },
    /// The metadata speaks for another resource.
    #[error(
        "the resource metadata is of `{resource}`, and `{server}` was called: call that one, or ask the operator to mend it"
    )]
    ResourceMismatch {
        /// Resource that the metadata names.
        resource: String,
        /// URL of the server.
        server: String,
    },
    /// The metadata of the resource names no authorization server.
    #[error(
        "the resource metadata names no authorization server: name its issuer in the settings, or ask its operator"
    )]
    NoAuthorizationServer,
    /// The issuer is not a URL that is used.
    #[error("the issuer `{issuer}` is not used: {why}")]
    Issuer {
        /// The issuer.
        issuer: String,
        /// Reason it is not used.
        why: UrlError,
    },
    /// The client is registered with another issuer.
    #[error(
        "the client is registered with `{registered}`, and the server now wants `{offered}`: register there, or ask the operator why it changed"
    )]
    WrongIssuer {
        /// Issuer that the client is registered with.
        registered: String,
        /// Issuers that the server names.
        offered: String,
    },
    /// No metadata of the issuer was found.
    #[error("the issuer `{0}` publishes no metadata where it should: ask its operator")]
    NoServerMetadata(String),
    /// The metadata of the issuer cannot be used.
    #[error("the metadata of the issuer `{issuer}` cannot be used: {why}")]
    ServerMetadata {
        /// The issuer.
        issuer: String,
        /// Reason it cannot be used.
        why: MetadataError,
    },
    /// A server is there and cannot answer now: nothing was lost, try again later.
    #[error("`{url}` answered HTTP {status}: try again later")]
    Unavailable {
        /// URL that was called.
        url: String,
        /// Status of the response.
        status: StatusCode,
    },
    /// A server could not be reached: nothing was lost, try again later.
    #[error("`{url}` could not be reached: {why}")]
    Unreachable {
        /// URL that was called.
        url: String,
        /// Reason, as the transport gave it.
        why: String,
    },
    /// A response that is neither an answer nor an error of the protocol.
    #[error("`{url}` answered HTTP {status} with {what}")]
    Unexpected {
        /// URL that was called.
        url: String,
        /// Status of the response.
        status: StatusCode,
        /// Description of the response.
        what: &'static str,
    },
    /// There is no way to be a client of this issuer.
    #[error(
        "the issuer `{0}` registers no clients by itself: register with it and configure the client id, or host client metadata if it takes that"
    )]
    NoRegistration(String),
    /// The issuer takes client metadata, registers no clients, and does not promise to name itself in callbacks.
    #[error(
        "the issuer `{0}` does not promise `iss` in its callbacks, so that a code of another issuer could be sent to it: name it in the settings if it is the right one"
    )]
    NoIss(String),
    /// The registration was refused.
    #[error("the authorization server did not register the client: {0}")]
    RegistrationRefused(PeerError),
    /// The client cannot authenticate itself in a way that the server lists.
    #[error(
        "the authorization server takes {listed} at its token endpoint: configure the secret or key that this needs"
    )]
    ClientAuthentication {
        /// Methods that the server lists.
        listed: String,
    },
    /// The server wants tokens bound to a key, and there is none.
    #[error(
        "the server wants DPoP: configure a key for it, and the same one when a sign-in is finished or a token renewed"
    )]
    DpopKey,
    /// The callback gives no code.
    #[error("{0}")]
    Callback(#[from] CallbackError),
    /// The token request was refused.
    #[error("the authorization server gave no token: {0}")]
    TokenRefused(PeerError),
    /// The refresh token, code or assertion is not good any more: drop the one that was sent, and sign in again.
    #[error("the grant is over, sign in again: {0}")]
    GrantOver(PeerError),
    /// The token response cannot be used.
    #[error("the token response cannot be used: {0}")]
    TokenResponse(&'static str),
    /// The identity assertion is not the one that was asked for.
    #[error(
        "the identity assertion is not for this server: its `{0}` differs; check the settings at the identity provider"
    )]
    IdentityAssertion(&'static str),
    /// A step-up would ask for nothing new, or too often.
    #[error("the server still refuses after these scopes were requested: {0}; the account may lack them")]
    ScopesRefused(ScopeSet),
    /// The code of the device was not entered in time.
    #[error("the code was not entered in time: sign in again")]
    DeviceCodeExpired,
    /// No callback came from the browser in time.
    #[error("no callback came from the browser in time: call again to sign in")]
    NoCallback,
    /// A key did not sign.
    #[error("{0}")]
    Sign(#[from] SignError),
    /// The store of tokens cannot be used: its files, or its directory, have to be mended.
    #[error("the store of tokens cannot be used: {0}")]
    Store(String),
    /// The store of tokens cannot be used now, and may be later.
    #[error("the store of tokens cannot be used now: {0}")]
    StoreUnavailable(String),
    /// New tokens could not be stored. They are used as long as the process lives, and storing them is tried again.
    #[error("new tokens could not be stored, and are lost when the process ends: {0}")]
    NotStored(String),
    /// The renewal of a token was cut short: its runtime was shut down, or a store of the author's panicked.
    #[error("the renewal of the token was cut short: try again")]
    Interrupted,
}

/// Party that has to act on an [`AuthError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthBlame {
    /// A person has to sign in again.
    SignIn,
    /// The authorization server, or the person at it, refused.
    Refused,
    /// A server published or sent something that breaks the rules.
    Peer,
    /// The settings of the client.
    Settings,
    /// Nothing but time: a server is not there now.
    Unreachable,
}

impl AuthError {
    /// Returns who has to act.
    pub fn blame(&self) -> AuthBlame {
        match self {
            Self::GrantOver(_) | Self::DeviceCodeExpired | Self::NoCallback => AuthBlame::SignIn,
            Self::Callback(CallbackError::Refused(_))
            | Self::RegistrationRefused(_)
            | Self::TokenRefused(_)
            | Self::ScopesRefused(_) => AuthBlame::Refused,
            Self::Callback(CallbackError::Issuer(_)) => AuthBlame::Peer,
            Self::Callback(_) => AuthBlame::SignIn,
            Self::Unavailable { .. }
            | Self::Unreachable { .. }
            | Self::StoreUnavailable(_)
            | Self::Interrupted => AuthBlame::Unreachable,
            Self::Server { .. }
            | Self::RedirectUri(_)
            | Self::Settings(_)
            | Self::WrongIssuer { .. }
            | Self::NoRegistration(_)
            | Self::NoIss(_)
            | Self::ClientAuthentication { .. }
            | Self::DpopKey
            | Self::Store(_)
            | Self::NotStored(_)
            | Self::Sign(_) => AuthBlame::Settings,
            Self::NoResourceMetadata(_)
            | Self::ResourceMetadata { .. }
            | Self::ResourceMismatch { .. }
            | Self::NoAuthorizationServer
            | Self::Issuer { .. }
            | Self::NoServerMetadata(_)
            | Self::ServerMetadata { .. }
            | Self::Unexpected { .. }
            | Self::TokenResponse(_)
            | Self::IdentityAssertion(_) => AuthBlame::Peer,
        }
    }
}
