//! Messages: ids, errors, versions and `_meta` (basic; versioning).

use roundtrip::server::{Partial, Peer};
use roundtrip::wire::{ClientCapabilities, ErrorObject, Message, SamplingCapability};
use roundtrip::{Args, Caller, Prompt, Resource, ResourceTemplate, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Connection, Running, headers, message, messages_of, meta};

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    count: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Picked {
    kind: Kind,
}

#[derive(Deserialize, JsonSchema)]
enum Kind {
    One,
}

/// One of everything.
fn server() -> Server {
    Server::new("spec-server", "1.2.3")
        .tool(Tool::new("echo", async |Args(Text { text })| text))
        .tool(Tool::new("needs_sampling", async |caller: Caller| {
            let sampling =
                ClientCapabilities { sampling: Some(SamplingCapability::default()), ..Default::default() };
            caller.require(&sampling)?;
            Ok::<_, ErrorObject>("sampled")
        }))
        .prompt(Prompt::new("hello", async || "hello"))
        .resource(Resource::new("app://motto", "motto", async || "a motto"))
        .template(
            ResourceTemplate::new("app://item/{text}", "item", async |Args(Text { text })| text)
                .complete("text", async |partial: Partial| partial.starting(["one", "two"])),
        )
}

async fn post(connection: &mut Connection, message: &Value) -> crate::support::Answer {
    connection.post(&headers(message), message.to_string().as_bytes()).await
}

/// W1: an id is a string or an integer and comes back as it was, on results and on errors.
#[tokio::test]
async fn the_id_comes_back_as_it_was() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for id in [json!(0), json!(-7), json!(i64::MAX), json!("a \"quoted\" é id"), json!("")] {
        let echo = message(id.clone(), "tools/call", json!({ "name": "echo", "arguments": { "text": "x" } }));
        assert_eq!(post(&mut connection, &echo).await.json()["id"], id);
        let unknown = message(id.clone(), "no/such", json!({}));
        assert_eq!(post(&mut connection, &unknown).await.json()["id"], id);
        let misfit = message(id.clone(), "tools/call", json!({ "name": 5 }));
        assert_eq!(post(&mut connection, &misfit).await.json()["id"], id);
    }
    for id in [json!(null), json!(1.5), json!([]), json!(true)] {
        let bad = message(id.clone(), "tools/list", json!({}));
        let answer = post(&mut connection, &bad).await;
        assert_eq!(answer.refusal(), (400, -32600), "{id}");
        assert_eq!(answer.json().get("id"), None, "{id}: an id that is not one is not echoed");
    }
}

/// W2: what is not JSON is -32700, what is not one request or notification is -32600, both as JSON-RPC, and the
/// connection goes on.
#[tokio::test]
async fn what_is_not_a_message_is_refused_in_json() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    let fine = message(1, "tools/list", json!({}));
    let headers = headers(&fine);
    for text in ["", "{", "nonsense", "{\"jsonrpc\":\"2.0\",", "\u{feff}{}"] {
        assert_eq!(connection.post(&headers, text.as_bytes()).await.refusal(), (400, -32700), "{text:?}");
    }
    assert_eq!(connection.post(&headers, b"\"\xff\"").await.refusal().0, 400);
    let batch = format!("[{fine}]");
    for text in ["[]", "1", "null", "{}", &batch, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#] {
        assert_eq!(connection.post(&headers, text.as_bytes()).await.refusal(), (400, -32600), "{text:?}");
    }
    assert_eq!(post(&mut connection, &fine).await.status, 200, "the connection is as good as new");
}

/// W3: an unknown method is -32601, and 404 on HTTP; so are those of other revisions.
#[tokio::test]
async fn unknown_methods_are_not_found() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for method in
        ["unknown/method", "initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/result"]
    {
        let answer = post(&mut connection, &message(1, method, json!({}))).await;
        assert_eq!(answer.refusal(), (404, -32601), "{method}");
        assert!(answer.error_message().contains(method));
    }
}

/// W4: params that do not fit the method are -32602, never -32601, and the message names the field.
#[tokio::test]
async fn params_that_do_not_fit_name_the_field() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    let cases = [
        ("tools/call", json!({ "name": 5 }), "params.name"),
        ("tools/call", json!({}), "name"),
        ("tools/call", json!({ "name": "echo", "requestState": 42 }), "params.requestState"),
        ("resources/read", json!({ "uri": ["x"] }), "params.uri"),
        ("prompts/get", json!({ "name": "hello", "arguments": { "a": 1 } }), "params.arguments"),
        ("completion/complete", json!({ "ref": { "type": "ref/prompt" }, "argument": {} }), "params"),
        ("tools/list", json!({ "cursor": 5 }), "params.cursor"),
        ("subscriptions/listen", json!({ "notifications": true }), "params.notifications"),
    ];
    for (method, params, field) in cases {
        let answer = post(&mut connection, &message(1, method, params.clone())).await;
        assert_eq!(answer.refusal(), (400, -32602), "{method} {params}");
        assert!(answer.error_message().contains(field), "{}", answer.error_message());
    }
    let mut params = message(1, "tools/list", json!({}));
    params["params"] = json!([1]);
    assert_eq!(post(&mut connection, &params).await.refusal(), (400, -32602));
}

/// W5: without `_meta`, its version or its capabilities a request is -32602 and 400; without client info it is
/// served.
#[tokio::test]
async fn required_meta_is_required() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for missing in ["protocolVersion", "clientCapabilities", "clientInfo"] {
        let mut request = message(1, "tools/list", json!({}));
        let fields = request["params"]["_meta"].as_object_mut().expect("an object");
        fields.remove(&format!("io.modelcontextprotocol/{missing}"));
        let answer = post(&mut connection, &request).await;
        if missing == "clientInfo" {
            assert_eq!(answer.status, 200);
        } else {
            assert_eq!(answer.refusal(), (400, -32602), "{missing}");
            assert!(answer.error_message().contains(missing), "{}", answer.error_message());
        }
    }
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(post(&mut connection, &bare).await.refusal(), (400, -32602));
    let mut level = meta();
    level["io.modelcontextprotocol/logLevel"] = json!("loud");
    let request = message(1, "tools/list", json!({ "_meta": level }));
    assert_eq!(post(&mut connection, &request).await.refusal(), (400, -32602));
}

/// W6: a version we do not serve is -32022 and 400, with what we serve in both eras and what was asked for, whatever else the
/// request holds. A revision with a handshake is not named to a request that is in it already.
#[tokio::test]
async fn unsupported_versions_are_told_the_supported_ones() {
    let running = Running::start(server()).await;
    let mut connection = running.connect().await;
    for (version, method) in [("1900-01-01", "tools/list"), ("2025-11-25", "tools/call"), ("", "no/such")] {
        let mut other = meta();
        other["io.modelcontextprotocol/protocolVersion"] = json!(version);
        let answer = post(&mut connection, &message(1, method, json!({ "_meta": other }))).await;
        assert_eq!(answer.refusal(), (400, -32022), "{version}");
        let data = answer.json()["error"]["data"].clone();
        let mut served = vec!["2026-07-28"];
        if cfg!(feature = "legacy") {
            served
                .extend(["2025-11-25", "2025-06-18", "2025-03-26"].into_iter().filter(|old| *old != version));
        }
        assert_eq!(data, json!({ "supported": served, "requested": version }));
    }
}

/// W7: every result says that it is complete and names the server in its `_meta`.
#[tokio::test]
async fn every_result_names_its_type_and_its_server() {
    let running = Running::start(server()).await;
    let calls = [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "echo", "arguments": { "text": "x" } })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "hello" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "app://motto" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": "app://item/{text}" },
                    "argument": { "name": "text", "value": "o" } }),
        ),
    ];
    for (method, params) in calls {
        let result = running.call(method, params).await.result();
        assert_eq!(result["resultType"], "complete", "{method}");
        let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server, &json!({ "name": "spec-server", "version": "1.2.3" }), "{method}");
    }
}

/// W9: a capability the call needs and the request did not declare is -32021 and 400, naming it as an object.
#[tokio::test]
async fn missing_capabilities_are_named() {
    let running = Running::start(server()).await;
    let call = json!({ "name": "needs_sampling" });
    let answer = running.call("tools/call", call.clone()).await;
    assert_eq!(answer.refusal(), (400, -32021));
    assert_eq!(answer.json()["error"]["data"], json!({ "requiredCapabilities": { "sampling": {} } }));
    let mut declared = meta();
    declared["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "sampling": {}, "unheard_of": { "x": 1 } });
    let answer = running.call("tools/call", json!({ "name": "needs_sampling", "_meta": declared })).await;
    assert_eq!(answer.result()["content"][0]["text"], "sampled");
}

/// W10: an unknown resource is -32602 with its URI in the data, and no code of an earlier revision is ever sent.
#[tokio::test]
async fn an_unknown_resource_is_invalid_params() {
    let running = Running::start(server()).await;
    for uri in ["app://nothing", "app://item/..", "app://item/a%2Fb", "", "not a uri"] {
        let answer = running.call("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer.refusal(), (200, -32602), "{uri}");
        assert_eq!(answer.json()["error"]["data"], json!({ "uri": uri }));
    }
}

/// Z2: a refusal quotes the beginning of what is refused, and is not as large as it.
#[tokio::test]
async fn a_refusal_does_not_send_back_a_mebibyte() {
    let endpoint = server()
        .prompt(Prompt::new("count", async |Args(Count { count })| count.to_string()))
        .tool(Tool::new("pick", async |Args(Picked { kind: Kind::One })| "one"))
        .build()
        .expect("a server");
    let long = "é".repeat(1 << 19);
    let mut version = meta();
    version["io.modelcontextprotocol/protocolVersion"] = json!(long);
    let pick = |arguments: Value| json!({ "name": "pick", "arguments": arguments });
    let answering = |answers: Value| json!({ "name": "echo", "inputResponses": answers });
    let requests = [
        message(1, &long, json!({})),
        message(1, "tools/list", json!({ "_meta": version })),
        message(1, "tools/list", json!({ "cursor": { (&*long): 1 } })),
        message(1, "resources/read", json!({ "uri": format!("app://{long}") })),
        message(1, "resources/read", json!({ "uri": "app://motto", "requestState": { (&*long): 1 } })),
        message(1, "prompts/get", json!({ "name": "count", "arguments": { "count": long } })),
        message(1, "prompts/get", json!({ "name": "count", "arguments": { (&*long): 1 } })),
        message(1, "tools/call", pick(json!({ "kind": long }))),
        message(1, "tools/call", pick(json!(long))),
        message(1, "tools/call", answering(json!({ (&*long): 1 }))),
        message(1, "tools/call", answering(json!({ (&*long): { "action": "maybe" } }))),
        message(1, "tools/call", answering(json!({ "a": { "action": long } }))),
        message(1, "tools/call", answering(json!(long))),
    ];
    for request in requests {
        let answered = messages_of(&endpoint, &Peer::default(), &request).await;
        let answer = answered.last().expect("an answer").to_string();
        let begins: String = request.to_string().chars().take(120).collect();
        assert!(answer.contains("rror"), "{begins}");
        assert!(answer.len() < 64 * 1024, "{} bytes for {begins}", answer.len());
    }
    let malformed = [json!(long), json!({ "jsonrpc": "2.0", "id": 1, "method": { (&*long): 1 } })];
    for text in malformed {
        let refused = Message::decode(text.to_string().as_bytes()).expect_err("no message").error;
        assert!(refused.message.len() < 4 * 1024, "{} bytes", refused.message.len());
    }
}

/// W11: fields nobody knows are tolerated on a request, in its `_meta` and in its capabilities.
#[tokio::test]
async fn unknown_fields_are_tolerated_on_requests() {
    let running = Running::start(server()).await;
    let mut meta = meta();
    meta["com.example/trace"] = json!({ "deep": [1, 2] });
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "telepathy": {}, "roots": { "listChanged": true } });
    let params =
        json!({ "name": "echo", "arguments": { "text": "x", "more": 1 }, "task": {}, "_meta": meta });
    let mut request = message(1, "tools/call", params);
    request["extension"] = json!("yes");
    let answer = post(&mut running.connect().await, &request).await;
    assert_eq!(answer.result()["content"][0]["text"], "x");
}
