//! Tasks that ask for everything, driven by their call in every dialect.

use std::sync::{Arc, Mutex};

use roundtrip::client::TaskDialect;
use roundtrip::wire::{CreateMessageRequestParams, CreateMessageResult};
use roundtrip::{
    Ask, Client, FormRequest, MemoryTasks, SampleRequest, Server, Tasks, Tool, ToolError, UrlRequest, When,
};
use serde_json::json;

use crate::fixture::{serve, text};

/// Asks for each kind: some together, and then the others.
async fn kinds(ask: Ask) -> Result<String, ToolError> {
    let ((), sure) = tokio::try_join!(
        ask.url("page", "Please sign in", "https://id.example/in"),
        ask.confirm("sure", "Sure?"),
    )?;
    let request = CreateMessageRequestParams::text("Say hello", 10);
    let (said, roots) = tokio::try_join!(ask.sample("model", request), ask.roots("roots"))?;
    Ok(format!("{sure} {} {}", said.text(), roots[0].uri))
}

fn server() -> Server {
    let tasks = Tasks::new(MemoryTasks::new()).sep_2322();
    Server::new("kinds", "1.0.0").tool(Tool::new("kinds", kinds).task(When::Required)).tasks(tasks)
}

async fn plays(client: Client) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let asked = Arc::clone(&asked);
        move || asked.lock().expect("a list").push(what)
    };
    let (form, page, model) = (note("form"), note("page"), note("model"));
    let client = client
        .on_form(move |question: FormRequest| {
            form();
            async move { question.accept(json!({ "confirm": true })) }
        })
        .on_url(move |question: UrlRequest| {
            page();
            async move { question.consent() }
        })
        .on_sample(move |_: SampleRequest| {
            model();
            async { CreateMessageResult::assistant("hello", "a model") }
        })
        .roots(["file:///a"]);
    assert_eq!(text(&client.call_tool("kinds", ()).await.expect("a result")), "true hello file:///a");
    let mut asked = asked.lock().expect("a list").clone();
    asked.sort_unstable();
    assert_eq!(asked, ["form", "model", "page"], "each was asked once");
}

/// C14, T26: questions of every kind of a task go to the handlers of its client, in each dialect.
#[tokio::test]
async fn every_kind_of_question_of_a_task_is_answered() {
    let (client, _stop) = serve(server()).await;
    plays(client.clone()).await;
    plays(client.clone().tasks(TaskDialect::Sep2322)).await;
    #[cfg(feature = "legacy")]
    plays(client.protocol(roundtrip::wire::ProtocolVersion::V2025_11_25)).await;
}
