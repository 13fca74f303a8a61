//! `ask.may()`, and the errors of questions that a client cannot be asked.

use roundtrip::server::CannotAsk;
use roundtrip::wire::CallToolResult;
use roundtrip::{Ask, AskError, Form, Question, Round, Server, Tool, ToolError};
use serde_json::{Value, json};

use crate::support::Call;

#[derive(Form)]
struct Party {
    #[expect(dead_code, reason = "it is asked for, and never answered")]
    people: u8,
}

/// Every kind of question, and the reason why it may not be asked.
pub(crate) async fn may(ask: Ask) -> String {
    let may = ask.may();
    let all = [
        ("form", may.form),
        ("multi_select", may.multi_select),
        ("url", may.url),
        ("sample", may.sample),
        ("sample_with_tools", may.sample_with_tools),
        ("roots", may.roots),
    ];
    all.map(|(name, may)| format!("{name}: {}", may.map_or_else(|why| why.to_string(), |()| "yes".into())))
        .join("\n")
}

/// Lines of the tool above, with a reason for each kind that may not be asked.
pub(crate) fn lines(reasons: [&str; 6]) -> String {
    let names = ["form", "multi_select", "url", "sample", "sample_with_tools", "roots"];
    names.iter().zip(reasons).map(|(name, reason)| format!("{name}: {reason}")).collect::<Vec<_>>().join("\n")
}

/// M7: a handler learns what may be asked, and why the rest may not, for a message of its own.
#[tokio::test]
async fn a_handler_learns_why_something_may_not_be_asked() {
    let endpoint = Server::new("s", "1").tool(Tool::new("may", may)).build().expect("a server");
    let form = "the client did not declare `elicitation.form`";
    let url = "the client did not declare `elicitation.url`";
    let (sample, tools) =
        ("the client did not declare `sampling`", "the client did not declare `sampling.tools`");
    let roots = "the client did not declare `roots`";
    for (declared, reasons) in [
        (json!({}), [form, form, url, sample, tools, roots]),
        (json!({ "elicitation": {} }), ["yes", "yes", url, sample, tools, roots]),
        (json!({ "elicitation": { "url": {} } }), [form, form, "yes", sample, tools, roots]),
        (json!({ "sampling": {}, "roots": {} }), [form, form, url, "yes", tools, "yes"]),
        (json!({ "sampling": { "tools": {} } }), [form, form, url, "yes", "yes", roots]),
    ] {
        let turn = Call::tool("may").declaring(&declared).begin(&endpoint).await;
        assert_eq!(turn.text(), lines(reasons), "{declared}");
    }
}

/// M7: through `?`, the reason is a tool error that the model can read.
#[tokio::test]
async fn the_reason_is_an_error_that_a_tool_can_end_with() {
    async fn strict(ask: Ask) -> Result<String, ToolError> {
        ask.may().url?;
        Ok("never".into())
    }
    let endpoint = Server::new("s", "1").tool(Tool::new("strict", strict)).build().expect("a server");
    let turn = Call::tool("strict").declaring(&json!({})).begin(&endpoint).await;
    assert_eq!(turn.failure(), CannotAsk::NotDeclared("elicitation.url").to_string());
}

/// W9: the question and the capability it needs are named, inline and by hand.
#[tokio::test]
async fn a_question_names_the_capability_it_needs() {
    async fn caught(ask: Ask) -> String {
        match ask.confirm("approval", "?").await {
            Err(error @ AskError::CannotAsk { .. }) => error.to_string(),
            other => format!("{other:?}"),
        }
    }
    let server = Server::new("s", "1")
        .tool(Tool::new("form", async |ask: Ask| ask.confirm("approval", "?").await.map(|_| "")))
        .tool(Tool::new("by_hand", async |round: Round| {
            round.ask::<CallToolResult>([Question::form::<Party>("approval", "?")])
        }))
        .tool(Tool::new("url", async |ask: Ask| {
            ask.url("approval", "?", "https://id.example").await.map(|()| "")
        }))
        .tool(Tool::new("roots", async |ask: Ask| ask.roots("approval").await.map(|_| "")))
        .tool(Tool::new("caught", caught));
    let endpoint = server.build().expect("a server");
    let call = |tool: &str| Call::tool(tool).declaring(&json!({ "sampling": {} }));
    let told = |capability: &str| {
        format!("this question (`approval`) needs `{capability}`, which the client did not declare")
    };
    for (tool, capability, required) in [
        ("form", "elicitation.form", json!({ "elicitation": { "form": {} } })),
        ("by_hand", "elicitation.form", json!({ "elicitation": { "form": {} } })),
        ("url", "elicitation.url", json!({ "elicitation": { "url": {} } })),
        ("roots", "roots", json!({ "roots": {} })),
    ] {
        let turn = call(tool).begin(&endpoint).await;
        assert_eq!(turn.error(), (-32021, &*told(capability)), "{tool}");
        assert_eq!(turn.0["error"]["data"], json!({ "requiredCapabilities": required }), "{tool}");
    }
    assert_eq!(call("caught").begin(&endpoint).await.text(), told("elicitation.form"), "said once");
}

/// W9: of several required capabilities, those are named that are missing.
#[tokio::test]
async fn a_call_names_the_capabilities_that_are_missing() {
    let tool = Tool::new("picky", async |caller: roundtrip::Caller| {
        let required = json!({
            "roots": {}, "sampling": { "tools": {}, "context": {} }, "elicitation": {},
            "extensions": { "com.example/x": {} }, "experimental": { "y": {} },
        });
        caller.require(&serde_json::from_value(required).expect("capabilities")).map(|()| "fine")
    });
    let endpoint = Server::new("s", "1").tool(tool).build().expect("a server");
    let declared = json!({ "roots": {}, "sampling": { "context": {} } });
    let turn = Call::tool("picky").declaring(&declared).begin(&endpoint).await;
    let named = "`sampling.tools`, `elicitation`, `extensions.com.example/x`, `experimental.y`";
    assert_eq!(
        turn.error(),
        (-32021, &*format!("this call needs {named}, which the client did not declare"))
    );
    let required: Value = turn.0["error"]["data"]["requiredCapabilities"].clone();
    assert_eq!(Call::tool("picky").declaring(&required).begin(&endpoint).await.text(), "fine");
}
