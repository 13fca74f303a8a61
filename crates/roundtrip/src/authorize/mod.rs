//! Authorization of a server's callers by access tokens (feature `authorize`).

pub(crate) mod token;

pub use roundtrip_core::auth::{Algorithm, Secret};
pub use token::{Introspection, Verified};
