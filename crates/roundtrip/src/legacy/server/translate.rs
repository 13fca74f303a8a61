//! Translates modern results for legacy clients, and legacy requests for modern handlers (L5).

use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{
    CallTool, ErrorObject, GetPrompt, INVALID_PARAMS, INVALID_REQUEST, ListTools,
    MISSING_REQUIRED_CLIENT_CAPABILITY, Method as _, ProtocolVersion, Raw, ReadResource, ServerResult,
    TaskPayload, clip_error, json, meta,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::legacy::handshake::RESOURCE_NOT_FOUND;

/// Members that only modern results have.
const MODERN: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];
/// The same in `_meta`.
const MODERN_META: [&str; 2] = [meta::key::SERVER_INFO, meta::key::SUBSCRIPTION_ID];

type Translated<T> = Result<T, serde_json::Error>;

/// Translates a result for a legacy client.
pub(super) fn result(method: &str, result: &ServerResult, version: ProtocolVersion) -> Translated<Params> {
    let mut members: Params = Raw::of(result)?.to()?;
    MODERN.into_iter().for_each(|name| members.set(name, None));
    if let Some(meta) = members.get("_meta") {
        let mut meta: Params = meta.to()?;
        MODERN_META.into_iter().for_each(|name| meta.set(name, None));
        let meta = if meta.is_empty() { None } else { Some(Raw::of(&meta)?) };
        members.set("_meta", meta);
    }
    match method {
        ListTools::NAME => each(&mut members, "tools", |tool| {
            if version < ProtocolVersion::V2025_06_18
                || !tool.get("outputSchema").is_some_and(is_object_schema)
            {
                tool.set("outputSchema", None);
            }
            Ok(())
        })?,
        CallTool::NAME | TaskPayload::NAME => {
            let is_object = |raw: &Raw| raw.get().starts_with('{');
            if version < ProtocolVersion::V2025_06_18
                || !members.get("structuredContent").is_some_and(is_object)
            {
                members.set("structuredContent", None);
            }
            each(&mut members, "content", |block| content(block, version))?;
        }
        GetPrompt::NAME => each(&mut members, "messages", |message| {
            let Some(block) = message.get("content") else { return Ok(()) };
            let mut block: Params = block.to()?;
            content(&mut block, version)?;
            message.set("content", Some(Raw::of(&block)?));
            Ok(())
        })?,
        _ => {}
    }
    Ok(members)
}

/// Adds `execution.taskSupport` to the tools of a list, where `support` knows of any (2025-11-25).
pub(super) fn task_support(
    members: &mut Params,
    support: impl Fn(&str) -> Option<&'static str>,
) -> Translated<()> {
    each(members, "tools", |tool| {
        let name = tool.get("name").and_then(|name| name.to::<String>().ok());
        if let Some(support) = name.and_then(|name| support(&name)) {
            tool.set("execution", Some(Raw::of(&json!({ "taskSupport": support }))?));
        }
        Ok(())
    })
}

/// Changes every object of a list.
fn each(
    members: &mut Params,
    name: &'static str,
    mut change: impl FnMut(&mut Params) -> Translated<()>,
) -> Translated<()> {
    let Some(list) = members.get(name) else { return Ok(()) };
    let mut list: Vec<Params> = list.to()?;
    list.iter_mut().try_for_each(&mut change)?;
    members.set(name, Some(Raw::of(&list)?));
    Ok(())
}

/// Returns whether a schema is an object's: legacy clients expect structured content to be an object.
fn is_object_schema(schema: &Raw) -> bool {
    #[derive(Deserialize)]
    struct Peek {
        #[serde(rename = "type")]
        kind: Option<Value>,
    }
    schema.to::<Peek>().is_ok_and(|peek| peek.kind == Some(json!("object")))
}

/// Replaces a content block that a revision does not have by one that it has.
fn content(block: &mut Params, version: ProtocolVersion) -> Translated<()> {
    let text = |block: &Params, name: &str| block.get(name).and_then(|raw| raw.to::<String>().ok());
    let kind = text(block, "type").unwrap_or_default();
    if kind == "resource_link" && version < ProtocolVersion::V2025_06_18 {
        let name = text(block, "title").or_else(|| text(block, "name")).unwrap_or_default();
        let uri = text(block, "uri").unwrap_or_default();
        *block = Raw::of(&json!({ "type": "text", "text": format!("{name}: {uri}") }))?.to()?;
    } else if kind == "audio" && version < ProtocolVersion::V2025_03_26 {
        let resource = json!({
            "uri": "audio:inline",
            "mimeType": text(block, "mimeType"),
            "blob": text(block, "data").unwrap_or_default(),
        });
        *block = Raw::of(&json!({ "type": "resource", "resource": resource }))?.to()?;
    }
    Ok(())
}

/// Translates an error for a legacy client.
pub(super) fn error(method: &str, mut error: ErrorObject) -> ErrorObject {
    let names_uri = error.data.as_ref().is_some_and(|data| data.get("uri").is_some());
    if method == ReadResource::NAME && error.code == INVALID_PARAMS && names_uri {
        error.code = RESOURCE_NOT_FOUND;
    } else if error.code == MISSING_REQUIRED_CLIENT_CAPABILITY {
        error.code = INVALID_REQUEST;
    }
    error
}

/// The `_meta` of a legacy request: the progress token, and the entries that are not the protocol's.
#[derive(Debug, Default)]
pub(super) struct LegacyMeta {
    pub(super) progress_token: Option<roundtrip_core::wire::ProgressToken>,
    pub(super) extra: Params,
}

/// Splits a legacy request's parameters from its `_meta`.
pub(super) fn request(
    params: Option<&serde_json::value::RawValue>,
) -> Result<(Params, LegacyMeta), ErrorObject> {
    let wrong =
        |error: serde_json::Error| ErrorObject::invalid_params(format!("params: {}", clip_error(&error)));
    let mut params: Params = match params {
        Some(raw) => json::from_str(raw.get()).map_err(wrong)?,
        None => Params::default(),
    };
    let mut extra: Params = match params.get("_meta") {
        Some(meta) => meta.to().map_err(wrong)?,
        None => Params::default(),
    };
    let progress_token = extra.get(meta::key::PROGRESS_TOKEN).map(Raw::to).transpose().map_err(wrong)?;
    let modern = [
        meta::key::PROGRESS_TOKEN,
        meta::key::PROTOCOL_VERSION,
        meta::key::CLIENT_INFO,
        meta::key::CLIENT_CAPABILITIES,
        meta::key::LOG_LEVEL,
    ];
    modern.into_iter().for_each(|name| extra.set(name, None));
    // Rounds are made by this server: a legacy client has no say in them.
    ["_meta", "inputResponses", "requestState"].into_iter().for_each(|name| params.set(name, None));
    Ok((params, LegacyMeta { progress_token, extra }))
}

/// Serialises a value.
pub(super) fn raw(value: &impl Serialize) -> Result<Raw, ErrorObject> {
    Raw::of(value).map_err(|error| ErrorObject::internal(format!("this does not serialise: {error}")))
}
