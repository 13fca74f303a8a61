//! Capabilities declared to servers of each revision, and the answers that follow from them.

use std::sync::Arc;

use roundtrip::wire::{ClientCapabilities, CreateMessageResult, ProtocolVersion, Role, SamplingContent};
use roundtrip::{Client, Error, SampleRequest, Turn, UrlRequest};
use serde_json::{Value, json};

use super::asking::{ada, tool};
use super::server::{Old, Seen, form, json_reply};
use crate::fixture::text;

const OLD: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn pages(client: Client) -> Client {
    client.on_url(async |page: UrlRequest| page.consent())
}

/// A client that can do everything.
fn able(client: Client) -> Client {
    pages(client.on_form(ada)).roots(["file:///x"]).sampling_tools().on_sample(async |_: SampleRequest| {
        let content = json!({ "type": "text", "text": "!" });
        let content = serde_json::from_value::<SamplingContent>(content).expect("content");
        let (role, model) = (Role::Assistant, "m".to_owned());
        CreateMessageResult { role, content, model, stop_reason: None, meta: None }
    })
}

fn page(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {
        "mode": "url", "elicitationId": "e", "url": "https://x.example", "message": "go" } })
}

fn sampling(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": { "type": "text", "text": "?" } }], "maxTokens": 9,
        "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] } })
}

/// Asks for everything there is, and says what it was told.
async fn asks_everything(old: Arc<Old>, seen: Seen, sender: super::server::Sender) {
    sender.message(&form("form", "Who?"));
    sender.message(&page("page"));
    sender.message(&sampling("sample"));
    let mut said = Vec::new();
    for id in ["form", "page", "sample"] {
        let answer = old.response(&json!(id)).await;
        said.push(if answer.get("result").is_some() {
            json!("answered")
        } else {
            answer["error"]["code"].clone()
        });
    }
    sender.message(&seen.says(&json!(said).to_string()));
}

async fn told(old: &Old) -> Value {
    old.wait(|seen| seen.method() == "initialize").await.body["params"]["capabilities"].clone()
}

/// C7: a revision is told what it has words for and the client can do; what it was not told of is refused, and what it was
/// told of is answered.
#[tokio::test]
async fn a_pinned_revision_is_told_exactly_what_it_has() {
    let plain = json!({ "roots": {}, "sampling": {} });
    let forms = json!({ "roots": {}, "sampling": {}, "elicitation": {} });
    let all = json!({ "roots": {}, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } });
    let answers = [
        "[-32601,-32601,-32602]",
        "[-32601,-32601,-32602]",
        r#"["answered",-32602,-32602]"#,
        r#"["answered","answered","answered"]"#,
    ];
    for ((version, declared), answers) in OLD.into_iter().zip([&plain, &plain, &forms, &all]).zip(answers) {
        let (client, old) = Old::speaking(version, tool(asks_everything)).await;
        let client = able(client).protocol(version.parse::<ProtocolVersion>().expect("a revision"));
        let result = client.call_tool("ask", ()).await.expect("a result");
        assert_eq!(told(&old).await, *declared, "{version}");
        assert_eq!(text(&result), answers, "{version}");
    }
}

/// C7: a revision whose elicitation means forms is not told of it by a client that can only send people to web pages.
#[tokio::test]
async fn pages_alone_are_not_declared_as_forms() {
    for (version, declared) in
        OLD.into_iter().zip([json!({}), json!({}), json!({}), json!({ "elicitation": { "url": {} } })])
    {
        let (client, old) = Old::speaking(version, |_, _| None).await;
        let client = pages(client).protocol(version.parse::<ProtocolVersion>().expect("a revision"));
        client.list_tools().await.expect("tools");
        assert_eq!(told(&old).await, declared, "{version}");
    }
}

/// C7: a server that agrees on an earlier revision than it was offered was told of what the offered one has, and offers
/// tools on the strength of it: it is answered.
#[tokio::test]
async fn what_was_declared_is_answered_whatever_revision_was_agreed_on() {
    for version in OLD {
        let (client, old) = Old::speaking(version, tool(asks_everything)).await;
        let result = able(client).call_tool("ask", ()).await.expect("a result");
        let declared = told(&old).await;
        assert_eq!(declared["elicitation"], json!({ "form": {}, "url": {} }), "{version}");
        assert_eq!(text(&result), r#"["answered","answered","answered"]"#, "{version}");
    }
}

/// C7: a page that has to be visited first is a question wherever pages were declared.
#[tokio::test]
async fn a_page_to_be_visited_first_is_a_question_where_pages_were_declared() {
    let (client, _old) = Old::speaking("2025-06-18", |old, seen| {
        let first = old.seen().iter().filter(|seen| seen.method() == "tools/call").count() == 1;
        (seen.method() == "tools/call" && first).then(|| {
            let error =
                json!({ "code": -32042, "message": "first", "data": { "elicitations": [page("e")["params"]] } });
            json_reply(200, &json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }))
        })
    })
    .await;
    assert_eq!(text(&pages(client).call_tool("a", ()).await.expect("a result")), "done");
}

/// C7: a server that names its revisions instead of choosing one is greeted anew, with what that revision has.
#[tokio::test]
async fn a_revision_the_server_names_is_told_what_it_has() {
    let (client, old) = Old::speaking("2025-06-18", |_, seen| {
        let refused = seen.method() == "initialize" && seen.body["params"]["protocolVersion"] != "2025-06-18";
        refused.then(|| {
            let data = json!({ "supported": ["2025-06-18"], "requested": "2025-11-25" });
            let error = json!({ "code": -32602, "message": "Unsupported protocol version", "data": data });
            json_reply(200, &json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }))
        })
    })
    .await;
    able(client).list_tools().await.expect("tools");
    let greeted =
        |seen: &Seen| seen.method() == "initialize" && seen.body["params"]["protocolVersion"] == "2025-06-18";
    let capabilities = old.wait(greeted).await.body["params"]["capabilities"].clone();
    assert_eq!(capabilities, json!({ "roots": {}, "sampling": {}, "elicitation": {} }));
}

/// C7: abilities outside the specification are declared at every revision, as every revision has a place for them.
#[tokio::test]
async fn experimental_abilities_are_declared_at_every_revision() {
    for version in OLD {
        let (client, old) = Old::speaking(version, |_, _| None).await;
        let experimental = [("com.example/x".to_owned(), serde_json::Map::new())].into_iter().collect();
        let client = client.capabilities(ClientCapabilities { experimental, ..Default::default() });
        let client = client.protocol(version.parse::<ProtocolVersion>().expect("a revision"));
        client.list_tools().await.expect("tools");
        client.list_tools().fresh().await.expect("tools");
        assert_eq!(told(&old).await, json!({ "experimental": { "com.example/x": {} } }), "{version}");
        assert_eq!(old.posted().iter().filter(|method| *method == "initialize").count(), 1);
    }
}

/// C7: taken by hand, a call at a revision that has forms alone is asked forms alone.
#[tokio::test]
async fn by_hand_a_revision_is_told_what_it_has() -> Result<(), Error> {
    let (client, old) = Old::speaking("2025-06-18", tool(asks_everything)).await;
    let client = client.protocol(ProtocolVersion::V2025_06_18);
    let Turn::Asked(pending) = client.call_tool("ask", ()).one_round().await? else { panic!("it asks") };
    assert_eq!(pending.questions().count(), 1);
    assert_eq!(told(&old).await, json!({ "elicitation": {} }));
    let pending = pending.answer("elicitation-1", json!({ "name": "Ada" }))?;
    let Turn::Done(result) = client.resume(pending).await? else { panic!("an answer") };
    assert_eq!(text(&result), r#"["answered",-32602,-32601]"#);
    Ok(())
}

/// E5: an old server that sends people to something else than a web page is told so, in a call and outside of any; where it
/// wants such a page visited first, the call ends.
#[tokio::test]
async fn an_old_server_is_refused_what_is_not_a_web_page() {
    let bad = |id: &str| {
        let mut page = page(id);
        page["params"]["url"] = json!("javascript:alert(1)");
        page
    };
    let (client, old) = Old::start(move |old, seen| {
        if seen.tool() == "first" {
            let data = json!({ "elicitations": [bad("e")["params"]] });
            let error = json!({ "code": -32042, "message": "first", "data": data });
            return Some(json_reply(
                200,
                &json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }),
            ));
        }
        tool(move |old: Arc<Old>, seen: Seen, sender: super::server::Sender| async move {
            sender.message(&bad("within"));
            let refused = old.response(&json!("within")).await;
            sender.message(&seen.says(&refused["error"].to_string()));
        })(old, seen)
    })
    .await;
    let client = client
        .on_url(async |page: UrlRequest| -> roundtrip::client::UrlAnswer { panic!("sent to {}", page.url) });
    let said = text(&client.call_tool("ask", ()).await.expect("a result"));
    assert!(said.contains("-32602") && said.contains("scheme"), "{said}");
    let error = client.call_tool("first", ()).await.expect_err("no page");
    assert!(matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("scheme")), "{error:?}");
    let general = old.general.lock().expect("general").clone().expect("a stream");
    general.message(&bad("beside"));
    assert_eq!(old.response(&json!("beside")).await["error"]["code"], -32602);
}
