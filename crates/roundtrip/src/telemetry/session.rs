//! Duration of sessions, which the handshake eras alone have.

use std::fmt;
use std::time::Instant;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Histogram;
use roundtrip_core::wire::ProtocolVersion;

use super::network::Network;
use super::{Telemetry, names, shielded};

/// Measures a session from here until it is dropped.
pub(crate) struct SessionTimer {
    duration: Histogram<f64>,
    attributes: Vec<KeyValue>,
    begun: Instant,
}

impl SessionTimer {
    /// Begins to measure a session at the server.
    pub(crate) fn server(telemetry: &Telemetry, version: ProtocolVersion, network: &Network) -> Self {
        Self::new(&telemetry.0.server_session, version, network)
    }

    /// Begins to measure a session at the client.
    #[cfg(feature = "client")]
    pub(crate) fn client(telemetry: &Telemetry, version: ProtocolVersion, network: &Network) -> Self {
        Self::new(&telemetry.0.client.session, version, network)
    }

    fn new(duration: &Histogram<f64>, version: ProtocolVersion, network: &Network) -> Self {
        let version = KeyValue::new(names::PROTOCOL_VERSION, version.as_str());
        let attributes = std::iter::once(version).chain(network.attributes()).collect();
        Self { duration: duration.clone(), attributes, begun: Instant::now() }
    }
}

impl Drop for SessionTimer {
    fn drop(&mut self) {
        shielded(|| self.duration.record(self.begun.elapsed().as_secs_f64(), &self.attributes));
    }
}

impl fmt::Debug for SessionTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTimer")
    }
}
