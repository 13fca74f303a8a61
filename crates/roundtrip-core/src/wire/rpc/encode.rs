//! Encoding of messages.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::{JSONRPC_VERSION, Request};
use crate::wire::{ErrorObject, RequestId};

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Request", 4)?;
        object.serialize_field("jsonrpc", JSONRPC_VERSION)?;
        object.serialize_field("id", &self.id)?;
        object.serialize_field("method", &self.method)?;
        if let Some(params) = self.params {
            object.serialize_field("params", params)?;
        }
        object.end()
    }
}

/// Encodes a request.
///
/// # Errors
/// Fails if the parameters do not serialise.
pub fn encode_request<P: Serialize>(
    id: &RequestId,
    method: &str,
    params: &P,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Out<'a, P> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        method: &'a str,
        params: &'a P,
    }
    serde_json::to_vec(&Out { jsonrpc: JSONRPC_VERSION, id, method, params })
}

/// Encodes a notification.
///
/// # Errors
/// Fails if the parameters do not serialise.
pub fn encode_notification<P: Serialize>(method: &str, params: &P) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(128);
    append_notification(&mut out, method, params).map(|()| out)
}

/// Appends a notification to `out`.
///
/// # Errors
/// Fails if the parameters do not serialise; `out` may then end with a part of the message.
pub fn append_notification<P: Serialize>(
    out: &mut Vec<u8>,
    method: &str,
    params: &P,
) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct Out<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    serde_json::to_writer(out, &Out { jsonrpc: JSONRPC_VERSION, method, params })
}

/// Appends a successful response to `out`.
///
/// # Errors
/// Fails if the result does not serialise; `out` is then as it was.
pub fn encode_result<R: Serialize>(
    out: &mut Vec<u8>,
    id: &RequestId,
    result: &R,
) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct Out<'a, R> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        result: &'a R,
    }
    let start = out.len();
    let written = serde_json::to_writer(&mut *out, &Out { jsonrpc: JSONRPC_VERSION, id, result });
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Appends an error response to `out`. An error object always serialises.
pub fn encode_error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &ErrorObject) {
    #[derive(Serialize)]
    struct Out<'a> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a RequestId>,
        error: &'a ErrorObject,
    }
    let written = serde_json::to_writer(&mut *out, &Out { jsonrpc: JSONRPC_VERSION, id, error });
    debug_assert!(written.is_ok(), "strings, integers and JSON values always serialise");
}
