//! Authorization of a server's callers by access tokens (feature `authorize`).
//!
//! [`Authorize`] makes an HTTP server a resource server of OAuth 2.1: every request presents an access token, which is checked before
//! its body is read. It names the caller ([`Caller::principal`](crate::Caller)), and its scopes say what the caller may
//! use ([`Tool::scopes`](crate::Tool::scopes), [`Caller::need_scopes`](crate::Caller::need_scopes)).

mod builder;
mod challenges;
mod guard;
mod sparse;
pub(crate) mod token;

pub use builder::Authorize;
pub use roundtrip_core::auth::{Algorithm, Claims, ScopeSet, Secret};
pub use token::{Introspection, Verified};

pub(crate) use guard::{Granted, Guard, Refusal, Verdict};
