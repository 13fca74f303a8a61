//! Questions that are checked when a handler asks them: URLs of pages, and conversations for a model.

use roundtrip::wire::CreateMessageRequestParams;
use roundtrip::{Args, Ask, Question, Reply, Round, Server, Tool, ToolError, When};
use serde_json::{Value, json};

use crate::logged::logged;
use crate::support::Call;
use crate::tasks::{self, TaskClient};

async fn inline(Args(url): Args<Page>, ask: Ask) -> Result<String, ToolError> {
    ask.url("page", "Please sign in", url.url).await?;
    Ok("consented".into())
}

async fn by_hand(Args(url): Args<Page>, round: Round) -> Result<Reply, ToolError> {
    Ok(round.ask([Question::url("page", "Please sign in", url.url)]))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    url: String,
}

fn pages() -> [Tool; 3] {
    [
        Tool::new("inline", inline),
        Tool::new("by_hand", by_hand),
        Tool::new("task", inline).task(When::Required),
    ]
}

fn asking(tool: &str, url: &str) -> Value {
    json!({ "name": tool, "arguments": { "url": url } })
}

/// E5: a page whose URL is not an absolute one of HTTP is the handler's mistake, found when it asks, and nobody is sent there:
/// inline, by hand, and in a task.
#[tokio::test]
async fn a_url_that_is_not_of_the_web_is_not_asked() {
    let client = TaskClient::of(tasks::server(pages()));
    let client = client.capable(json!({ "elicitation": { "form": {}, "url": {} } }));
    for (url, why) in [
        ("", "https://"),
        ("/sign-in", "https://"),
        ("x.example/in", "https://"),
        ("javascript:alert(1)", "https://"),
        ("ftp://x.example/", "https://"),
        ("https:x.example", "https://"),
        ("https://", "no host"),
        ("https:///in", "no host"),
        ("https://:8080/", "no host"),
        ("https://x.example:99999/", "port"),
        ("https://x.example/a b", "blanks"),
        ("https:\\\\x.example", "backslashes"),
    ] {
        for tool in ["inline", "by_hand"] {
            let (code, message) = client.error("tools/call", asking(tool, url)).await;
            assert_eq!(code, -32603, "{tool} {url}");
            assert!(message.contains("`page`") && message.contains(why), "{tool} {url}: {message}");
        }
        let ended = client.ended(&client.start("task", json!({ "url": url })).await).await;
        assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!(-32603)), "{url}");
    }
    for url in
        ["https://x.example/in?a=b#c", "HTTPS://u@X.example:8443", "http://localhost:80/", "https://[::1]/x"]
    {
        let asked = client.result("tools/call", asking("inline", url)).await;
        assert_eq!(asked["inputRequests"]["page"]["params"]["url"], url, "{asked}");
    }
}

/// E5: a page that is reached by plain HTTP and is not on this machine is asked for, and the log warns.
#[test]
fn plain_http_to_another_machine_is_logged() {
    let warned = |url: &'static str| {
        let log = logged(async move {
            let client = TaskClient::of(tasks::server(pages()));
            let client = client.capable(json!({ "elicitation": { "form": {}, "url": {} } }));
            let asked = client.ask("tools/call", asking("inline", url)).await;
            assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        });
        log.contains("people are sent to a page by plain http")
    };
    assert!(warned("http://x.example/in"));
    for url in ["https://x.example/in", "http://localhost/in", "http://127.0.0.1:80/in", "http://[::1]/in"] {
        assert!(!warned(url), "{url}");
    }
}

/// E5, L2: a client of a handshake revision is not sent to such a page either.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn an_old_client_is_not_sent_to_such_a_page() {
    use crate::peers::{Pipe, V2025_11_25, everything, request};

    let server = Server::new("s", "1").tool(Tool::new("inline", inline));
    let mut pipe = Pipe::agreed(server, V2025_11_25, &everything()).await;
    let refused = pipe.call(&request(1, "tools/call", asking("inline", "/sign-in"))).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
}

fn talk(messages: &Value) -> CreateMessageRequestParams {
    serde_json::from_value(json!({ "messages": messages, "maxTokens": 9 })).expect("a conversation")
}

fn uses(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "look", "input": {} })
}

fn gives(id: &str) -> Value {
    json!({ "type": "tool_result", "toolUseId": id, "content": [] })
}

/// M2: a conversation in which a tool use lacks its result, or a result is beside something else, is the handler's mistake.
#[tokio::test]
async fn a_conversation_with_a_broken_tool_use_is_not_asked() {
    let text = json!({ "type": "text", "text": "?" });
    let user = |content: Value| json!({ "role": "user", "content": content });
    let model = |content: Value| json!({ "role": "assistant", "content": content });
    let ask = async |messages: Value| {
        let params = talk(&messages);
        let handler = move |ask: Ask| {
            let params = params.clone();
            async move { ask.sample("model", params).await.map(|_| "said") }
        };
        let endpoint = Server::new("s", "1").tool(Tool::new("ask", handler)).build().expect("a server");
        Call::tool("ask").declaring(&json!({ "sampling": { "tools": {} } })).begin(&endpoint).await
    };
    for (messages, why) in [
        (
            json!([user(text.clone()), model(json!([uses("a")])), user(json!([gives("a"), text]))]),
            "message 3",
        ),
        (json!([model(json!([uses("a"), uses("b")])), user(json!([gives("a")]))]), "`b` is missing"),
        (json!([model(json!([uses("a")])), user(text.clone())]), "`a` is missing"),
        (json!([model(json!([uses("a")]))]), "`a`"),
        (json!([user(json!([gives("x")]))]), "`x` is not an open tool use"),
        (json!([model(json!([uses("a")])), user(json!([gives("a"), gives("a")]))]), "`a` is not an open"),
        (json!([model(json!([uses("a")])), model(json!([gives("a")]))]), "message 2"),
        (json!([user(json!([uses("a")])), user(json!([gives("a")]))]), "message 1"),
    ] {
        let refused = ask(messages.clone()).await;
        let (code, message) = refused.error();
        assert!(code == -32603 && message.contains(why), "{messages}: {message}");
    }
    let good = json!([
        user(text.clone()),
        model(json!([text, uses("a"), uses("b")])),
        user(json!([gives("b"), gives("a")])),
        model(text.clone()),
    ]);
    assert_eq!(ask(good).await.question("model")["method"], "sampling/createMessage");
}
