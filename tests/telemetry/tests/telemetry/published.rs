//! The published list of names: OpenTelemetry's semantic conventions for MCP.
//!
//! Version 1.41 has them in `docs/gen-ai/mcp.md`. The crate that publishes the names for Rust is of version 1.42, which says of
//! the same names that they move to the repository `semantic-conventions-genai`.
#![expect(deprecated, reason = "the names have moved, and have not changed")]

use opentelemetry_semantic_conventions::{SCHEMA_URL, attribute, metric};

/// Attributes that spans and metrics have.
const BOTH: &[&str] = &[
    attribute::ERROR_TYPE,
    attribute::GEN_AI_OPERATION_NAME,
    attribute::GEN_AI_PROMPT_NAME,
    attribute::GEN_AI_TOOL_NAME,
    attribute::JSONRPC_PROTOCOL_VERSION,
    attribute::MCP_METHOD_NAME,
    attribute::MCP_PROTOCOL_VERSION,
    attribute::NETWORK_PROTOCOL_NAME,
    attribute::NETWORK_PROTOCOL_VERSION,
    attribute::NETWORK_TRANSPORT,
    attribute::RPC_RESPONSE_STATUS_CODE,
];

/// Attributes that spans alone have.
const SPANS: &[&str] =
    &[attribute::JSONRPC_REQUEST_ID, attribute::MCP_RESOURCE_URI, attribute::MCP_SESSION_ID];

/// Attributes that clients alone have, in both.
const OF_CLIENT: &[&str] = &[attribute::SERVER_ADDRESS, attribute::SERVER_PORT];

/// Attributes that the spans of servers alone have, and ours, which the manual names.
const OF_SERVER: &[&str] = &[attribute::CLIENT_ADDRESS, "roundtrip.flow.id", "roundtrip.flow.round"];

/// Attributes that the conventions have for the duration of a session.
const OF_SESSION: &[&str] = &[
    attribute::ERROR_TYPE,
    attribute::JSONRPC_PROTOCOL_VERSION,
    attribute::MCP_PROTOCOL_VERSION,
    attribute::NETWORK_PROTOCOL_NAME,
    attribute::NETWORK_PROTOCOL_VERSION,
    attribute::NETWORK_TRANSPORT,
];

/// Boundaries that the conventions give all durations.
pub(crate) const BUCKETS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Returns whether a span of a client, or of a server, may have an attribute.
pub(crate) fn span_has(client: bool, name: &str) -> bool {
    let own = if client { OF_CLIENT } else { OF_SERVER };
    [BOTH, SPANS, own].iter().any(|names| names.contains(&name))
}

/// Returns whether a metric may have an attribute; `None` if there is no such metric.
pub(crate) fn metric_has(metric: &str, name: &str) -> Option<bool> {
    let all: &[&[&str]] = match metric {
        metric::MCP_CLIENT_OPERATION_DURATION => &[BOTH, OF_CLIENT],
        metric::MCP_SERVER_OPERATION_DURATION => &[BOTH],
        metric::MCP_CLIENT_SESSION_DURATION => &[OF_SESSION, OF_CLIENT],
        metric::MCP_SERVER_SESSION_DURATION => &[OF_SESSION],
        _ => return None,
    };
    Some(all.iter().any(|names| names.contains(&name)))
}

#[test]
fn the_list_is_of_the_version_that_the_docs_name() {
    assert_eq!(
        SCHEMA_URL, "https://opentelemetry.io/schemas/1.42.0",
        "compare the list with the new version"
    );
}
