//! Names of OpenTelemetry's semantic conventions for MCP.

/// Schema of the release that the names are from.
pub(super) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

pub(super) const METHOD: &str = "mcp.method.name";
pub(super) const PROTOCOL_VERSION: &str = "mcp.protocol.version";
pub(super) const RESOURCE_URI: &str = "mcp.resource.uri";
pub(super) const SESSION_ID: &str = "mcp.session.id";
pub(super) const GEN_AI_OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROMPT: &str = "gen_ai.prompt.name";
pub(super) const TOOL: &str = "gen_ai.tool.name";
pub(super) const REQUEST_ID: &str = "jsonrpc.request.id";
pub(super) const STATUS_CODE: &str = "rpc.response.status_code";
pub(super) const ERROR: &str = "error.type";
pub(super) const CLIENT_ADDRESS: &str = "client.address";
pub(super) const SERVER_ADDRESS: &str = "server.address";
pub(super) const SERVER_PORT: &str = "server.port";
pub(super) const TRANSPORT: &str = "network.transport";
pub(super) const PROTOCOL_NAME: &str = "network.protocol.name";
pub(super) const NETWORK_PROTOCOL_VERSION: &str = "network.protocol.version";

/// Attributes of our own: the conventions have no word for flows and rounds.
pub(super) const FLOW: &str = "roundtrip.flow.id";
pub(super) const ROUND: &str = "roundtrip.flow.round";

#[cfg(feature = "client")]
pub(super) const CLIENT_OPERATION: &str = "mcp.client.operation.duration";
pub(super) const SERVER_OPERATION: &str = "mcp.server.operation.duration";
#[cfg(all(feature = "client", feature = "legacy"))]
pub(super) const CLIENT_SESSION: &str = "mcp.client.session.duration";
#[cfg(feature = "legacy")]
pub(super) const SERVER_SESSION: &str = "mcp.server.session.duration";

/// Boundaries of all four histograms, in seconds.
pub(super) const BUCKETS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
