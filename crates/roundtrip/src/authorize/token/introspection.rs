//! Introspection of opaque tokens (RFC 7662).

use roundtrip_core::auth::Secret;

/// Introspection endpoint of an issuer, and our credentials there (RFC 7662).
///
/// ```
/// use roundtrip::authorize::Introspection;
///
/// let endpoint = Introspection::at("https://login.example/introspect").client("files", "secret");
/// ```
#[derive(Debug, Clone)]
pub struct Introspection {
    pub(crate) url: String,
    pub(crate) issuer: Option<String>,
    pub(crate) client: Option<(String, Secret)>,
}

impl Introspection {
    /// Names an endpoint.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), issuer: None, client: None }
    }

    /// Sets the id and the secret by which this server authenticates itself at the endpoint.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        self.client = Some((id.into(), secret.into()));
        self
    }

    /// Names the issuer whose endpoint it is. It is needed with several issuers, where answers have no `iss`.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }
}
