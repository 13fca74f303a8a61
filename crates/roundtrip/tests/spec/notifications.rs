//! Subscriptions, progress and logging (patterns, "Subscriptions", "Progress"; utilities, "Logging").

use std::sync::Arc;
use std::time::Duration;

use roundtrip::seal::Sealer;
use roundtrip::server::Peer;
use roundtrip::wire::{LONGEST_ID, LoggingLevel};
use roundtrip::{Ask, Catalog, Log, Progress, Prompt, Resource, Server, Tool, ToolError};
use serde_json::{Value, json};

use crate::asking::yes;
use crate::fleet::Slow;
use crate::support::{Call, Connection, Running, headers, message, messages_of, meta};

async fn nothing() -> &'static str {
    ""
}

fn server() -> Server {
    Server::new("s", "1")
        .tool(Tool::new("t", nothing))
        .prompt(Prompt::new("p", nothing))
        .resource(Resource::new("app://r", "r", nothing))
}

async fn listen(running: &Running, id: &str, filter: Value) -> Connection {
    let mut connection = running.connect().await;
    let request = message(id, "subscriptions/listen", json!({ "notifications": filter }));
    connection.send("POST", &headers(&request), request.to_string().as_bytes()).await;
    assert_eq!(connection.head().await.header("content-type"), Some("text/event-stream"));
    connection
}

fn change(catalog: &Catalog, name: &str) {
    catalog.add(Tool::new(format!("tool_{name}"), nothing)).expect("a tool");
    catalog.add(Prompt::new(format!("prompt_{name}"), nothing)).expect("a prompt");
    catalog.add(Resource::new(format!("app://{name}"), name, nothing)).expect("a resource");
    catalog.resource_updated("app://r");
    catalog.resource_updated("app://other");
}

/// N1: a subscription is acknowledged first with what will be honoured, tells what it was asked to tell and nothing
/// else, and tags every message with its own id; several run side by side.
#[tokio::test]
async fn subscriptions_tell_what_they_were_asked_to() {
    let server = server();
    let catalog = server.catalog();
    let running = Running::start(server).await;
    let wants_all = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
                            "resourceSubscriptions": ["app://r"], "unheardOf": true });
    let mut all = listen(&running, "all", wants_all).await;
    let mut some =
        listen(&running, "some", json!({ "promptsListChanged": true, "toolsListChanged": false })).await;
    let acknowledged = all.event().await.expect("an acknowledgement");
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!(["app://r"]));
    assert_eq!(
        some.event().await.expect("one")["params"]["notifications"],
        json!({ "promptsListChanged": true })
    );

    change(&catalog, "x");
    let tag = "io.modelcontextprotocol/subscriptionId";
    let (mut methods, mut rest) = (Vec::new(), String::new());
    while methods.len() < 4 {
        rest += &all.chunk().await.expect("more");
        methods = rest.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect();
    }
    let told: Vec<Value> = methods.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect();
    let kinds: Vec<&str> = told.iter().filter_map(|event| event["method"].as_str()).collect();
    assert_eq!(
        kinds,
        [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated"
        ]
    );
    assert!(told.iter().all(|event| event["params"]["_meta"][tag] == "all"));
    assert_eq!(told[3]["params"]["uri"], "app://r");
    let other = some.event().await.expect("one");
    assert_eq!(
        (&other["method"], &other["params"]["_meta"][tag]),
        (&json!("notifications/prompts/list_changed"), &json!("some"))
    );
}

/// N1: a change that the catalog does not see can be announced.
#[tokio::test]
async fn a_change_can_be_announced() {
    let server = server();
    let catalog = server.catalog();
    let running = Running::start(server).await;
    let wants = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
    let mut listener = listen(&running, "all", wants).await;
    listener.event().await.expect("an acknowledgement");
    type Announce = fn(&Catalog);
    let announcements: [(Announce, &str); 3] = [
        (Catalog::prompts_changed, "notifications/prompts/list_changed"),
        (Catalog::tools_changed, "notifications/tools/list_changed"),
        (Catalog::resources_changed, "notifications/resources/list_changed"),
    ];
    for (announce, method) in announcements {
        announce(&catalog);
        assert_eq!(listener.event().await.expect("a notification")["method"], method);
    }
}

/// N1: a listener that does not keep up costs no memory: what changed meanwhile is told once.
#[tokio::test]
async fn a_slow_listener_is_told_once() {
    let server = server();
    let catalog = server.catalog();
    let endpoint = server.build().expect("a server");
    let request =
        message(1, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
            .to_string();
    let roundtrip::wire::Message::Request(request) =
        roundtrip::wire::Message::decode(request.as_bytes()).expect("JSON")
    else {
        panic!("a request")
    };
    let decoded = endpoint.decode(&request).expect("a request");
    let mut call = endpoint.begin(request.id.clone(), &decoded, &Peer::default());
    assert!(matches!(call.event().await, roundtrip::server::Event::Notification(_)), "acknowledged");
    for number in 0..10_000 {
        catalog.add(Tool::new(format!("tool_{number}"), nothing)).expect("a tool");
    }
    assert!(matches!(call.event().await, roundtrip::server::Event::Notification(_)), "told");
    endpoint.close_subscriptions();
    let roundtrip::server::Event::Response(Ok(_)) = call.event().await else {
        panic!("the graceful end, and nothing before it")
    };
}

/// N1: what a server does not have is not honoured, and a subscription to too much is refused.
#[tokio::test]
async fn subscriptions_are_honoured_as_far_as_possible() {
    let running = Running::start(Server::new("s", "1").tool(Tool::new("t", nothing))).await;
    let mut connection = listen(
        &running,
        "x",
        json!({ "promptsListChanged": true, "toolsListChanged": true,
                                                       "resourceSubscriptions": ["app://r"] }),
    )
    .await;
    let acknowledged = connection.event().await.expect("an acknowledgement");
    assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }));
    let running = Running::start(server()).await;
    let much: Vec<String> = (0..2_000).map(|number| format!("app://{number}")).collect();
    let answer = running
        .call("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": much } }))
        .await;
    assert_eq!(answer.refusal().1, -32602);
}

/// N2: progress is sent only with a token, and only increasing; nothing is sent after the result.
#[tokio::test]
async fn progress_increases() {
    let tool = Tool::new("work", async |progress: Progress| {
        for step in [1.0, 2.0, 2.0, 1.5, f64::NAN, 3.0] {
            progress.report(step);
        }
        let late = progress.clone();
        drop(tokio::spawn(async move { late.report(99) }));
        tokio::task::yield_now().await;
        "done"
    });
    let running = Running::start(Server::new("s", "1").tool(tool)).await;
    let silent = running.call("tools/call", json!({ "name": "work" })).await;
    assert_eq!(silent.result()["content"][0]["text"], "done");
    let mut meta = meta();
    meta["progressToken"] = json!(7);
    let events = running.call("tools/call", json!({ "name": "work", "_meta": meta })).await.events();
    let steps: Vec<&Value> =
        events.iter().filter(|event| event["method"] == "notifications/progress").collect();
    assert!(steps.iter().all(|event| event["params"]["progressToken"] == 7));
    let values: Vec<f64> = steps.iter().filter_map(|event| event["params"]["progress"].as_f64()).collect();
    assert_eq!(values[..3], [1.0, 2.0, 3.0]);
    assert!(events.last().expect("a result").get("result").is_some());
}

/// N2: log messages are sent only to a request that asked, from the level it asked for up.
#[tokio::test]
async fn logs_are_sent_at_the_level_asked_for() {
    let tool = Tool::new("work", async |log: Log| {
        for level in [LoggingLevel::Debug, LoggingLevel::Info, LoggingLevel::Warning, LoggingLevel::Emergency]
        {
            log.send(level, json!({ "at": level }));
        }
        "done"
    });
    let running = Running::start(Server::new("s", "1").tool(tool)).await;
    assert_eq!(
        running.call("tools/call", json!({ "name": "work" })).await.result()["content"][0]["text"],
        "done"
    );
    for (level, expected) in [("debug", 4), ("warning", 2), ("emergency", 1)] {
        let mut meta = meta();
        meta["io.modelcontextprotocol/logLevel"] = json!(level);
        let events = running.call("tools/call", json!({ "name": "work", "_meta": meta })).await.events();
        let logs = events.iter().filter(|event| event["method"] == "notifications/message");
        assert_eq!(logs.count(), expected, "{level}");
    }
    let capabilities = running.call("server/discover", json!({})).await.result()["capabilities"].clone();
    assert_eq!(capabilities["logging"], json!({}), "a handler that logs declares it");
}

/// N2: there is a method for each of the specification's levels.
#[tokio::test]
async fn every_level_has_a_method() {
    let tool = Tool::new("work", async |log: Log| {
        log.debug(1);
        log.info(2);
        log.notice(3);
        log.warning(4);
        log.error(5);
        log.critical(6);
        log.alert(7);
        log.emergency(8);
    });
    let running = Running::start(Server::new("s", "1").tool(tool)).await;
    let mut meta = meta();
    meta["io.modelcontextprotocol/logLevel"] = json!("debug");
    let events = running.call("tools/call", json!({ "name": "work", "_meta": meta })).await.events();
    let logs = events.iter().filter(|event| event["method"] == "notifications/message");
    let levels: Vec<&Value> = logs.map(|event| &event["params"]["level"]).collect();
    let all = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    assert_eq!(levels, all);
}

/// N2: progress and logs of a later round are sent although its state is opened by a codec that has to be waited for.
#[tokio::test]
async fn progress_is_sent_in_rounds_whose_state_is_opened_slowly() {
    async fn work(ask: Ask, progress: Progress, log: Log) -> Result<&'static str, ToolError> {
        ask.confirm("sure", "Sure?").await?;
        progress.report(1.0);
        log.send(LoggingLevel::Error, json!("halfway"));
        Ok("done")
    }
    let server = Server::new("s", "1")
        .seal(Sealer::with_codec(Slow(Arc::default())))
        .tool(Tool::new("work", work))
        .around(|_, next| next.run());
    let endpoint = server.build().expect("a server");
    let call = Call::tool("work");
    let first = call.begin(&endpoint).await;
    let mut request = call.request(first.state(), Some(yes("sure")));
    request["params"]["_meta"]["progressToken"] = json!("t");
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let messages = messages_of(&endpoint, &Peer::default(), &request).await;
    let methods: Vec<_> = messages.iter().filter_map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, ["notifications/progress", "notifications/message"], "{messages:?}");
    assert_eq!(messages[2]["result"]["content"][0]["text"], "done");
}

/// Z2: a progress token is copied into every notification, so its length has a limit, which the refusal names.
#[tokio::test]
async fn a_progress_token_of_a_mebibyte_is_refused() {
    let running = Running::start(server()).await;
    let call = |length: usize| {
        let mut meta = meta();
        meta["progressToken"] = json!("x".repeat(length));
        message(1, "tools/call", json!({ "name": "t", "_meta": meta }))
    };
    let mut connection = running.connect().await;
    for length in [LONGEST_ID + 1, 1024 * 1024] {
        let call = call(length);
        let refused = connection.post(&headers(&call), call.to_string().as_bytes()).await;
        assert_eq!(refused.refusal(), (400, -32602));
        assert!(refused.error_message().contains("at most 1024 bytes"), "{}", refused.error_message());
        assert!(refused.body.len() < 1024, "what is too long is not repeated");
    }
    let call = call(LONGEST_ID);
    assert_eq!(connection.post(&headers(&call), call.to_string().as_bytes()).await.status, 200);
}

/// Z2: the same for ids, which are kept for as long as a request runs; the refusal has none.
#[tokio::test]
async fn an_id_of_a_mebibyte_is_refused() {
    let running = Running::start(server()).await;
    let call = message("x".repeat(1024 * 1024), "tools/call", json!({ "name": "t" }));
    let refused = running.connect().await.post(&headers(&call), call.to_string().as_bytes()).await;
    assert_eq!((refused.refusal(), refused.json().get("id")), ((400, -32600), None));
    assert!(refused.error_message().contains("at most 1024 bytes"), "{}", refused.error_message());
}

/// Z2: what a handler says before anybody can read it is bounded in bytes, not in messages alone.
#[tokio::test]
async fn long_log_messages_nobody_reads_are_bounded_in_bytes() {
    let server = Server::new("s", "1").tool(Tool::new("chatty", async |log: Log| {
        let text = "x".repeat(10_000);
        for _ in 0..200 {
            log.error(&text);
        }
        "said"
    }));
    let running = Running::start(server).await;
    let mut meta = meta();
    meta["io.modelcontextprotocol/logLevel"] = json!("debug");
    let answer = running.call("tools/call", json!({ "name": "chatty", "_meta": meta })).await;
    let events = answer.events();
    assert!((20..=27).contains(&events.len()), "256 KiB and the answer: {}", events.len());
    assert_eq!(events.last().expect("an answer")["result"]["content"][0]["text"], "said");
}

/// N2: progress that comes faster than anybody reads is sent at a bounded rate; the newest report is sent once its time has come,
/// and the last one always before the result.
#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_is_sent_at_a_bounded_rate() {
    async fn flood(progress: Progress) -> &'static str {
        for number in 1..=1_000 {
            progress.report(f64::from(number));
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        for number in 1_001..=2_000 {
            progress.report(f64::from(number));
        }
        "done"
    }
    let endpoint = Server::new("s", "1").tool(Tool::new("flood", flood)).build().expect("a server");
    let mut meta = meta();
    meta["progressToken"] = json!("t");
    let request = message(1, "tools/call", json!({ "name": "flood", "_meta": meta }));
    let said = messages_of(&endpoint, &Peer::default(), &request).await;
    let (result, progress) = said.split_last().expect("a result");
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
    let sent: Vec<f64> =
        progress.iter().map(|message| message["params"]["progress"].as_f64().expect("a number")).collect();
    assert!(sent.len() <= 2 * 17, "{}", sent.len());
    assert!(sent.is_sorted_by(|a, b| a < b) && sent.contains(&1_000.0), "{sent:?}");
    assert_eq!(sent.last(), Some(&2_000.0));
}
