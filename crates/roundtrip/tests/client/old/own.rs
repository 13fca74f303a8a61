//! Our client and our server, in the words of every era they share.

use roundtrip::client::ServerRejection;
use roundtrip::wire::ProtocolVersion;
use roundtrip::{Ask, Change, Error, Form, FormRequest, Server, Tool, ToolError, Turn};
use serde_json::json;

use crate::fixture::{serve, text};

#[derive(Form)]
struct Who {
    name: String,
    #[form(default = "small")]
    size: String,
}

async fn greet(ask: Ask) -> Result<String, ToolError> {
    let first: Who = ask.form("first", "Who?").await?;
    let second: Who = ask.form("second", format!("And after {}?", first.name)).await?;
    Ok(format!("{} ({}), {}", first.name, first.size, second.name))
}

async fn both(ask: Ask) -> Result<String, ToolError> {
    let (one, two) = tokio::try_join!(
        ask.form::<Who>("one", "One?").into_future(),
        ask.form::<Who>("two", "Two?").into_future()
    )?;
    Ok(format!("{} {}", one.name, two.name))
}

fn server() -> Server {
    Server::new("own", "1").tool(Tool::new("greet", greet)).tool(Tool::new("both", both))
}

/// L1: one client, one server, and every revision that both have on HTTP: asked inline, together, and by hand.
#[tokio::test]
async fn our_client_and_our_server_share_every_revision() {
    for version in ProtocolVersion::ALL.into_iter().skip(1) {
        let own = server();
        let catalog = own.catalog();
        let (client, _stop) = serve(own).await;
        let client = client.protocol(version);
        let plain = client.clone();
        let client = client.on_form(async |form: FormRequest| form.accept(json!({ "name": form.message })));
        if version < ProtocolVersion::V2025_06_18 {
            // There was nobody to ask in 2025-03-26.
            let refused = client.call_tool("greet", ()).await.expect_err("a refusal");
            assert!(refused.to_string().contains(&format!("revision {version} cannot ask")), "{refused}");
            continue;
        }
        let result = client.call_tool("greet", ()).await.expect("a result");
        assert_eq!(text(&result), "Who? (small), And after Who??", "{version}");
        assert_eq!(text(&client.call_tool("both", ()).await.expect("a result")), "One? Two?", "{version}");
        let mut turn = plain.call_tool("greet", ()).one_round().await.expect("a turn");
        let mut rounds = 0;
        while let Turn::Asked(pending) = turn {
            rounds += 1;
            let key = pending.questions().next().expect("a question").key().to_owned();
            turn = plain
                .resume(pending.answer(&key, json!({ "name": "Ada" })).expect("fits"))
                .await
                .expect("a turn");
        }
        assert_eq!(rounds, 2);
        let mut changes = client.listen().tools().await.expect("a stream");
        catalog.remove::<Tool>("no such");
        catalog.add(Tool::new("late", async || "late")).expect("a tool");
        assert_eq!(changes.next().await.expect("open").expect("a change"), Change::Tools, "{version}");
        catalog.remove::<Tool>("late");
        client.close().await;
    }
}

/// C7: a client that lacks a handler is told which, in every revision that can ask.
#[tokio::test]
async fn a_client_without_a_handler_is_told_which_to_add() {
    for version in ProtocolVersion::ALL.into_iter().filter(|version| *version >= ProtocolVersion::V2025_06_18)
    {
        let (client, _stop) = serve(server()).await;
        let client = client.protocol(version);
        let refused = client.call_tool("greet", ()).await.expect_err("a refusal");
        assert!(matches!(&refused, Error::Rejected(ServerRejection::MissingCapability(_))), "{refused}");
        let told = refused.to_string();
        assert!(told.contains("this question (`first`) needs `elicitation.form`"), "{version}: {told}");
        assert!(told.ends_with(": add `Client::on_form(..)`"), "{version}: {told}");
    }
}
