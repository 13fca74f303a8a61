//! Messages and what is inside of them are objects: a list of the values of their members runs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::{Args, Json, Server, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::peers::Pipe;
#[cfg(feature = "legacy")]
use crate::peers::{V2025_11_25, Web, everything, initialize, request, tool};
use crate::support::{Running, headers, message, meta};

/// The revisions of the handshake eras that HTTP has.
#[cfg(feature = "legacy")]
const OLD: [&str; 3] = ["2025-03-26", "2025-06-18", V2025_11_25];

/// A server whose tool counts its runs.
fn counting() -> (Server, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let count = Tool::new("count", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { "counted" }
    });
    (Server::new("s", "1").tool(count), runs)
}

fn call() -> Value {
    message(1, "tools/call", json!({ "name": "count", "arguments": {} }))
}

/// The call with lists in place of objects, and the code that each is refused with.
fn lists() -> Vec<(Value, i64)> {
    let mut whole = call();
    let with = |change: fn(&mut Value)| {
        let mut call = call();
        change(&mut call);
        call
    };
    let params = with(|call| call["params"] = json!([meta(), "count", {}]));
    let capabilities = with(|call| {
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!([]);
    });
    vec![
        (json!(["2.0", 1, "tools/call", whole["params"].take()]), -32600),
        (params, -32602),
        (capabilities, -32602),
    ]
}

/// W2: a list of the members of a call runs no tool on a pipe.
#[tokio::test]
async fn a_list_is_not_taken_for_a_call_on_a_pipe() {
    let (server, runs) = counting();
    let mut pipe = Pipe::open(server);
    for (list, code) in lists() {
        let refused = pipe.call(&list).await;
        assert_eq!(refused["error"]["code"], code, "{list}: {refused}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(pipe.call(&call()).await["result"]["content"][0]["text"], "counted");
}

/// W2: a list of the members of a call runs no tool on HTTP, whatever its headers say.
#[tokio::test]
async fn a_list_is_not_taken_for_a_call_on_http() {
    let (server, runs) = counting();
    let running = Running::start(server).await;
    let mut connection = running.connect().await;
    for (list, code) in lists() {
        let refused = connection.post(&headers(&call()), list.to_string().as_bytes()).await;
        assert_eq!(refused.refusal(), (400, code), "{list}: {refused:?}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    let answer = connection.post(&headers(&call()), call().to_string().as_bytes()).await;
    assert_eq!(answer.result()["content"][0]["text"], "counted");
}

/// W2: a list is answered as the batch that it is, also an empty one.
#[tokio::test]
async fn a_list_is_answered_as_a_batch() {
    let running = Running::start(counting().0).await;
    let mut connection = running.connect().await;
    for list in ["[]", " [ ]", r#"["2.0",1,"tools/list"]"#, "[[[]]]"] {
        let refused = connection.post(&headers(&call()), list.as_bytes()).await;
        assert_eq!(refused.refusal(), (400, -32600), "{list}");
        assert!(refused.error_message().starts_with("batches are not part"), "{list}: {refused:?}");
    }
    for broken in ["[", "[1,", r#"["2.0",1"#, "[]]"] {
        let refused = connection.post(&headers(&call()), broken.as_bytes()).await;
        assert_eq!(refused.refusal(), (400, -32700), "{broken}");
    }
}

/// W2: a list of the members of a call runs no tool in a session on HTTP, nor does one of its parameters.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn a_list_is_not_taken_for_a_call_in_a_session() {
    for revision in OLD {
        let (server, runs) = counting();
        let client = Web::new(server).session(revision, &everything()).await;
        let mut params = tool(1, "count");
        params["params"] = json!([{}, "count", {}]);
        let whole = json!(["2.0", 1, "tools/call", { "name": "count", "arguments": {} }]);
        for list in [whole, params] {
            let mut refused = client.post(&list).await;
            let message = refused.json().await;
            assert!(message["error"]["code"].is_i64(), "{revision}, {list}: {message}");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 0, "{revision}");
        let mut answer = client.with("accept", "application/json").post(&tool(2, "count")).await;
        assert_eq!(answer.json().await["result"]["content"][0]["text"], "counted", "{revision}");
    }
}

/// W2: the same in a session on a pipe.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn a_list_is_not_taken_for_a_call_in_a_session_on_a_pipe() {
    for revision in OLD {
        let (server, runs) = counting();
        let mut pipe = Pipe::agreed(server, revision, &everything()).await;
        let mut params = tool(1, "count");
        params["params"] = json!([{}, "count", {}]);
        let refused = pipe.call(&params).await;
        assert!(refused["error"]["code"].is_i64(), "{revision}: {refused}");
        let whole = json!(["2.0", 1, "tools/call", { "name": "count", "arguments": {} }]);
        pipe.send(&whole).await;
        // In 2025-03-26 it is a batch, none of whose four is a message.
        for _ in 0..if revision == "2025-03-26" { 4 } else { 1 } {
            let refused = pipe.receive().await;
            assert_eq!(refused["error"]["code"], -32600, "{revision}: {refused}");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 0, "{revision}");
    }
}

/// L1: a list is not taken for the parameters of `initialize`, nor for anything inside of them.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn a_list_does_not_begin_a_session() {
    let whole = json!([V2025_11_25, {}, { "name": "old", "version": "1" }]);
    let inside = initialize(V2025_11_25, &json!([]))["params"].clone();
    for params in [whole, inside] {
        let mut refused = Web::new(counting().0).post(&request(0, "initialize", params.clone())).await;
        assert!(refused.header("mcp-session-id").is_none(), "{params}");
        assert_eq!(refused.json().await["error"]["code"], -32602, "{params}");
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Trip {
    from: Place,
    stops: Vec<Stop>,
    /// Latitude and longitude.
    at: (f64, f64),
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Place {
    city: String,
    platform: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Stop {
    Pass,
    Wait { minutes: u8, place: Place },
    Change(Place, u8),
}

/// N4: a list in place of an object inside of the arguments is refused, and the place is named; what is a list in
/// Rust is a list.
#[tokio::test]
async fn a_list_is_not_taken_for_a_struct_inside_of_the_arguments() {
    let travel = Tool::new("travel", async |Args(trip): Args<Trip>| Json(trip));
    // A schema that leaves the check to the type.
    #[cfg(feature = "validation")]
    let travel = travel.input_schema(json!({ "type": "object" }));
    let mut pipe = Pipe::open(Server::new("s", "1").tool(travel));
    let place = || json!({ "city": "Bern", "platform": 7 });
    let good = json!({
        "from": place(),
        "stops": ["Pass", { "Wait": { "minutes": 5, "place": place() } }, { "Change": [place(), 3] }],
        "at": [46.9, 7.4],
    });
    let mut call = async |arguments: Value| {
        let call = message(1, "tools/call", json!({ "name": "travel", "arguments": arguments }));
        pipe.call(&call).await["result"].take()
    };
    assert_eq!(call(good.clone()).await["structuredContent"], good);
    for (place, list) in [
        ("/from", json!(["Bern", 7])),
        ("/stops/1/Wait", json!([5, place()])),
        ("/stops/1/Wait/place", json!(["Bern", 7])),
        ("/stops/2/Change/0", json!(["Bern", 7])),
    ] {
        let mut arguments = good.clone();
        *arguments.pointer_mut(place).expect("a place") = list;
        let refused = call(arguments).await;
        let told = refused["content"][0]["text"].as_str().expect("text");
        assert!(refused["isError"] == true && told.starts_with("invalid arguments: "), "{place}: {refused}");
        assert!(told.contains(&place[..5]), "{place}: {told}");
    }
}
