//! `_meta`: the per-request and per-result protocol fields, under their reserved keys (basic, "`_meta`").

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::serde::Str;
use super::{ClientCapabilities, Implementation, LoggingLevel, ProgressToken, RequestId, clip};

/// Free-form `_meta` on content, tools, resources and the like.
pub type MetaObject = Map<String, Value>;

/// The reserved keys of `_meta`.
pub mod key {
    /// Opts a request into progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The revision a request speaks.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The client's name and version (self-reported).
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The client's capabilities.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Opts a request into log messages, from this level up. Deprecated (SEP-2577).
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The `subscriptions/listen` request that a message belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The server's name and version (self-reported).
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The task that a message belongs to (SEP-2322, 2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// Names a request so that a server with a ledger runs it once, however often it arrives. It is Roundtrip's own
    /// key, under Roundtrip's own prefix.
    pub const IDEMPOTENCY_KEY: &str = "dev.roundtrip/idempotencyKey";
    /// W3C trace context, reserved without a prefix.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace state, reserved without a prefix.
    pub const TRACESTATE: &str = "tracestate";
}

/// Checks a key of `_meta` (basic, "`_meta`"): a name, behind a prefix such as `com.example/` where there is one.
///
/// ```
/// use roundtrip_core::wire::{check_extension_name, check_meta_key};
///
/// assert!(check_meta_key("traceparent").is_ok() && check_meta_key("com.example/trace_id").is_ok());
/// assert!(check_meta_key("com.example/").is_ok() && check_meta_key("-x").is_err());
/// assert!(check_extension_name("com.example/views").is_ok() && check_extension_name("views").is_err());
/// ```
///
/// # Errors
/// The text says what is wrong.
pub fn check_meta_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_alphabetic())
            && label.ends_with(|last: char| last.is_ascii_alphanumeric())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if !prefix.is_none_or(|prefix| prefix.split('.').all(is_label)) {
        return Err(format!(
            "the prefix of `{}` is not labels of letters, digits and hyphens with dots between them, such as `com.example/`",
            clip(key)
        ));
    }
    let is_name = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.ends_with(|last: char| last.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if is_name || (name.is_empty() && prefix.is_some()) {
        return Ok(());
    }
    Err(format!(
        "the name in `{}` does not begin and end with a letter or a digit, or has others than these, `-`, `_` and `.`",
        clip(key)
    ))
}

/// Checks the identifier of an extension: a key of `_meta` that has a prefix (versioning, "Extension Negotiation").
///
/// # Errors
/// The text says what is wrong.
pub fn check_extension_name(name: &str) -> Result<(), String> {
    check_meta_key(name)?;
    match name.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => Ok(()),
        _ => Err(format!(
            "the extension `{0}` needs a prefix and a name, such as `com.example/{0}`",
            clip(name)
        )),
    }
}

/// The `_meta` of a modern request. Version and capabilities are required, so a request without them does not
/// decode (W5).
#[derive(Debug, Clone)]
pub struct RequestMeta<'a> {
    /// Opts into progress notifications.
    pub progress_token: Option<ProgressToken>,
    /// The revision this request speaks.
    pub protocol_version: Cow<'a, str>,
    /// The client's name and version, kept as text because it is for display only.
    pub client_info: Option<&'a RawValue>,
    /// The client's capabilities. Boxed: they are large, and a request is moved from hand to hand.
    pub client_capabilities: Box<ClientCapabilities>,
    /// Opts into log messages, from this level up. Deprecated (SEP-2577).
    pub log_level: Option<LoggingLevel>,
    /// All other keys, in the order they came.
    pub extra: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> RequestMeta<'a> {
    /// Returns the value under a key that is not one of the protocol's own.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.extra.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RequestMeta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetaVisitor;
        impl<'de> Visitor<'de> for MetaVisitor {
            type Value = RequestMeta<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the `_meta` object of a request")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut progress_token, mut protocol_version, mut client_info) = (None, None, None);
                let (mut client_capabilities, mut log_level, mut extra) = (None, None, Vec::new());
                while let Some(Str(name)) = map.next_key()? {
                    match &*name {
                        key::PROGRESS_TOKEN => {
                            once(&mut progress_token, map.next_value()?, key::PROGRESS_TOKEN)?;
                        }
                        key::PROTOCOL_VERSION => {
                            let Str(version) = map.next_value()?;
                            once(&mut protocol_version, version, key::PROTOCOL_VERSION)?;
                        }
                        key::CLIENT_INFO => once(&mut client_info, map.next_value()?, key::CLIENT_INFO)?,
                        key::CLIENT_CAPABILITIES => {
                            once(&mut client_capabilities, map.next_value()?, key::CLIENT_CAPABILITIES)?;
                        }
                        key::LOG_LEVEL => once(&mut log_level, map.next_value()?, key::LOG_LEVEL)?,
                        _ => extra.push((name, map.next_value()?)),
                    }
                }
                Ok(RequestMeta {
                    progress_token,
                    protocol_version: protocol_version
                        .ok_or_else(|| de::Error::missing_field(key::PROTOCOL_VERSION))?,
                    client_info,
                    client_capabilities: client_capabilities
                        .ok_or_else(|| de::Error::missing_field(key::CLIENT_CAPABILITIES))?,
                    log_level,
                    extra,
                })
            }
        }
        deserializer.deserialize_map(MetaVisitor)
    }
}

/// Fills an empty slot; a second spelling of the same key is an error.
fn once<T, E: de::Error>(slot: &mut Option<T>, value: T, key: &'static str) -> Result<(), E> {
    if slot.replace(value).is_some() { Err(E::duplicate_field(key)) } else { Ok(()) }
}

impl Serialize for RequestMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(key::PROTOCOL_VERSION, &self.protocol_version)?;
        if let Some(info) = self.client_info {
            map.serialize_entry(key::CLIENT_INFO, info)?;
        }
        map.serialize_entry(key::CLIENT_CAPABILITIES, &self.client_capabilities)?;
        if let Some(token) = &self.progress_token {
            map.serialize_entry(key::PROGRESS_TOKEN, token)?;
        }
        if let Some(level) = &self.log_level {
            map.serialize_entry(key::LOG_LEVEL, level)?;
        }
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The `_meta` of a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultMeta {
    /// The server's name and version. Shared, because a server puts the same value on every result (W7).
    pub server_info: Option<Arc<Implementation>>,
    /// The subscription that a `subscriptions/listen` result ends.
    pub subscription_id: Option<RequestId>,
    /// All other keys.
    pub extra: MetaObject,
}

impl ResultMeta {
    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.server_info.is_none() && self.subscription_id.is_none() && self.extra.is_empty()
    }
}

impl From<MetaObject> for ResultMeta {
    fn from(extra: MetaObject) -> Self {
        Self { extra, ..Self::default() }
    }
}

impl Serialize for ResultMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(info) = &self.server_info {
            map.serialize_entry(key::SERVER_INFO, &**info)?;
        }
        if let Some(id) = &self.subscription_id {
            map.serialize_entry(key::SUBSCRIPTION_ID, id)?;
        }
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ResultMeta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetaVisitor;
        impl<'de> Visitor<'de> for MetaVisitor {
            type Value = ResultMeta;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the `_meta` object of a result")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResultMeta, A::Error> {
                let mut meta = ResultMeta::default();
                while let Some(name) = map.next_key::<String>()? {
                    match &*name {
                        key::SERVER_INFO => meta.server_info = Some(Arc::new(map.next_value()?)),
                        key::SUBSCRIPTION_ID => meta.subscription_id = Some(map.next_value()?),
                        _ => drop(meta.extra.insert(name, map.next_value()?)),
                    }
                }
                Ok(meta)
            }
        }
        deserializer.deserialize_map(MetaVisitor)
    }
}

/// The `_meta` of a notification.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NotificationMeta {
    /// The subscription it is sent on.
    pub subscription_id: Option<RequestId>,
}

impl NotificationMeta {
    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.subscription_id.is_none()
    }
}

impl Serialize for NotificationMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = &self.subscription_id {
            map.serialize_entry(key::SUBSCRIPTION_ID, id)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for NotificationMeta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetaVisitor;
        impl<'de> Visitor<'de> for MetaVisitor {
            type Value = NotificationMeta;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the `_meta` object of a notification")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NotificationMeta, A::Error> {
                let mut meta = NotificationMeta::default();
                while let Some(Str(name)) = map.next_key()? {
                    if name == key::SUBSCRIPTION_ID {
                        meta.subscription_id = Some(map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(meta)
            }
        }
        deserializer.deserialize_map(MetaVisitor)
    }
}
