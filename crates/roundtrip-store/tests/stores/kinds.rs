//! Tasks that ask for everything, from store to store.

use std::time::Duration;

use roundtrip::wire::{CreateMessageRequestParams, CreateMessageResult};
use roundtrip::{Ask, Client, FormRequest, SampleRequest, Server, Tasks, Tool, ToolError, UrlRequest, When};
use serde_json::json;

use crate::support::{TaskSite, instance};

on_each_store_of_tasks! {
    tasks_ask_for_every_kind
}

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

/// T3, T15, K1: questions of every kind are asked by one process, and their answers read by another, through the store.
async fn tasks_ask_for_every_kind(site: &impl TaskSite) {
    let server = async |at_once| {
        let tasks = Tasks::new(instance(site).await).at_once(at_once);
        Server::new("kinds", "1.0.0").tool(Tool::new("kinds", kinds).task(When::Required)).tasks(tasks)
    };
    let _worker = server(4).await.build().expect("a worker");
    let client = Client::in_process(server(0).await)
        .expect("a server")
        .on_form(async |form: FormRequest| form.accept(json!({ "confirm": true })))
        .on_url(async |page: UrlRequest| page.consent())
        .on_sample(async |_: SampleRequest| CreateMessageResult::assistant("hello", "a model"))
        .roots(["file:///a"]);
    let call = client.call_tool("kinds", ());
    let result = tokio::time::timeout(Duration::from_secs(30), call.into_future()).await.expect("in time");
    assert_eq!(result.expect("a result").text(), "true hello file:///a");
}
