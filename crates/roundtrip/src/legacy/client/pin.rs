//! One revision and no other.

use roundtrip_core::wire::ProtocolVersion;

use crate::client::Client;

impl Client {
    /// Speaks one revision and no other, instead of finding out which the server speaks. A server that does not speak
    /// it is [`Error::PeerIncompatible`](crate::Error::PeerIncompatible).
    ///
    /// Revisions that have a handshake are for clients made by [`http`](Self::http) and [`stdio`](Self::stdio).
    ///
    /// ```
    /// use roundtrip::Client;
    /// use roundtrip::wire::ProtocolVersion;
    ///
    /// # fn main() -> Result<(), roundtrip::Error> {
    /// let modern = Client::http("https://tools.example/mcp")?.protocol(ProtocolVersion::LATEST);
    /// let old = Client::http("https://old.example/mcp")?.protocol(ProtocolVersion::V2025_11_25);
    /// # Ok(())
    /// # }
    /// ```
    pub fn protocol(self, version: ProtocolVersion) -> Self {
        self.pin(version)
    }
}
