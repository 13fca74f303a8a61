//! JSON-RPC error objects, and the codes the specification assigns (basic, "Error Codes").

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ClientCapabilities, ProtocolVersion, clip, clip_to};

/// The longest URI that an error carries whole, in characters.
const LONGEST_URI: usize = 8 * 1024;

/// The bytes are not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a request or notification.
pub const INVALID_REQUEST: i64 = -32600;
/// The server does not have this method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method, or name something unknown.
pub const INVALID_PARAMS: i64 = -32602;
/// The server failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// HTTP headers and body disagree, or a required header is missing.
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that it did not declare.
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The server does not speak the request's revision.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// A JSON-RPC error object.
///
/// Each code of the specification has a constructor:
///
/// ```
/// use roundtrip_core::wire::{ClientCapabilities, ErrorObject, ProtocolVersion, RootsCapability};
/// use serde_json::json;
///
/// let declared = ClientCapabilities::default();
/// let required = ClientCapabilities { roots: Some(RootsCapability::default()), ..Default::default() };
/// for (error, code) in [
///     (ErrorObject::parse_error("not JSON"), -32700),
///     (ErrorObject::invalid_request("not a request"), -32600),
///     (ErrorObject::method_not_found("tools/guess"), -32601),
///     (ErrorObject::invalid_params("`city` is not known").with_data(json!({ "known": ["Rome"] })), -32602),
///     (ErrorObject::resource_not_found("app://lost"), -32602),
///     (ErrorObject::internal("the database does not answer"), -32603),
///     (ErrorObject::header_mismatch("`Mcp-Name` is not the tool's name"), -32020),
///     (ErrorObject::missing_capability("this call", &declared, &required), -32021),
///     (ErrorObject::unsupported_version("2030-01-01", &[ProtocolVersion::LATEST]), -32022),
///     (ErrorObject::new(17, "a code of your own"), 17),
/// ] {
///     assert_eq!(error.code, code);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ErrorObject {
    /// The error code.
    pub code: i64,
    /// A sentence for people.
    pub message: Cow<'static, str>,
    /// Details for programs. Boxed, because few errors have any and results are moved around with room for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Value>>,
}

impl ErrorObject {
    /// Creates an error with any code. Your own codes belong outside -32768..=-32000, which JSON-RPC reserves: on revision
    /// 2026-07-28 a server sends -32603 instead of a code that [is forbidden](Self::is_forbidden).
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Returns whether revision 2026-07-28 forbids to send the code: it is of the specification's range and not assigned, or
    /// belonged to an earlier revision (basic, "Error Codes").
    ///
    /// ```
    /// use roundtrip_core::wire::ErrorObject;
    ///
    /// let is_forbidden = |code| ErrorObject::new(code, "no").is_forbidden();
    /// assert!(is_forbidden(-32050) && is_forbidden(-32099) && is_forbidden(-32002) && is_forbidden(-32042));
    /// assert!(!is_forbidden(-32022) && !is_forbidden(-32019) && !is_forbidden(-32603) && !is_forbidden(7));
    /// ```
    pub fn is_forbidden(&self) -> bool {
        const ASSIGNED: [i64; 3] =
            [HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION];
        let reserved = (-32099..=-32020).contains(&self.code) && !ASSIGNED.contains(&self.code);
        reserved || self.code == -32002
    }

    /// Adds details for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// Creates a parse error (-32700).
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(PARSE_ERROR, message)
    }

    /// Creates an invalid request error (-32600).
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// Creates a method not found error (-32601) that names the method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("method not found: {}", clip(method)))
    }

    /// Creates an invalid params error (-32602).
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// Creates a resource not found error: -32602 with the URI in `data.uri` (resources, "Error Handling").
    pub fn resource_not_found(uri: &str) -> Self {
        Self::invalid_params(format!("resource not found: {}", clip(uri)))
            .with_data(json!({ "uri": clip_to(uri, LONGEST_URI) }))
    }

    /// Creates an internal error (-32603).
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// Creates a header mismatch error (-32020).
    pub fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(HEADER_MISMATCH, message)
    }

    /// Creates a missing capability error (-32021). It names the part of `required` that is not `declared`, and the
    /// subject that needs it, such as "this call".
    pub fn missing_capability(
        subject: impl fmt::Display,
        declared: &ClientCapabilities,
        required: &ClientCapabilities,
    ) -> Self {
        let missing = declared.missing(required).join("`, `");
        Self::new(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            format!("{subject} needs `{missing}`, which the client did not declare"),
        )
        .with_data(json!({ "requiredCapabilities": required }))
    }

    /// Creates an unsupported version error (-32022) with the supported versions and the requested one.
    pub fn unsupported_version(requested: &str, supported: &[ProtocolVersion]) -> Self {
        let supported: Vec<&str> = supported.iter().map(|version| version.as_str()).collect();
        Self::new(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version")
            .with_data(json!({ "supported": supported, "requested": clip(requested) }))
    }
}
