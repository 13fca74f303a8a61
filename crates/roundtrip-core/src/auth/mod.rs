//! Authorization without I/O: OAuth 2.1 for servers that check tokens and for clients that sign in.
//!
//! Issuers and resources are exact strings: they are compared, sent and stored byte for byte as they were published, and no URL
//! type prints them. Every document, header and URL of a peer is read in bounded work. Signatures are made and
//! checked elsewhere ([`Signer`], [`Jwt`]); clock and randomness are passed in ([`Surroundings`]).
//!
//! | for | content |
//! |---|---|
//! | both | [`Challenge`], [`ScopeSet`], [`ServerMetadata`], [`ProtectedResource`], well-known URLs, [`HttpUrl`] |
//! | servers | [`Credentials`] of a request, [`ClaimRules`] for a token, [`KeySet`], the principal ([`principal_of`]), [`ImpliedScopes`] |
//! | clients | [`SignIn`], the state machine; [`Pending`], which waits for a person; [`Grant`]; step-up ([`step_up_scopes`]); proofs of possession ([`Proof`]) |

mod callback;
mod challenge;
mod claims;
mod client_auth;
mod credentials;
mod dpop;
mod error;
mod grant;
mod introspection;
mod issuer;
mod json;
mod jwk;
mod jwt;
mod metadata;
mod pairs;
mod pkce;
mod principal;
mod registration;
mod resource;
mod scope;
mod secret;
mod sign_in;
mod step_up;
mod surroundings;
mod text;
mod token_response;
mod url;
mod url_policy;
mod well_known;

pub use callback::{CallbackError, Expected, read_callback};
pub use challenge::{Challenge, ChallengeCode, ChallengeError, Demand, TokenScheme};
pub use claims::{ClaimRules, Claims, MAX_LEEWAY, TokenRefusal};
pub use client_auth::ClientAuthMethod;
pub use credentials::{Credentials, MalformedCredentials};
pub use dpop::{DPOP, DPOP_NONCE, Nonces, Proof, nonce_of};
pub use error::{AuthBlame, AuthError};
pub use grant::{Grant, Terms};
pub use introspection::{introspection_request, read_introspection};
pub use issuer::{IssError, check_iss};
pub use json::{DocumentError, LONGEST_DOCUMENT};
pub use jwk::{KeySet, PublicKey};
pub use jwt::{Algorithm, Jwt, JwtHeader, LONGEST_TOKEN, SignError, Signer, sign_jwt};
pub use metadata::{MetadataError, ProtectedResource, ServerMetadata};
pub use pkce::{Verifier, challenge_of};
pub use principal::principal_of;
pub use registration::{ClientMetadataUrl, Registration, RegistrationSource};
pub use resource::{ResourceIdentifier, ResourceSetupError, check_issuer, check_scopes, covers_server};
pub use scope::{ImpliedScopes, OFFLINE_ACCESS, ScopeError, ScopeSet};
pub use secret::Secret;
pub use sign_in::{
    Answered, AssertionRequest, AuthRequest, AuthResponse, Choices, DevicePending, IdentityProvider, Need,
    Pending, RegisteredClient, ScopeChoice, Settings, SignIn, Step, TrustedIssuer,
};
pub use step_up::{CallAttempts, ResourceAttempts, step_up_scopes};
pub use surroundings::Surroundings;
pub use text::PeerError;
pub use url::{HttpUrl, UrlError, shown_url};
pub use url_policy::{UrlPolicy, is_public_address};
pub use well_known::{issuer_candidates, resource_candidates, resource_metadata_url};
