//! [`Network`]: the connection of a request, in the words of the conventions.

use std::sync::Arc;

use http::Version;
use opentelemetry::KeyValue;
use roundtrip_core::wire::clip;

use super::names;

/// Connection that a request is sent or received on.
///
/// A transport of your own describes its connection: on the client in `Transport::network`, on the server by putting it into
/// [`Peer::extensions`](crate::server::Peer::extensions).
///
/// ```
/// use roundtrip::server::Peer;
/// use roundtrip::telemetry::Network;
///
/// let mut peer = Peer::default();
/// peer.extensions.insert(Network::pipe().session("session-1"));
/// let as_its_client_says = Network::http(None).server("tools.example", Some(443));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Network {
    transport: Option<&'static str>,
    protocol: Option<&'static str>,
    version: Option<&'static str>,
    server: Option<(Arc<str>, Option<u16>)>,
    session: Option<Arc<str>>,
}

impl Network {
    /// Describes standard streams, or another pair of pipes.
    pub fn pipe() -> Self {
        Self { transport: Some("pipe"), ..Self::default() }
    }

    /// Describes HTTP of a version, where it is known.
    pub fn http(version: Option<Version>) -> Self {
        let (transport, version) = match version {
            Some(Version::HTTP_10) => ("tcp", Some("1.0")),
            Some(Version::HTTP_11) => ("tcp", Some("1.1")),
            Some(Version::HTTP_2) => ("tcp", Some("2")),
            Some(Version::HTTP_3) => ("quic", Some("3")),
            _ => ("tcp", None),
        };
        Self { transport: Some(transport), protocol: Some("http"), version, ..Self::default() }
    }

    /// Names the server, as its client knows it.
    #[must_use]
    pub fn server(mut self, address: &str, port: Option<u16>) -> Self {
        self.server = Some((clip(address).into(), port));
        self
    }

    /// Names the session of a handshake era.
    #[must_use]
    pub fn session(mut self, id: &str) -> Self {
        self.session = Some(clip(id).into());
        self
    }

    /// Returns the attributes that metrics may have.
    pub(super) fn attributes(&self) -> impl Iterator<Item = KeyValue> {
        let words = [
            (names::TRANSPORT, self.transport),
            (names::PROTOCOL_NAME, self.protocol),
            (names::NETWORK_PROTOCOL_VERSION, self.version),
        ];
        let words = words.into_iter().filter_map(|(key, word)| Some(KeyValue::new(key, word?)));
        let address =
            self.server.iter().map(|(name, _)| KeyValue::new(names::SERVER_ADDRESS, Arc::clone(name)));
        let port = self.server.iter().filter_map(|(_, port)| *port);
        words.chain(address).chain(port.map(|port| KeyValue::new(names::SERVER_PORT, i64::from(port))))
    }

    /// Returns the session, which is for spans alone.
    pub(super) fn session_attribute(&self) -> Option<KeyValue> {
        self.session.as_ref().map(|id| KeyValue::new(names::SESSION_ID, Arc::clone(id)))
    }
}
