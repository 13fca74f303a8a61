//! Sign-in of clients: OAuth 2.1 (feature `oauth`).
//!
//! [`OAuth`] describes the sign-in, and [`Client::oauth`](crate::Client::oauth) takes it. From then on a call that the server
//! refuses for lack of a token, or of scopes, gets one and goes on: by a stored grant, by its renewal, by a browser. Where there is
//! no browser the call is [`Error::SignIn`](crate::Error::SignIn) with a [`Pending`], which any process finishes by
//! [`Client::sign_in`](crate::Client::sign_in).

mod authorizer;
mod builder;
mod config;
mod exchanges;
mod fetch;
mod flight;
mod listener;
mod person;
mod proof_key;
mod renewing;
mod shared;
mod sign_in;
pub mod store;
mod surroundings;
mod tokens;

pub use builder::OAuth;
pub use config::Idp;
pub use roundtrip_core::auth::{
    Algorithm, Answered, AssertionRequest, AuthBlame, AuthError, CallAttempts, CallbackError,
    ClientAuthMethod, ClientMetadataUrl, DevicePending, Grant, HttpUrl, Pending, PublicKey, Registration,
    RegistrationSource, ScopeSet, Secret, SignError, Signer, Terms, TokenScheme,
};

pub use crate::signature::{KeyError, PrivateKey};

pub(crate) use authorizer::{Authorizer, Verdict};
pub(crate) use fetch::{Fetch, allows};
pub(crate) use sign_in::Wanted;
