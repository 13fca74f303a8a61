//! JSON-RPC messages: a borrowed parse on the way in, hand-laid bytes on the way out.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Revision this server speaks.
pub(crate) const REVISION: &str = "2026-07-28";

/// A request or notification, borrowed from the bytes it came in.
///
/// The parameters are those of the two methods served here, so that one pass reads everything whatever the
/// order of the keys.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: Text<'a>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Text<'a>,
    #[serde(borrow)]
    pub(crate) params: Option<Params<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Params<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestState")]
    pub(crate) request_state: Option<Text<'a>>,
    #[serde(borrow, rename = "inputResponses")]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) stream: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    pub(crate) meta: Option<Meta<'a>>,
}

/// `_meta` fields that every request must have.
#[derive(Deserialize)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) protocol_version: Option<Text<'a>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) client_capabilities: Option<&'a RawValue>,
}

/// A string that is borrowed unless it holds escapes; serde borrows no `Cow` inside an `Option` by itself.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Keeps a `null` id apart from none at all: the one is an error, the other a notification.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// Reason for which a message was refused, and its HTTP status.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    code: i32,
    message: &'static str,
    data: Option<String>,
}

impl Refusal {
    pub(crate) const fn new(status: u16, code: i32, message: &'static str) -> Self {
        Self { status, code, message, data: None }
    }

    /// Builds the error for a client that did not declare the capability, given as JSON.
    pub(crate) fn lacks(capabilities: &str) -> Self {
        let data = format!(r#"{{"requiredCapabilities":{capabilities}}}"#);
        Self { data: Some(data), ..Self::new(400, -32021, "the client lacks a capability") }
    }

    fn unsupported(requested: &str) -> Self {
        let data = serde_json::json!({ "supported": [REVISION], "requested": requested }).to_string();
        Self { data: Some(data), ..Self::new(400, -32022, "unsupported protocol version") }
    }
}

impl<'a> Message<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let message: Self = serde_json::from_slice(bytes).map_err(|error| {
            if error.is_data() {
                Refusal::new(400, -32600, "not a JSON-RPC request this server understands")
            } else {
                Refusal::new(400, -32700, "not JSON")
            }
        })?;
        if message.jsonrpc.0 != "2.0" {
            return Err(Refusal::new(400, -32600, "jsonrpc must be \"2.0\""));
        }
        match message.id() {
            Some(id) if !id.starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => {
                Err(Refusal::new(400, -32600, "an id must be a string or a number"))
            }
            _ => Ok(message),
        }
    }

    /// Returns the id as it was spelled, to be echoed byte for byte.
    pub(crate) fn id(&self) -> Option<&'a str> {
        self.id.map(RawValue::get)
    }

    /// Returns the version the request declares, once everything it must declare is present.
    pub(crate) fn declared_version(&self) -> Result<&str, Refusal> {
        let meta = self.params.as_ref().and_then(|params| params.meta.as_ref());
        let version = meta.and_then(|meta| meta.protocol_version.as_ref());
        let version = version.ok_or(Refusal::new(400, -32602, "_meta must carry the protocol version"))?;
        let capabilities = meta.and_then(|meta| meta.client_capabilities);
        if !capabilities.is_some_and(|raw| raw.get().starts_with('{')) {
            return Err(Refusal::new(400, -32602, "_meta must carry the client's capabilities"));
        }
        Ok(&version.0)
    }

    pub(crate) fn require_revision(version: &str) -> Result<(), Refusal> {
        if version == REVISION { Ok(()) } else { Err(Refusal::unsupported(version)) }
    }
}

/// Writes the error response, without an id if the message had no readable one.
pub(crate) fn write_refusal(out: &mut Vec<u8>, id: Option<&str>, refusal: &Refusal) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        out.extend_from_slice(id.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(format!(r#""error":{{"code":{},"message":"#, refusal.code).as_bytes());
    write_string(out, refusal.message);
    if let Some(data) = &refusal.data {
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(data.as_bytes());
    }
    out.extend_from_slice(b"}}");
}

/// Writes `text` as a JSON string.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    if serde_json::to_writer(&mut *out, text).is_err() {
        unreachable!("writing a string to memory does not fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_message_without_id_for_a_notification_and_refuses_a_null_id() {
        let parse = |text: &'static str| Message::parse(text.as_bytes()).map(|message| message.id());
        assert_eq!(parse(r#"{"jsonrpc":"2.0","method":"x"}"#).unwrap(), None);
        assert_eq!(parse(r#"{"method":"x","id":"a","jsonrpc":"2.0"}"#).unwrap(), Some("\"a\""));
        assert_eq!(parse(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#).unwrap_err().code, -32600);
        assert_eq!(parse(r#"{"jsonrpc":"2.0","id":[],"method":"x"}"#).unwrap_err().code, -32600);
    }

    #[test]
    fn requires_the_version_and_the_capabilities_of_the_client() {
        let version = |meta: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{{{meta}}}}}}}"#);
            Message::parse(text.as_bytes()).unwrap().declared_version().map(str::to_owned)
        };
        let (named, able) = (
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#,
            r#""io.modelcontextprotocol/clientCapabilities":{}"#,
        );
        assert_eq!(version(&format!("{able},{named}")).unwrap(), REVISION);
        assert_eq!(version(able).unwrap_err().code, -32602);
        assert_eq!(version(named).unwrap_err().code, -32602);
    }
}
