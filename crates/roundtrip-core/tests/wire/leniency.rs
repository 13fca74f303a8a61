//! What is let pass on the way in, and what null means.

use roundtrip_core::wire::*;
use serde_json::json;

use crate::again;

/// W11: unknown fields are tolerated on the way in, on requests, results, capabilities and content.
#[test]
fn unknown_fields_are_tolerated() {
    let params = r#"{"new":[1],"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","k":{},
        "io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true},"telepathy":{}}},
        "name":"t","arguments":{"new":1}}"#;
    let params: CallToolRequestParams<'_> = serde_json::from_str(params).unwrap();
    assert!(params.meta.client_capabilities.roots.is_some());
    assert!(params.meta.get("k").is_some());

    let result = json!({ "content": [{ "type": "text", "text": "a", "new": 1 }], "new": {} });
    assert_eq!(
        again::<CallToolResult>(&result),
        json!({ "resultType": "complete", "content": [{ "type": "text", "text": "a" }] })
    );
    assert_eq!(
        again::<ServerCapabilities>(&json!({ "tools": { "new": 1 }, "new": 1 })),
        json!({ "tools": {} })
    );
    let field = json!({ "type": "string", "pattern": "a+", "format": "ipv4" });
    assert_eq!(again::<PrimitiveSchemaDefinition>(&field), json!({ "type": "string", "format": "ipv4" }));
}

/// W11: content of an unknown kind costs nothing but itself, and is passed on whole.
#[test]
fn unknown_content_survives() {
    let video = json!({ "type": "video", "data": "AA==", "frames": [1, { "n": null }] });
    let text = json!({ "type": "text", "text": "a" });
    let result = json!({ "resultType": "complete", "content": [video, text] });
    assert_eq!(again::<CallToolResult>(&result), result);

    let late = r#"{"frames":1,"type":"video"}"#;
    let ContentBlock::Other(object) = serde_json::from_str(late).unwrap() else { panic!("unknown content") };
    assert_eq!(object["type"], "video");

    let message = json!({ "role": "user", "content": [video] });
    assert_eq!(again::<SamplingMessage>(&message), message);
}

#[test]
fn content_without_a_kind_is_refused() {
    let error = serde_json::from_str::<ContentBlock>(r#"{"text":"a"}"#).unwrap_err();
    assert!(error.to_string().contains("missing field `type`"), "{error}");
}

#[test]
fn resource_contents_are_text_or_blob() {
    let refusal = |text| serde_json::from_str::<ResourceContents>(text).unwrap_err().to_string();
    assert!(refusal(r#"{"uri":"a:b"}"#).contains("neither"));
    assert!(refusal(r#"{"uri":"a:b","text":"","blob":""}"#).contains("both"));
    let text: ResourceContents = serde_json::from_str(r#"{"uri":"a:b","text":"","blob":null}"#).unwrap();
    assert!(matches!(text, ResourceContents::Text(_)));
}

#[test]
fn null_is_a_value_where_any_value_is_allowed() {
    let null: CallToolResult = serde_json::from_str(r#"{"content":[],"structuredContent":null}"#).unwrap();
    assert_eq!(null.structured_content.as_ref().map(Raw::get), Some("null"));
    let absent: CallToolResult = serde_json::from_str(r#"{"content":[]}"#).unwrap();
    assert_eq!(absent.structured_content, None);
    assert_ne!(null, absent);
    assert!(serde_json::from_str::<LoggingMessageNotificationParams>(r#"{"level":"info"}"#).is_err());
}

#[test]
fn null_is_absent_everywhere_else() {
    let params = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{"roots":null,"experimental":null}},
        "name":"t","arguments":null,"inputResponses":null,"requestState":null}"#;
    let params: CallToolRequestParams<'_> = serde_json::from_str(params).unwrap();
    assert!(params.arguments.is_none() && params.input_responses.is_none() && params.request_state.is_none());
    assert_eq!(*params.meta.client_capabilities, ClientCapabilities::default());

    let tool = json!({
        "name": "t", "title": null, "inputSchema": {}, "outputSchema": null, "icons": null, "_meta": null
    });
    assert_eq!(again::<Tool>(&tool), json!({ "name": "t", "inputSchema": {} }));
    let schema = json!({ "type": "object", "properties": {}, "required": null });
    assert_eq!(again::<ElicitSchema>(&schema), json!({ "type": "object", "properties": {} }));
    // A schema that came in is passed on as it came, as those of tools are.
    let form = json!({ "mode": null, "message": "m", "requestedSchema": schema });
    assert_eq!(again::<ElicitRequestParams>(&form), json!({ "message": "m", "requestedSchema": schema }));
}

/// W11: a choice of several whose `items` have no `type` is read as meant (FastMCP writes it so).
#[test]
fn the_values_of_a_choice_need_no_type() {
    let field = json!({ "type": "array", "title": "Tags", "items": { "enum": ["a", "b"] } });
    let read: PrimitiveSchemaDefinition = serde_json::from_value(field.clone()).unwrap();
    assert_eq!((read.choices(), read.is_multi_select()), (vec![("a", "a"), ("b", "b")], true));
    let written =
        json!({ "type": "array", "title": "Tags", "items": { "type": "string", "enum": ["a", "b"] } });
    assert_eq!(again::<PrimitiveSchemaDefinition>(&field), written);
    let number = json!({ "type": "array", "items": { "type": "number", "enum": ["a"] } });
    assert!(serde_json::from_value::<PrimitiveSchemaDefinition>(number).is_err());
}

/// Every field tells its label, its description and its choices, however they are written.
#[test]
fn fields_tell_what_people_see() {
    let titled = json!([{ "const": "a", "title": "A" }]);
    for (field, choices) in [
        (json!({ "type": "string" }), vec![]),
        (json!({ "type": "number" }), vec![]),
        (json!({ "type": "integer" }), vec![]),
        (json!({ "type": "boolean" }), vec![]),
        (json!({ "type": "string", "enum": ["a"] }), vec![("a", "a")]),
        (json!({ "type": "string", "oneOf": titled }), vec![("a", "A")]),
        (json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["A"] }), vec![("a", "A"), ("b", "b")]),
        (json!({ "type": "array", "items": { "type": "string", "enum": ["a"] } }), vec![("a", "a")]),
        (json!({ "type": "array", "items": { "anyOf": titled } }), vec![("a", "A")]),
    ] {
        let mut field = field;
        field["title"] = json!("T");
        field["description"] = json!("D");
        let read: PrimitiveSchemaDefinition = serde_json::from_value(field.clone()).unwrap();
        assert_eq!((read.title(), read.description()), (Some("T"), Some("D")), "{field}");
        assert_eq!(read.choices(), choices, "{field}");
        assert_eq!(read.is_multi_select(), field["type"] == "array");
    }
}
