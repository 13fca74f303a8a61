//! Every kind of call, against a real server, by every transport that needs no child.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::client::{ServerRejection, Turn};
use roundtrip::wire::{ClientCapabilities, ListTools, LoggingLevel, RootsCapability};
use roundtrip::{Ask, AskError, Caller, Client, Error, Extension, InProcess, Principal, Server, Tool};
use serde_json::json;

use crate::fixture::{serve, server, text};
use crate::peer::{next, peer};

async fn both(check: impl AsyncFn(Client)) {
    check(Client::in_process(server()).expect("a sound server")).await;
    let (client, _stop) = serve(server()).await;
    check(client).await;
}

#[tokio::test]
async fn every_method_gives_its_result() {
    both(async |client| {
        let info = client.discover().await.expect("discover");
        assert_eq!(info.meta.server_info.as_ref().map(|info| &*info.name), Some("fixture"));

        let result = client.call_tool("greet", json!({ "name": "Ada" })).await.expect("greet");
        assert_eq!(text(&result), "Hello, Ada!");
        let failed = client.call_tool("fail", ()).await.expect("a result all the same");
        assert_eq!(failed.is_error, Some(true));

        let prompts = client.list_prompts().await.expect("prompts");
        assert_eq!(prompts[0].name, "review");
        let prompt = client.get_prompt("review").argument("lang", "rust").argument("code", "fn").await;
        let shown = serde_json::to_string(&prompt.expect("a prompt").messages).expect("serialises");
        assert!(shown.contains("Review this rust: fn"), "{shown}");

        assert_eq!(client.list_resources().await.expect("resources")[0].uri, "app://motto");
        let templates = client.list_resource_templates().await.expect("templates");
        assert_eq!(templates[0].uri_template, "app://pages/{page}");
        let read = client.read_resource("app://pages/one").await.expect("a page");
        assert_eq!(read.contents[0].uri(), "app://pages/one");

        let suggested = client.complete_prompt("review", "lang", "ru").await.expect("suggestions");
        assert_eq!(suggested.completion.values, ["ruby", "rust"]);
        let suggested = client.complete_prompt("review", "lang", "").context("code", "fn").await;
        assert_eq!(suggested.expect("suggestions").completion.values, ["rust"]);
        let suggested = client.complete_resource("app://pages/{page}", "page", "t").await;
        assert_eq!(suggested.expect("suggestions").completion.values, ["two"]);
    })
    .await;
}

/// N3: a list is given whole, and page by page, by following its cursors.
#[tokio::test]
async fn lists_are_given_whole_and_page_by_page() {
    both(async |client| {
        assert_eq!(client.list_tools().await.expect("tools").len(), 6);
        let mut pages = client.list_tools().pages();
        let mut sizes = Vec::new();
        while let Some(page) = pages.next().await {
            sizes.push(page.expect("a page").len());
        }
        assert_eq!(sizes, [2, 2, 2]);
        let first = client.request::<ListTools>(()).await.expect("a page");
        let second = json!({ "cursor": first.next_cursor.expect("more pages") });
        assert_eq!(client.request::<ListTools>(second).await.expect("a page").tools.len(), 2);
    })
    .await;
}

/// N2: progress comes to calls that ask for it, growing, and log messages from the level asked for.
#[tokio::test]
async fn progress_and_log_messages_come_before_the_result() {
    both(async |client| {
        let steps: Arc<Mutex<Vec<f64>>> = Arc::default();
        let logs: Arc<Mutex<Vec<LoggingLevel>>> = Arc::default();
        let call = |level: Option<LoggingLevel>| {
            let (steps, logs) = (Arc::clone(&steps), Arc::clone(&logs));
            let call = client
                .call_tool("work", ())
                .on_progress(move |step| steps.lock().expect("steps").push(step.progress))
                .on_log(move |message| logs.lock().expect("logs").push(message.level));
            match level {
                Some(level) => call.log_level(level),
                None => call,
            }
        };
        assert_eq!(text(&call(None).await.expect("done")), "done");
        assert_eq!(*steps.lock().expect("steps"), [1.0, 2.0, 3.0]);
        assert_eq!(*logs.lock().expect("logs"), [LoggingLevel::Info, LoggingLevel::Error]);
        logs.lock().expect("logs").clear();
        call(Some(LoggingLevel::Error)).await.expect("done");
        assert_eq!(*logs.lock().expect("logs"), [LoggingLevel::Error]);
    })
    .await;
}

#[tokio::test]
async fn every_request_says_who_calls_and_what_it_can_do() {
    both(async |client| {
        let shown = text(&client.call_tool("whoami", ()).await.expect("a result"));
        assert_eq!(shown, format!("roundtrip {} None false", env!("CARGO_PKG_VERSION")));
        let capabilities = ClientCapabilities { roots: Some(RootsCapability {}), ..Default::default() };
        let client = client.info("mine", "9").capabilities(capabilities);
        let result = client.call_tool("whoami", ()).meta("com.example/x", 1).await.expect("a result");
        assert_eq!(text(&result), "mine 9 Some(1) true");
    })
    .await;
}

#[tokio::test]
async fn a_call_without_an_answer_ends_in_time() {
    both(async |client| {
        let limit = Duration::from_millis(50);
        let error = client.call_tool("hang", ()).timeout(limit).await.expect_err("no answer");
        assert!(matches!(error, Error::Timeout { after, .. } if after == limit), "{error}");
        let error = client.timeout(limit).call_tool("hang", ()).await.expect_err("no answer");
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
    })
    .await;
}

#[tokio::test]
async fn an_error_of_the_server_is_the_calls_error() {
    both(async |client| {
        let Err(Error::Rejected(error)) = client.read_resource("app://nowhere").await else {
            panic!("an unknown resource")
        };
        let error = error.error();
        assert_eq!((error.code, &error.data), (-32602, &Some(json!({ "uri": "app://nowhere" }).into())));
    })
    .await;
}

#[tokio::test]
async fn mistakes_of_the_caller_are_named_when_the_call_is_made() {
    let client = Client::in_process(server()).expect("a sound server");
    let misuse = |result: Result<_, Error>| match result {
        Err(Error::ApiMisuse(why)) => why.to_string(),
        other => panic!("misuse, not {other:?}"),
    };
    assert!(misuse(client.call_tool("greet", "Ada").await).contains("must be an object"));
    assert!(misuse(client.call_tool("greet", ()).meta("progressToken", 1).await).contains("progressToken"));
    let as_ada = Client::http("http://127.0.0.1:9/mcp").expect("a url").principal(Principal::new("ada"));
    assert!(misuse(as_ada.call_tool("greet", ()).await).contains("`principal`"));
    let with_header = client.clone().header("x-token", "1");
    assert!(misuse(with_header.call_tool("greet", ()).await).contains("`header`"));
    let bad = Client::http("http://127.0.0.1:9/mcp").expect("a url").header("no name", "1");
    assert!(misuse(bad.call_tool("greet", ()).await).contains("no header name"));
    assert!(matches!(Client::http("ftp://example.com"), Err(Error::ApiMisuse(_))));
    assert!(matches!(Client::http("nonsense"), Err(Error::ApiMisuse(_))));
}

#[tokio::test]
async fn calls_run_side_by_side_and_can_be_sent_to_other_tasks() {
    let (client, _stop) = serve(server()).await;
    let calls: Vec<_> = (0..20)
        .map(|number| {
            tokio::spawn(client.call_tool("greet", json!({ "name": number.to_string() })).into_future())
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        let result = call.await.expect("no panic").expect("a result");
        assert_eq!(text(&result), format!("Hello, {number}!"));
    }
}

#[derive(Clone)]
struct Tenant(&'static str);

async fn sign(
    ask: Ask,
    caller: Caller,
    Extension(Tenant(tenant)): Extension<Tenant>,
) -> Result<String, AskError> {
    ask.confirm("sign", "Sign it?").await?;
    Ok(format!("{} of {tenant}", caller.principal.map(|who| who.to_string()).unwrap_or_default()))
}

#[tokio::test]
async fn calls_in_process_have_a_principal_and_extensions() {
    let endpoint = Server::new("s", "1").tool(Tool::new("sign", sign)).build().expect("a sound server");
    let client = Client::new(InProcess::new(endpoint)).extension(Tenant("acme"));
    let ada = client.clone().principal(Principal::new("ada"));
    let Ok(Turn::Asked(pending)) = ada.call_tool("sign", ()).one_round().await else { panic!("a question") };
    let answered = pending.answer("sign", json!({ "confirm": true })).expect("an answer that fits");
    let other = client.principal(Principal::new("grace")).resume(answered.clone()).await;
    assert!(matches!(other, Err(Error::Rejected(ServerRejection::StateRejected(_)))), "{other:?}");
    let Ok(Turn::Done(signed)) = ada.resume(answered).await else { panic!("a result") };
    assert_eq!(text(&signed), "ada of acme");
}

/// W11: an empty text is a cursor like any other: the client asks for the page behind it.
#[tokio::test]
async fn an_empty_cursor_is_not_the_end_of_a_list() {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let (client, mut seen) = peer(move |number, request| match number {
        0 => request.result(&json!({ "tools": [tool("a")], "nextCursor": "" })),
        _ => request.result(&json!({ "tools": [tool("b")] })),
    })
    .await;
    let names: Vec<String> =
        client.list_tools().await.expect("tools").into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(next(&mut seen).await.body["params"].get("cursor"), None);
    assert_eq!(next(&mut seen).await.body["params"]["cursor"], "");
}
