//! Errors that handlers return: everything people use `?` with.

use std::error::Error;
use std::fmt;

use anyhow::Context as _;
use roundtrip::wire::ErrorObject;
use roundtrip::{Ask, Prompt, Resource, Server, Tool, ToolError, When};
use serde_json::json;

use crate::logged::logged;
use crate::support::{Call, everything};
use crate::tasks::{self, TaskClient};

/// An error of an application, with or without a source.
#[derive(Debug)]
struct Unpaid(Option<Box<dyn Error + Send + Sync>>);

impl fmt::Display for Unpaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the invoice is unpaid")
    }
}

impl Error for Unpaid {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|source| source as _)
    }
}

async fn own() -> Result<String, Unpaid> {
    Err(Unpaid(None))
}

async fn boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
    Err(Unpaid(None))?
}

async fn any() -> anyhow::Result<String> {
    Err(anyhow::anyhow!("the disk is full")).context("the invoice is unpaid")
}

async fn static_text() -> Result<String, &'static str> {
    Err("the invoice is unpaid")
}

async fn text() -> Result<String, String> {
    Err("the invoice is unpaid".to_owned())
}

/// Every kind of error through one `?`.
async fn converted() -> Result<String, ToolError> {
    let last: Result<(), anyhow::Error> = Err(anyhow::anyhow!("the invoice is unpaid"));
    boxed().await.or_else(|_| Ok::<_, ToolError>(String::new()))?;
    Err::<(), _>("unused").or(Ok::<_, String>(()))?;
    last?;
    Ok(String::new())
}

/// N4: the model reads the display text of whatever error a tool returns, without its sources.
#[tokio::test]
async fn a_tool_fails_with_any_error_type() {
    let endpoint = Server::new("s", "1")
        .tool(Tool::new("own", own))
        .tool(Tool::new("boxed", boxed))
        .tool(Tool::new("any", any))
        .tool(Tool::new("static_text", static_text))
        .tool(Tool::new("text", text))
        .tool(Tool::new("converted", converted))
        .build()
        .expect("a server");
    for name in ["own", "boxed", "any", "static_text", "text", "converted"] {
        let turn = Call::tool(name).begin(&endpoint).await;
        assert_eq!(turn.failure(), "the invoice is unpaid", "{name}");
    }
}

/// W10: a code of a handler's that revision 2026-07-28 forbids to send is -32603 on the wire, with message and data as they were,
/// in a call and in a task; the log names the code. Codes of the specification and of the author stay.
#[test]
fn reserved_codes_of_handlers_are_not_sent() {
    let log = logged(async {
        for (code, sent) in [
            (-32002, -32603),
            (-32023, -32603),
            (-32042, -32603),
            (-32050, -32603),
            (-32099, -32603),
            (-32100, -32100),
            (-32021, -32021),
            (-32602, -32602),
            (7, 7),
        ] {
            let fails = move || async move {
                Err::<String, _>(ErrorObject::new(code, "out of paper").with_data(json!({ "tray": 2 })))
            };
            let tools = [Tool::new("call", fails), Tool::new("task", fails).task(When::Required)];
            let client = TaskClient::of(tasks::server(tools));
            let answer = client.ask("tools/call", json!({ "name": "call" })).await;
            let told = json!({ "code": sent, "message": "out of paper", "data": { "tray": 2 } });
            assert_eq!(answer["error"], told, "{code}");
            let ended = client.ended(&client.start("task", json!({})).await).await;
            assert_eq!(ended["error"], told, "{code}");
        }
    });
    assert!(log.contains("code=-32050") && !log.contains("code=-32602"), "{log}");
}

/// Prompts and resources take any error too; it is the internal error of the call.
#[tokio::test]
async fn prompts_and_resources_fail_with_any_error_type() {
    let endpoint = Server::new("s", "1")
        .prompt(Prompt::new("own", own))
        .prompt(Prompt::new("any", any))
        .prompt(Prompt::new("text", text))
        .prompt(Prompt::new("converted", converted))
        .resource(Resource::new("test://own", "own", own))
        .resource(Resource::new("test://any", "any", any))
        .resource(Resource::new("test://text", "text", text))
        .build()
        .expect("a server");
    for call in ["own", "any", "text", "converted"].map(Call::prompt) {
        assert_eq!(call.begin(&endpoint).await.error(), (-32603, "the invoice is unpaid"));
    }
    for call in ["test://own", "test://any", "test://text"].map(Call::resource) {
        assert_eq!(call.begin(&endpoint).await.error(), (-32603, "the invoice is unpaid"));
    }
}

/// An error of the protocol as the source of another.
async fn wrapped() -> Result<String, Unpaid> {
    Err(Unpaid(Some(ErrorObject::invalid_params("no such invoice").into())))
}

async fn in_context() -> anyhow::Result<String> {
    Err(ErrorObject::invalid_params("no such invoice")).context("while paying")
}

/// An error of the protocol stays one, also inside an error of the author's.
#[tokio::test]
async fn a_protocol_error_stays_one_inside_another() {
    let server =
        Server::new("s", "1").tool(Tool::new("wrapped", wrapped)).tool(Tool::new("in_context", in_context));
    #[cfg(feature = "anyhow")]
    let server = server.tool(Tool::new("bare", async || -> anyhow::Result<String> {
        Err(ErrorObject::invalid_params("no such invoice"))?
    }));
    let endpoint = server.build().expect("a server");
    for name in [
        "wrapped",
        "in_context",
        #[cfg(feature = "anyhow")]
        "bare",
    ] {
        assert_eq!(Call::tool(name).begin(&endpoint).await.error(), (-32602, "no such invoice"), "{name}");
    }
}

async fn asks(ask: Ask) -> anyhow::Result<String> {
    ask.confirm("sure", "Sure?").await.context("no approval")?;
    Ok("paid".to_owned())
}

/// A4: a declined question inside another error is text for the model in a tool, and the error for it in a prompt.
#[tokio::test]
async fn a_declined_question_is_known_inside_another_error() {
    let endpoint = Server::new("s", "1")
        .tool(Tool::new("asks", asks))
        .prompt(Prompt::new("asks", asks))
        .build()
        .expect("a server");
    let declined = json!({ "sure": { "action": "decline" } });
    let call = Call::tool("asks").declaring(&everything());
    let asked = call.begin(&endpoint).await;
    assert_eq!(call.answer(&endpoint, &asked, declined.clone()).await.failure(), "no approval");

    let call = Call::prompt("asks").declaring(&everything());
    let asked = call.begin(&endpoint).await;
    let (code, message) = {
        let turn = call.answer(&endpoint, &asked, declined).await;
        let (code, message) = turn.error();
        assert_eq!(turn.0["error"]["data"]["reason"], "declined");
        (code, message.to_owned())
    };
    assert_eq!((code, message.as_str()), (403, "the user declined to answer `sure`"));
}
