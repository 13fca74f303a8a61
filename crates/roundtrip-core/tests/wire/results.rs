//! Results: looked at by `resultType` first, decoded by the method that was called.

use std::sync::Arc;

use roundtrip_core::wire::*;
use serde_json::json;
use serde_json::value::RawValue;

pub(crate) fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}

/// W8: a result without a type is complete.
#[test]
fn a_result_without_a_type_is_complete() {
    let result = decode_complete::<ListTools>(raw(r#"{"tools":[]}"#)).unwrap();
    assert_eq!(result, ListToolsResult::default());
    let reply = decode_round_result::<CallTool>(raw(r#"{"content":[]}"#)).unwrap();
    assert_eq!(reply, RoundResult::Complete(CallToolResult::default()));
}

/// W8: a result of an unknown type is an error that names the type.
#[test]
fn an_unknown_type_is_an_error_that_names_it() {
    let text = r#"{"resultType":"half_done","content":[]}"#;
    let expected = ResultError::UnknownType { method: "tools/call", result_type: "half_done".into() };
    assert_eq!(decode_round_result::<CallTool>(raw(text)).unwrap_err(), expected);
    assert_eq!(decode_complete::<CallTool>(raw(text)).unwrap_err(), expected);
    assert!(expected.to_string().contains("`half_done`"));
}

/// C15: a request for input from a method that may not ask is a named error.
#[test]
fn asking_is_an_error_for_methods_that_may_not() {
    let text = r#"{"resultType":"input_required","requestState":"s"}"#;
    let error = decode_complete::<ListTools>(raw(text)).unwrap_err();
    assert_eq!(error, ResultError::MayNotAsk { method: "tools/list" });
}

/// C15: a request for input with neither questions nor state is a named error.
#[test]
fn asking_for_nothing_is_an_error() {
    for text in
        [r#"{"resultType":"input_required"}"#, r#"{"resultType":"input_required","inputRequests":{}}"#]
    {
        let error = decode_round_result::<GetPrompt>(raw(text)).unwrap_err();
        assert_eq!(error, ResultError::AsksNothing { method: "prompts/get" });
    }
}

#[test]
fn a_request_for_input_is_told_apart() {
    let text = r#"{"inputRequests":{"k":{"method":"roots/list"}},"resultType":"input_required"}"#;
    let Ok(RoundResult::InputRequired(result)) = decode_round_result::<ReadResource>(raw(text)) else {
        panic!("a question")
    };
    assert_eq!(result.input_requests["k"].method(), "roots/list");
    assert_eq!(result.request_state, None);
    let error = serde_json::from_str::<InputRequiredResult>(r#"{"requestState":"s"}"#).unwrap_err();
    assert!(error.to_string().contains("resultType"), "the type is never assumed here: {error}");
}

#[test]
fn what_does_not_fit_names_the_place() {
    let misfit = |text| decode_round_result::<CallTool>(raw(text)).unwrap_err().to_string();
    let message = misfit(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":5}]}"#);
    assert!(message.contains("`tools/call`") && message.contains("result.content[1].text"), "{message}");
    let message = misfit(r#"{"resultType":5,"content":[]}"#);
    assert!(message.contains("result.resultType"), "{message}");
    assert!(misfit("[1]").contains("invalid result"));
    let message = misfit(r#"{"content":[{"type":"resource","resource":{"uri":"a:b"}}]}"#);
    assert!(message.contains("need `text` or `blob`, and have neither"), "{message}");
}

#[test]
fn absent_and_odd_caching_fields_read_as_stale_and_private() {
    let caching = |fields: &str| {
        let text = format!(r#"{{"tools":[]{fields}}}"#);
        let result = decode_complete::<ListTools>(raw(&text)).unwrap();
        (result.ttl_ms, result.cache_scope)
    };
    assert_eq!(caching(""), (0, CacheScope::Private));
    assert_eq!(caching(r#","ttlMs":-5,"cacheScope":"public""#), (0, CacheScope::Public));
    assert_eq!(caching(r#","ttlMs":-0.5,"cacheScope":"everyone""#), (0, CacheScope::Private));
    assert_eq!(caching(r#","ttlMs":1500.5,"cacheScope":null"#), (1500, CacheScope::Private));
    assert_eq!(caching(r#","ttlMs":null"#), (0, CacheScope::Private));
    let sent = serde_json::to_value(ListToolsResult::default()).unwrap();
    assert_eq!(sent, json!({ "resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private" }));
}

#[test]
fn any_result_of_a_server_goes_out_as_itself() {
    let mut result = ServerResult::from(CallToolResult { content: vec!["a".into()], ..Default::default() });
    result.meta_mut().unwrap().server_info = Some(Arc::new(Implementation::new("s", "1")));
    let sent = serde_json::to_value(&result).unwrap();
    assert_eq!(
        sent,
        json!({
            "resultType": "complete", "content": [{ "type": "text", "text": "a" }],
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } }
        })
    );
    let mut cached = ServerResult::Cached(Arc::new(Raw::from(raw(r#"{"z":1, "a":2}"#))));
    assert!(cached.meta_mut().is_none());
    assert_eq!(serde_json::to_string(&cached).unwrap(), r#"{"z":1, "a":2}"#);
}

/// W10: an unknown resource is an error about parameters that carries the URI.
#[test]
fn an_unknown_resource_is_invalid_params_with_the_uri() {
    let error = ErrorObject::resource_not_found("a:b");
    assert_eq!((error.code, error.data), (-32602, Some(json!({ "uri": "a:b" }).into())));
}

/// W4: a message about parameters that do not fit names the field.
#[test]
fn params_that_do_not_fit_name_the_field() {
    let meta =
        r#"{"io.modelcontextprotocol/protocolVersion":"x","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let text = format!(r#"{{"_meta":{meta},"name":"p","arguments":{{"a":5}}}}"#);
    let error = ClientRequest::decode("prompts/get", Some(raw(&text))).unwrap_err();
    assert_eq!(error.code, -32602);
    assert!(
        error.message.starts_with("invalid params.arguments.a: invalid type: integer `5`"),
        "{}",
        error.message
    );
}

fn of_tool(result: serde_json::Value) -> CallToolResult {
    serde_json::from_value(result).unwrap()
}

/// All text of a result is joined, and other content left out.
#[test]
fn the_text_of_a_tool_is_all_of_it() {
    let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
    let text = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(of_tool(json!({ "content": [text("a"), image, text("b")] })).text(), "a\nb");
    assert_eq!(of_tool(json!({ "content": [] })).text(), "");
}

/// Structured content is decoded, and where there is none the text, if it is JSON.
#[test]
fn the_json_of_a_tool_is_its_structured_content_or_its_text() {
    let content = json!([{ "type": "text", "text": "[1, 2]" }]);
    let both = of_tool(json!({ "content": content, "structuredContent": [3] }));
    assert_eq!(both.json::<Vec<u8>>().unwrap(), [3]);
    assert!(both.json::<String>().is_err());
    assert_eq!(of_tool(json!({ "content": content })).json::<Vec<u8>>().unwrap(), [1, 2]);
    let null = of_tool(json!({ "content": content, "structuredContent": null }));
    assert_eq!(null.json::<Option<u8>>().unwrap(), None);
    let error =
        of_tool(json!({ "content": [{ "type": "text", "text": "hello" }] })).json::<u8>().unwrap_err();
    assert!(error.to_string().starts_with("no `structuredContent`, and the text does not fit: "), "{error}");
}

/// A tool that failed is an error with its text; any other result stays as it is.
#[test]
fn a_tool_that_failed_becomes_an_error() {
    let content = json!([{ "type": "text", "text": "no table is free" }]);
    let failure = of_tool(json!({ "content": content, "isError": true })).into_result().unwrap_err();
    assert_eq!(failure.to_string(), "no table is free");
    assert_eq!(failure.result().text(), "no table is free");
    assert_eq!(failure.into_inner().is_error, Some(true));
    let silent = of_tool(json!({ "content": [], "isError": true })).into_result().unwrap_err();
    assert_eq!(silent.to_string(), "the tool failed without saying why");
    for is_error in [json!(false), json!(null)] {
        let result = of_tool(json!({ "content": content, "isError": is_error }));
        assert_eq!(result.clone().into_result(), Ok(result));
    }
}
