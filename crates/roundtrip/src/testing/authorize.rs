//! Authorization of a server in a test.

use std::sync::Arc;

use super::Issuer;
use crate::authorize::Authorize;

impl Authorize {
    /// Names a resource that accepts the tokens of an issuer in this process, without a socket.
    ///
    /// ```
    /// use roundtrip::Authorize;
    /// use roundtrip::testing::Issuer;
    ///
    /// let resource = "https://tools.example/mcp";
    /// let issuer = Issuer::new("https://login.example", resource)?;
    /// let guard = Authorize::testing(resource, &issuer).scopes(["files:read"]);
    /// let token = issuer.token("alice").scopes(["files:read"]).sign();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn testing(resource: impl Into<String>, issuer: &Issuer) -> Self {
        Self::at(resource).issuer(issuer.name()).fetch(Arc::new(issuer.clone()))
    }
}
