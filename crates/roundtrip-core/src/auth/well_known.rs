//! Well-known URLs of metadata documents, in the order in which they are asked for.

use super::url::HttpUrl;

/// Suffix of protected resource metadata (RFC 9728).
const RESOURCE: &str = "/.well-known/oauth-protected-resource";
/// Suffix of authorization server metadata (RFC 8414).
const OAUTH: &str = "/.well-known/oauth-authorization-server";
/// Suffix of OpenID Provider metadata.
const OPENID: &str = "/.well-known/openid-configuration";

/// Returns the URL of a resource's metadata: the suffix inserted before its path and query (RFC 9728, 3.1).
///
/// ```
/// use roundtrip_core::auth::{HttpUrl, resource_metadata_url};
///
/// let resource = HttpUrl::parse("https://tools.example/mcp").unwrap();
/// let url = "https://tools.example/.well-known/oauth-protected-resource/mcp";
/// assert_eq!(resource_metadata_url(&resource), url);
/// ```
pub fn resource_metadata_url(resource: &HttpUrl) -> String {
    let query = resource.query().map_or_else(String::new, |query| format!("?{query}"));
    // Only a slash that follows the host is dropped: that of `/mcp/` belongs to its name.
    format!(
        "{}{RESOURCE}{}{query}",
        resource.base(),
        Some(resource.path()).filter(|path| *path != "/").unwrap_or("")
    )
}

/// Returns the URLs at which a server's resource metadata may be, where its challenge names none: beside its path, then at the root.
pub fn resource_candidates(server: &HttpUrl) -> Vec<String> {
    let mut urls = vec![resource_metadata_url(server), format!("{}{RESOURCE}", server.base())];
    urls.dedup();
    urls
}

/// Returns the URLs at which an issuer's metadata may be: OAuth and OpenID inserted before its path, then OpenID behind it.
///
/// The root of an issuer with a path belongs to another issuer, and is not asked.
pub fn issuer_candidates(issuer: &HttpUrl) -> Vec<String> {
    let (base, path) = (issuer.base(), issuer.path());
    // RFC 8414, 3.1 and OpenID Connect Discovery, 4: a terminating slash goes.
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut urls = vec![
        format!("{base}{OAUTH}{path}"),
        format!("{base}{OPENID}{path}"),
        format!("{base}{path}{OPENID}"),
    ];
    urls.dedup();
    urls
}
