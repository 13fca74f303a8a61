//! Metadata documents: of a protected resource (RFC 9728), and of an authorization server (RFC 8414, OpenID Connect
//! Discovery), which share their members.

mod protected_resource;
mod server;

pub use protected_resource::ProtectedResource;
pub use server::{MetadataError, ServerMetadata};
