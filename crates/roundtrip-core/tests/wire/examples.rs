//! An example of every shape that the published schema has examples of. Ours are in `examples.json`. The published ones are not
//! part of this repository: a second test reads them where they are found and says so where they are not.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use roundtrip_core::wire::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::again;

/// Shapes that the published schema has examples of.
const SHAPES: usize = 88;

fn folder() -> PathBuf {
    env::var_os("ROUNDTRIP_SCHEMA_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/schema/2026-07-28/examples"),
        PathBuf::from,
    )
}

/// W12: an example of every shape of the schema decodes by its type and encodes back to the same JSON value.
#[test]
fn every_example_comes_back_as_it_was() {
    let examples: BTreeMap<String, Vec<Value>> =
        serde_json::from_str(include_str!("examples.json")).expect("examples by the names of their types");
    assert_eq!(examples.len(), SHAPES, "there is an example of every shape");
    for (name, value) in examples.iter().flat_map(|(name, all)| all.iter().map(move |value| (name, value))) {
        let back = by_type(name, value, value.to_string().as_bytes())
            .unwrap_or_else(|| panic!("no type is known for {name}"));
        assert_eq!(back, *value, "{name}");
    }
}

/// W12: the published examples come back as they were, too.
#[test]
fn every_published_example_comes_back_as_it_was() {
    let folder = folder();
    let Ok(types) = fs::read_dir(&folder) else {
        eprintln!("SKIPPED: no published examples in {} (set ROUNDTRIP_SCHEMA_DIR)", folder.display());
        return;
    };
    let mut count = 0;
    for entry in types {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        for file in fs::read_dir(entry.path()).unwrap() {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            let back = by_type(&name, &value, text.as_bytes())
                .unwrap_or_else(|| panic!("no type is known for the examples in {name}"));
            assert_eq!(back, as_it_should_be(&name, value), "{}", path.display());
            count += 1;
        }
    }
    assert!(count > 0, "{} is empty", folder.display());
}

/// Two examples stray from their own schema; what we send follows the schema.
fn as_it_should_be(name: &str, mut value: Value) -> Value {
    match name {
        // One lacks the two members on caching, which are required.
        "ReadResourceResultResponse" => {
            let result = value["result"].as_object_mut().unwrap();
            result.entry("ttlMs").or_insert(json!(0));
            result.entry("cacheScope").or_insert(json!("private"));
        }
        // A question inside a result has a key, not an id.
        "ListRootsRequest" => drop(value.as_object_mut().unwrap().remove("id")),
        _ => {}
    }
    value
}

fn by_type(name: &str, value: &Value, bytes: &[u8]) -> Option<Value> {
    if let Some(back) = name.strip_suffix("ResultResponse").and_then(|stem| response(stem, bytes)) {
        return Some(back);
    }
    message(name, bytes).or_else(|| params(name, bytes)).or_else(|| plain(name, value))
}

/// Types that stand alone.
fn plain(name: &str, value: &Value) -> Option<Value> {
    Some(match name {
        "TextContent" | "ImageContent" | "AudioContent" | "ResourceLink" | "EmbeddedResource" => {
            assert!(!matches!(decoded(value), ContentBlock::Other(_)));
            again::<ContentBlock>(value)
        }
        "ToolUseContent" | "ToolResultContent" => {
            assert!(!matches!(decoded(value), SamplingMessageContentBlock::Other(_)));
            again::<SamplingMessageContentBlock>(value)
        }
        "TextResourceContents" | "BlobResourceContents" => again::<ResourceContents>(value),
        "BooleanSchema"
        | "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => {
            let variant = format!("{:?}", decoded::<PrimitiveSchemaDefinition>(value));
            assert!(variant.contains(&format!("({name} ")), "{variant} is not a {name}");
            again::<PrimitiveSchemaDefinition>(value)
        }
        "CallToolResult" => again::<CallToolResult>(value),
        "CancelledNotificationParams" => again::<CancelledNotificationParams>(value),
        "ClientCapabilities" => again::<ClientCapabilities>(value),
        "CompleteResult" => again::<CompleteResult>(value),
        "CreateMessageRequest" | "ElicitRequest" | "ListRootsRequest" => again::<InputRequest>(value),
        "CreateMessageRequestParams" => again::<CreateMessageRequestParams>(value),
        "CreateMessageResult" => again::<CreateMessageResult>(value),
        "DiscoverResult" => again::<DiscoverResult>(value),
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => again::<ElicitRequestParams>(value),
        "ElicitResult" => again::<ElicitResult>(value),
        "GetPromptResult" => again::<GetPromptResult>(value),
        "InputRequests" => again::<InputRequests>(value),
        "InputRequiredResult" => again::<InputRequiredResult>(value),
        "InputResponses" => again::<InputResponses>(value),
        "InternalError" | "InvalidParamsError" | "MethodNotFoundError" | "ParseError" => {
            again::<ErrorObject>(value)
        }
        "ListPromptsResult" => again::<ListPromptsResult>(value),
        "ListResourceTemplatesResult" => again::<ListResourceTemplatesResult>(value),
        "ListResourcesResult" => again::<ListResourcesResult>(value),
        "ListRootsResult" => again::<ListRootsResult>(value),
        "ListToolsResult" => again::<ListToolsResult>(value),
        "LoggingMessageNotificationParams" => again::<LoggingMessageNotificationParams>(value),
        "ModelPreferences" => again::<ModelPreferences>(value),
        "ProgressNotificationParams" => again::<ProgressNotificationParams>(value),
        "ReadResourceResult" => again::<ReadResourceResult>(value),
        "Resource" => again::<Resource>(value),
        "ResourceUpdatedNotificationParams" => again::<ResourceUpdatedNotificationParams>(value),
        "Root" => again::<Root>(value),
        "SamplingMessage" => again::<SamplingMessage>(value),
        "ServerCapabilities" => again::<ServerCapabilities>(value),
        "SubscriptionsListenResult" => again::<SubscriptionsListenResult>(value),
        "Tool" => again::<Tool>(value),
        _ => return None,
    })
}

fn decoded<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_str(&value.to_string()).unwrap()
}

/// Parameters of requests, which borrow.
fn params(name: &str, bytes: &[u8]) -> Option<Value> {
    fn again<'a, P: Deserialize<'a> + Serialize>(bytes: &'a [u8]) -> Value {
        serde_json::to_value(serde_json::from_slice::<P>(bytes).unwrap()).unwrap()
    }
    Some(match name {
        "CallToolRequestParams" => again::<CallToolRequestParams<'_>>(bytes),
        "CompleteRequestParams" => again::<CompleteRequestParams<'_>>(bytes),
        "GetPromptRequestParams" => again::<GetPromptRequestParams<'_>>(bytes),
        "PaginatedRequestParams" => again::<PaginatedRequestParams<'_>>(bytes),
        _ => return None,
    })
}

/// Whole messages other than results.
fn message(name: &str, bytes: &[u8]) -> Option<Value> {
    Some(match name {
        "CallToolRequest" => request::<CallTool>(bytes),
        "CompleteRequest" => request::<Complete>(bytes),
        "DiscoverRequest" => request::<Discover>(bytes),
        "GetPromptRequest" => request::<GetPrompt>(bytes),
        "ListPromptsRequest" => request::<ListPrompts>(bytes),
        "ListResourceTemplatesRequest" => request::<ListResourceTemplates>(bytes),
        "ListResourcesRequest" => request::<ListResources>(bytes),
        "ListToolsRequest" => request::<ListTools>(bytes),
        "ReadResourceRequest" => request::<ReadResource>(bytes),
        "SubscriptionsListenRequest" => request::<SubscriptionsListen>(bytes),
        "CancelledNotification" => notification::<CancelledNotification>(bytes),
        "LoggingMessageNotification" => notification::<LoggingMessageNotification>(bytes),
        "ProgressNotification" => notification::<ProgressNotification>(bytes),
        "PromptListChangedNotification" => notification::<PromptListChangedNotification>(bytes),
        "ResourceListChangedNotification" => notification::<ResourceListChangedNotification>(bytes),
        "ResourceUpdatedNotification" => notification::<ResourceUpdatedNotification>(bytes),
        "SubscriptionsAcknowledgedNotification" => {
            notification::<SubscriptionsAcknowledgedNotification>(bytes)
        }
        "ToolListChangedNotification" => notification::<ToolListChangedNotification>(bytes),
        "HeaderMismatchError" => error(bytes, HEADER_MISMATCH),
        "MissingRequiredClientCapabilityError" => error(bytes, MISSING_REQUIRED_CLIENT_CAPABILITY),
        "UnsupportedProtocolVersionError" => error(bytes, UNSUPPORTED_PROTOCOL_VERSION),
        _ => return None,
    })
}

/// Results in their envelope, by the method that was called.
fn response(stem: &str, bytes: &[u8]) -> Option<Value> {
    Some(match stem {
        "CallTool" => reply::<CallTool>(bytes),
        "GetPrompt" => reply::<GetPrompt>(bytes),
        "ReadResource" => reply::<ReadResource>(bytes),
        "Complete" => complete::<Complete>(bytes),
        "Discover" => complete::<Discover>(bytes),
        "ListPrompts" => complete::<ListPrompts>(bytes),
        "ListResourceTemplates" => complete::<ListResourceTemplates>(bytes),
        "ListResources" => complete::<ListResources>(bytes),
        "ListTools" => complete::<ListTools>(bytes),
        "SubscriptionsListen" => complete::<SubscriptionsListen>(bytes),
        _ => return None,
    })
}

fn request<M: Method>(bytes: &[u8]) -> Value {
    let Ok(Message::Request(request)) = Message::decode(bytes) else { panic!("not a request") };
    assert_eq!(request.method, M::NAME);
    let decoded = ClientRequest::decode(&request.method, request.params).unwrap();
    assert_eq!(decoded.method(), M::NAME);
    let params: M::Params<'_> = decode_params(request.params).unwrap();
    serde_json::from_slice(&encode_request(&request.id, M::NAME, &params).unwrap()).unwrap()
}

fn notification<N: NotificationMethod>(bytes: &[u8]) -> Value {
    let Ok(Message::Notification(notification)) = Message::decode(bytes) else {
        panic!("not a notification")
    };
    assert_eq!(notification.method, N::NAME);
    let params: N::Params = decode_params(notification.params).unwrap();
    serde_json::from_slice(&encode_notification(N::NAME, &params).unwrap()).unwrap()
}

fn error(bytes: &[u8], code: i64) -> Value {
    let Ok(Message::Response(Response { id, outcome: Err(error) })) = Message::decode(bytes) else {
        panic!("not an error")
    };
    assert_eq!(error.code, code);
    let mut out = Vec::new();
    encode_error(&mut out, id.as_ref(), &error);
    serde_json::from_slice(&out).unwrap()
}

fn reply<M: MayAsk>(bytes: &[u8]) -> Value {
    result(bytes, |raw| match decode_round_result::<M>(raw).unwrap() {
        RoundResult::Complete(result) => serde_json::to_value(result).unwrap(),
        RoundResult::InputRequired(result) => serde_json::to_value(result).unwrap(),
        RoundResult::Task(result) => serde_json::to_value(result).unwrap(),
    })
}

fn complete<M: Method>(bytes: &[u8]) -> Value {
    result(bytes, |raw| serde_json::to_value(decode_complete::<M>(raw).unwrap()).unwrap())
}

fn result(bytes: &[u8], back: impl FnOnce(&serde_json::value::RawValue) -> Value) -> Value {
    let Ok(Message::Response(Response { id: Some(id), outcome: Ok(raw) })) = Message::decode(bytes) else {
        panic!("not a result")
    };
    let mut out = Vec::new();
    encode_result(&mut out, &id, &back(raw)).unwrap();
    serde_json::from_slice(&out).unwrap()
}
