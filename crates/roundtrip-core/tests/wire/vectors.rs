//! Vectors of our own, one or more for every family of types: decoded and encoded, they come back the same.

use std::borrow::Cow;

use roundtrip_core::wire::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::again;

#[track_caller]
fn same<T: serde::de::DeserializeOwned + Serialize>(value: &Value) {
    assert_eq!(again::<T>(value), *value);
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "sampling": { "tools": {} } },
        "io.modelcontextprotocol/logLevel": "notice",
        "progressToken": 3,
        "traceparent": "00-ab-cd-01"
    })
}

#[track_caller]
fn same_params<'a, P: Deserialize<'a> + Serialize>(text: &'a str) {
    let params: P = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_value(params).unwrap(), serde_json::from_str::<Value>(text).unwrap());
}

#[test]
fn software_and_capabilities() {
    same::<Implementation>(&json!({
        "name": "kettle", "title": "Kettle", "version": "2", "description": "boils", "websiteUrl": "https://k.test",
        "icons": [{ "src": "data:,", "mimeType": "image/png", "sizes": ["any"], "theme": "dark" }]
    }));
    same::<ClientCapabilities>(&json!({
        "experimental": { "x": { "on": true } }, "roots": {}, "sampling": { "context": {}, "tools": { "a": 1 } },
        "elicitation": { "url": {} }, "extensions": { "test.ext/y": {} }
    }));
    same::<ServerCapabilities>(&json!({
        "logging": {}, "completions": {}, "prompts": { "listChanged": false },
        "resources": { "subscribe": true }, "tools": { "listChanged": true }, "extensions": { "test.ext/y": {} }
    }));
}

#[test]
fn an_elicitation_capability_without_modes_means_forms() {
    let modes = |value: Value| {
        let capability: ElicitationCapability = serde_json::from_value(value).unwrap();
        (capability.allows_form(), capability.allows_url())
    };
    assert_eq!(modes(json!({})), (true, false));
    assert_eq!(modes(json!({ "form": {} })), (true, false));
    assert_eq!(modes(json!({ "url": {} })), (false, true));
    assert_eq!(modes(json!({ "form": {}, "url": {} })), (true, true));
}

#[test]
fn content_of_every_kind() {
    let hints = json!({ "audience": ["assistant"], "priority": 1, "lastModified": "2026-01-01" });
    same::<Vec<ContentBlock>>(&json!([
        { "type": "text", "text": "a", "annotations": hints, "_meta": { "k": null } },
        { "type": "image", "data": "AA==", "mimeType": "image/png" },
        { "type": "audio", "data": "AA==", "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "a:b", "name": "b", "size": 7 },
        { "type": "resource", "resource": { "uri": "a:b", "text": "" } },
        { "type": "resource", "resource": { "uri": "a:b", "blob": "AA==", "mimeType": "x/y" } }
    ]));
    assert_eq!(ContentBlock::from("hi").as_text(), Some("hi"));
    assert_eq!(
        serde_json::to_value(ContentBlock::text("hi")).unwrap(),
        json!({ "type": "text", "text": "hi" })
    );
}

#[test]
fn the_tag_of_content_may_come_last() {
    let text = r#"{"annotations":{"priority":0.5},"text":"a","type":"text"}"#;
    let ContentBlock::Text(content) = serde_json::from_str(text).unwrap() else { panic!("text") };
    assert_eq!(content.annotations.unwrap().priority, Some(0.5));

    let text = r#"{"content":[],"structuredContent":{"b":1, "a":2},"toolUseId":"7","type":"tool_result"}"#;
    let SamplingMessageContentBlock::ToolResult(result) = serde_json::from_str(text).unwrap() else {
        panic!("a tool result")
    };
    assert_eq!(result.structured_content.unwrap().get(), r#"{"b":1, "a":2}"#);
}

#[test]
fn lists_and_what_is_in_them() {
    same::<ListToolsResult>(&json!({
        "resultType": "complete", "ttlMs": 5, "cacheScope": "public", "nextCursor": "",
        "tools": [{
            "name": "t", "title": "T", "inputSchema": { "type": "object" }, "outputSchema": true,
            "annotations": { "readOnlyHint": true, "openWorldHint": false }
        }]
    }));
    same::<ListPromptsResult>(&json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "prompts": [{ "name": "p", "arguments": [{ "name": "a", "title": "A", "required": false }] }]
    }));
    same::<ListResourcesResult>(&json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "resources": [{ "uri": "a:b", "name": "b", "size": 0, "_meta": {} }]
    }));
    same::<ListResourceTemplatesResult>(&json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "resourceTemplates": [{ "uriTemplate": "a:{b}", "name": "b", "mimeType": "x/y" }]
    }));
}

#[test]
fn schemas_of_tools_pass_byte_for_byte() {
    let text = r#"{"name":"t","inputSchema":{"type" : "object", "z":1.0, "a":1e2}}"#;
    let tool: Tool = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&tool).unwrap(), text);
}

#[test]
fn results() {
    same::<CallToolResult>(&json!({
        "resultType": "complete", "content": [{ "type": "text", "text": "a" }],
        "structuredContent": [1, null], "isError": true,
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" }, "k": 1 }
    }));
    same::<GetPromptResult>(&json!({
        "resultType": "complete",
        "messages": [{ "role": "assistant", "content": { "type": "text", "text": "a" } }]
    }));
    same::<CompleteResult>(
        &json!({ "resultType": "complete", "completion": { "values": [], "hasMore": false } }),
    );
    same::<DiscoverResult>(&json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28", "2031-01-01"], "capabilities": {},
        "ttlMs": 1, "cacheScope": "public"
    }));
    same::<SubscriptionsListenResult>(&json!({
        "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": 9 }
    }));
}

#[test]
fn parameters_of_requests() {
    let meta = meta();
    same_params::<RequestParams<'_>>(&json!({ "_meta": meta }).to_string());
    same_params::<PaginatedRequestParams<'_>>(&json!({ "_meta": meta, "cursor": "c" }).to_string());
    same_params::<CallToolRequestParams<'_>>(
        &json!({ "_meta": meta, "name": "t", "arguments": {}, "inputResponses": { "k": {} }, "requestState": "s" })
            .to_string(),
    );
    same_params::<GetPromptRequestParams<'_>>(
        &json!({ "_meta": meta, "name": "p", "arguments": { "a": "1" }, "requestState": "" }).to_string(),
    );
    same_params::<ReadResourceRequestParams<'_>>(&json!({ "_meta": meta, "uri": "a:b" }).to_string());
    same_params::<CompleteRequestParams<'_>>(
        &json!({
            "_meta": meta, "ref": { "type": "ref/resource", "uri": "a:{b}" },
            "argument": { "name": "b", "value": "x" }, "context": { "arguments": { "c": "y" } }
        })
        .to_string(),
    );
    same_params::<SubscriptionsListenRequestParams<'_>>(
        &json!({ "_meta": meta, "notifications": { "promptsListChanged": false } }).to_string(),
    );
}

#[test]
fn parameters_of_requests_borrow() {
    let text =
        json!({ "_meta": meta(), "name": "p", "arguments": { "a": "b" }, "requestState": "s" }).to_string();
    let params: GetPromptRequestParams<'_> = serde_json::from_str(&text).unwrap();
    assert!(matches!(params.name, Cow::Borrowed("p")));
    assert!(matches!(params.request_state, Some(Cow::Borrowed("s"))));
    let (name, value) = params.arguments.first_key_value().unwrap();
    assert!(matches!((name, value), (Cow::Borrowed("a"), Cow::Borrowed("b"))));
}

#[test]
fn notifications() {
    same::<ProgressNotificationParams>(
        &json!({ "progressToken": 1, "progress": 0.5, "total": 2, "message": "m" }),
    );
    same::<LoggingMessageNotificationParams>(&json!({ "level": "alert", "data": null }));
    same::<CancelledNotificationParams>(&json!({ "requestId": 4 }));
    same::<ResourceUpdatedNotificationParams>(&json!({
        "uri": "a:b", "_meta": { "io.modelcontextprotocol/subscriptionId": "l" }
    }));
    same::<SubscriptionsAcknowledgedNotificationParams>(&json!({
        "notifications": { "resourcesListChanged": true, "resourceSubscriptions": ["a:b"] }
    }));
    let nothing: NotificationParams = decode_params(None).unwrap();
    assert_eq!(nothing, NotificationParams::default());
}

#[test]
fn levels_are_ordered_by_severity() {
    assert!(LoggingLevel::Debug < LoggingLevel::Info && LoggingLevel::Notice < LoggingLevel::Warning);
    assert!(LoggingLevel::Error < LoggingLevel::Critical && LoggingLevel::Alert < LoggingLevel::Emergency);
}

#[test]
fn questions_to_a_model() {
    same::<CreateMessageRequestParams>(&json!({
        "messages": [
            { "role": "user", "content": { "type": "text", "text": "a" }, "_meta": {} },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": "t", "input": { "b": 1 } }] },
            { "role": "user", "content": [{
                "type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": null, "isError": false
            }] },
            { "role": "user", "content": [] }
        ],
        "modelPreferences": { "hints": [{ "name": "m" }, {}], "costPriority": 0, "speedPriority": 0.25 },
        "systemPrompt": "s", "includeContext": "thisServer", "temperature": 0.5, "maxTokens": 9,
        "stopSequences": ["x"], "metadata": { "k": 1 },
        "tools": [{ "name": "t", "inputSchema": { "type": "object" } }], "toolChoice": { "mode": "none" }
    }));
    same::<CreateMessageResult>(&json!({
        "role": "assistant", "content": [{ "type": "audio", "data": "", "mimeType": "a/b" }], "model": "m",
        "stopReason": "providerSaidSo"
    }));
}

#[test]
fn questions_to_the_user() {
    let form = json!({
        "message": "m",
        "requestedSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": ["s"],
            "properties": {
                "s": { "type": "string", "minLength": 1, "format": "date", "default": "" },
                "n": { "type": "number", "minimum": 0.5 },
                "i": { "type": "integer", "maximum": 10, "default": -3 },
                "b": { "type": "boolean", "default": true },
                "e": { "type": "string", "enum": ["a", "b"], "default": "a" },
                "t": { "type": "string", "oneOf": [{ "const": "a", "title": "A" }] },
                "l": { "type": "string", "enum": ["a"], "enumNames": ["A"] },
                "m": { "type": "array", "items": { "type": "string", "enum": ["a"] }, "minItems": 1 },
                "o": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] }, "default": ["a"] }
            }
        }
    });
    same::<ElicitRequestParams>(&form);
    let mut named = form;
    named["mode"] = json!("form");
    same::<ElicitRequestParams>(&named);
    same::<ElicitRequestParams>(&json!({ "mode": "url", "message": "m", "url": "https://u.test" }));
    same::<ElicitResult>(&json!({ "action": "accept", "content": { "a": ["b"], "c": 1.5 } }));
    same::<ElicitResult>(&json!({ "action": "cancel" }));
    assert!(serde_json::from_str::<ElicitRequestParams>(r#"{"mode":"fax","message":"m"}"#).is_err());
    assert!(serde_json::from_str::<ElicitResult>(r#"{"action":"bogus"}"#).is_err());
}

#[test]
fn fields_of_a_form_keep_their_order() {
    let text = concat!(
        r#"{"message":"m","requestedSchema":{"type":"object","properties":"#,
        r#"{"z":{"type":"string"},"a":{"type":"boolean"},"m":{"type":"integer"}}},"mode":"form"}"#
    );
    let ElicitRequestParams::Form(form) = serde_json::from_str(text).unwrap() else { panic!("a form") };
    let names: Vec<_> = form.requested_schema.properties.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["z", "a", "m"]);
    assert!(matches!(form.requested_schema.property("m"), Some(PrimitiveSchemaDefinition::Integer(_))));
    assert!(form.mode.is_some());
}

#[test]
fn rounds() {
    same::<InputRequiredResult>(&json!({
        "resultType": "input_required", "requestState": "s",
        "inputRequests": {
            "r": { "method": "roots/list" },
            "q": { "method": "roots/list", "params": { "_meta": { "k": 1 } } },
            "u": { "method": "elicitation/create", "params": { "mode": "url", "message": "m", "url": "a:b" } },
            "s": { "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } }
        }
    }));
    let refused = serde_json::from_str::<InputRequest>(r#"{"method":"tools/call","params":{}}"#).unwrap_err();
    assert!(refused.to_string().contains("unknown variant `tools/call`"), "{refused}");
    same::<ListRootsResult>(&json!({ "roots": [{ "uri": "file:///a", "name": "a", "_meta": { "k": 1 } }] }));
}

#[test]
fn a_tool_inside_a_question_keeps_its_schema_wherever_the_method_stands() {
    let text = concat!(
        r#"{"params":{"maxTokens":1,"messages":[],"tools":[{"name":"t","inputSchema":{"z":1, "a":2}}]},"#,
        r#""method":"sampling/createMessage"}"#
    );
    let InputRequest::CreateMessage(params) = serde_json::from_str(text).unwrap() else { panic!("sampling") };
    assert_eq!(params.tools[0].input_schema.get(), r#"{"z":1, "a":2}"#);
}
