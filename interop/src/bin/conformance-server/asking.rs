//! Tools, a prompt and a resource template that ask, written as the manual describes.

use roundtrip::wire::CreateMessageRequestParams;
use roundtrip::{
    Args, Ask, AskError, Form, Prompt, Question, Reply, ResourceTemplate, Round, Server, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::try_join;

pub(crate) fn offer(server: Server) -> Server {
    let named = |kind: &str| format!("test_input_required_result_{kind}");
    server
        .tool(Tool::new(named("elicitation"), elicitation).description("Asks for a name"))
        .tool(Tool::new(named("sampling"), sampling).description("Asks the model"))
        .tool(Tool::new(named("list_roots"), list_roots).description("Asks for the roots"))
        .tool(Tool::new(named("url"), url).description("Asks to visit a page"))
        .tool(Tool::new(named("request_state"), confirm).description("Asks to confirm"))
        .tool(Tool::new(named("tampered_state"), confirm).description("Asks to confirm"))
        .tool(Tool::new(named("multiple_inputs"), multiple_inputs).description("Asks three things at once"))
        .tool(Tool::new(named("multi_round"), multi_round).description("Asks twice, one after the other"))
        .tool(Tool::new(named("capabilities"), capabilities).description("Asks what the client can be asked"))
        .tool(Tool::new(named("state_only"), state_only).description("Wants to be called again"))
        .prompt(Prompt::new(named("prompt"), prompt).description("Asks for a context"))
        .template(
            ResourceTemplate::new("test://asking/{id}", named("template"), template)
                .description("Asks for a context")
                .mime_type("text/plain"),
        )
}

#[derive(Form)]
struct Name {
    /// Your name
    name: String,
}

#[derive(Form)]
struct Confirmed {
    /// Go on?
    ok: bool,
}

#[derive(Form)]
struct Step1 {
    name: String,
}

#[derive(Form)]
struct Step2 {
    color: String,
}

#[derive(Form)]
struct Context {
    /// Topic of the prompt
    context: String,
}

/// Asks for a name, with its rounds by hand: the suite answers the question before it is asked, without any state,
/// and expects the answer to be accepted. Nothing here depends on who answers.
async fn elicitation(round: Round) -> Result<Reply, ToolError> {
    let round = round.by_key_alone();
    let Some(Name { name }) = round.answer("user_name")? else {
        return Ok(round.ask([Question::form::<Name>("user_name", "What is your name?")]));
    };
    Ok(Reply::text(format!("Hello, {name}!")))
}

async fn sampling(ask: Ask) -> Result<String, ToolError> {
    let said = ask
        .sample("capital_question", CreateMessageRequestParams::text("What is the capital of France?", 100))
        .await?;
    Ok(format!("the model said: {}", said.text()))
}

async fn list_roots(ask: Ask) -> Result<String, ToolError> {
    let roots = ask.roots("client_roots").await?;
    Ok(format!("{} roots", roots.len()))
}

async fn url(ask: Ask) -> Result<&'static str, ToolError> {
    ask.url("consent", "Please give your consent", "https://example.com/consent?id=7").await?;
    Ok("thank you for the visit")
}

async fn confirm(ask: Ask) -> Result<String, ToolError> {
    let Confirmed { ok } = ask.form("confirm", "Please confirm").await?;
    Ok(format!("state-ok: {ok}"))
}

async fn multiple_inputs(ask: Ask) -> Result<String, ToolError> {
    let (Name { name }, greeting, roots) = try_join!(
        ask.form("user_name", "What is your name?"),
        ask.sample("greeting", CreateMessageRequestParams::text("Generate a greeting", 100)),
        ask.roots("client_roots"),
    )?;
    Ok(format!("{name}: {} ({} roots)", greeting.text(), roots.len()))
}

async fn multi_round(ask: Ask) -> Result<String, ToolError> {
    let Step1 { name } = ask.form("step1", "Step 1: what is your name?").await?;
    let Step2 { color } = ask.form("step2", "Step 2: what is your favourite colour?").await?;
    Ok(format!("{name} likes {color}"))
}

/// Ends two rounds before it answers, and asks nothing.
async fn state_only(round: Round) -> Result<Reply, ToolError> {
    let rounds: u32 = round.state()?.unwrap_or_default();
    if rounds < 2 {
        return Ok(round.hand_off(&(rounds + 1)));
    }
    Ok(Reply::text(format!("ready after {rounds} rounds")))
}

/// Asks for everything the client can be asked, and for nothing else.
async fn capabilities(ask: Ask) -> Result<String, ToolError> {
    let may = ask.may();
    let (name, said, roots) = try_join!(
        async {
            if may.form.is_ok() {
                ask.form("user_name", "What is your name?").await.map(Some)
            } else {
                Ok(None::<Name>)
            }
        },
        async {
            if may.sample.is_ok() {
                ask.sample("greeting", CreateMessageRequestParams::text("Say hello", 100)).await.map(Some)
            } else {
                Ok(None)
            }
        },
        async { if may.roots.is_ok() { ask.roots("client_roots").await.map(Some) } else { Ok(None) } },
    )?;
    Ok(format!(
        "name: {:?}, model: {:?}, roots: {:?}",
        name.map(|Name { name }| name),
        said.map(|said| said.text()),
        roots.map(|roots| roots.len())
    ))
}

async fn prompt(ask: Ask) -> Result<String, AskError> {
    let Context { context } = ask.form("user_context", "What is the context?").await?;
    Ok(format!("Consider this context: {context}"))
}

#[derive(Deserialize, JsonSchema)]
struct About {
    id: String,
}

async fn template(Args(About { id }): Args<About>, ask: Ask) -> Result<String, AskError> {
    let Context { context } = ask.form("user_context", format!("What is {id} about?")).await?;
    Ok(format!("{id} is about {context}"))
}

#[cfg(test)]
mod tests {
    use roundtrip::testing::{Replay, replay};
    use serde_json::{Value, json};

    use super::*;

    fn tool(name: &str) -> Replay {
        let name = format!("test_input_required_result_{name}");
        replay(offer(Server::new("fixtures", "1"))).tool(&name, json!({}))
    }

    async fn text(script: Replay) -> Value {
        script.await.unwrap()["content"][0]["text"].clone()
    }

    /// A11: every fixture that asks survives being dropped, repeated and having its replies lost.
    #[tokio::test]
    async fn fixtures_survive_a_replay() {
        let ada = json!({ "name": "Ada" });
        assert_eq!(text(tool("elicitation").accept("user_name", &ada)).await, "Hello, Ada!");
        assert_eq!(text(tool("sampling").say("capital_question", "Paris")).await, "the model said: Paris");
        assert_eq!(text(tool("list_roots").roots("client_roots", &["file:///a"])).await, "1 roots");
        assert_eq!(
            text(tool("request_state").accept("confirm", json!({ "ok": true }))).await,
            "state-ok: true"
        );
        assert_eq!(
            text(tool("tampered_state").accept("confirm", json!({ "ok": false }))).await,
            "state-ok: false"
        );
        let three = |name: &str| {
            tool(name)
                .accept("user_name", json!({ "name": "Ada" }))
                .say("greeting", "Hi")
                .roots("client_roots", &[])
        };
        assert_eq!(text(three("multiple_inputs")).await, "Ada: Hi (0 roots)");
        let all = "name: Some(\"Ada\"), model: Some(\"Hi\"), roots: Some(0)";
        assert_eq!(text(three("capabilities")).await, all);
        let rounds = tool("multi_round").accept("step1", &ada).accept("step2", json!({ "color": "green" }));
        assert_eq!(text(rounds).await, "Ada likes green");
        assert_eq!(
            text(tool("url").result("consent", json!({ "action": "accept" }))).await,
            "thank you for the visit"
        );
        assert_eq!(text(tool("state_only")).await, "ready after 2 rounds");
        let prompt = replay(offer(Server::new("fixtures", "1")))
            .prompt("test_input_required_result_prompt", json!({}));
        let result = prompt.accept("user_context", json!({ "context": "tests" })).await.unwrap();
        assert_eq!(result["messages"][0]["content"]["text"], "Consider this context: tests");
        let asked = replay(offer(Server::new("fixtures", "1"))).resource("test://asking/7");
        let result = asked.accept("user_context", json!({ "context": "tests" })).await.unwrap();
        assert_eq!(result["contents"][0]["text"], "7 is about tests");
    }
}
