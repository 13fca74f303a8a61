//! Every kind of question in rounds by hand, with a form that is made at run time:
//! `cargo run -p roundtrip --example round-kinds`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::wire::{
    CreateMessageRequestParams, CreateMessageResult, ElicitSchema, PrimitiveSchemaDefinition,
    UntitledSingleSelectEnumSchema,
};
use roundtrip::{Client, Question, Reply, Round, Server, Tool, ToolError};
use serde_json::json;

/// The form for a choice among branches that only this call knows.
fn branches() -> ElicitSchema {
    let branch = PrimitiveSchemaDefinition::UntitledSingleSelect(UntitledSingleSelectEnumSchema {
        values: vec!["main".into(), "next".into()],
        default: Some("main".into()),
        ..Default::default()
    });
    ElicitSchema { properties: vec![("branch".into(), branch)], ..ElicitSchema::default() }
}

/// First the page and the form together, then the roots and the model: the handler runs once a round.
async fn release(round: Round) -> Result<Reply, ToolError> {
    let branch = Question::form_of("branch", "Release which branch?", branches());
    let page = Question::url("sign_in", "Sign in to the registry", "https://registry.example/sign-in");
    let (chosen, signed_in) = (round.content(&branch)?, round.consent(&page)?);
    let (Some(chosen), true) = (&chosen, signed_in) else {
        let open = [(chosen.is_some(), branch), (signed_in, page)];
        return Ok(round.ask(open.into_iter().filter(|(done, _)| !done).map(|(_, question)| question)));
    };
    let (Some(roots), Some(notes)) = (round.roots("roots")?, round.message("notes")?) else {
        let request = CreateMessageRequestParams::text("Release notes, in one line", 40);
        return Ok(round.ask([Question::roots("roots"), Question::sample("notes", request)]));
    };
    let branch = chosen["branch"].as_str().unwrap_or_default();
    Ok(Reply::text(format!("{branch} of {}: {}, in round {}", roots[0].uri, notes.text(), round.number())))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("releases", "1.0.0").tool(Tool::new("release", release));
    let client = Client::in_process(server)?
        .on_form(async |form| form.accept(json!({ "branch": "next" })))
        .on_url(async |page| {
            println!("visit {}", page.url);
            page.consent()
        })
        .on_sample(async |_| CreateMessageResult::assistant("all better", "a-model"))
        .roots(["file:///projects"]);
    let result = client.call_tool("release", json!({})).await?;
    println!("{}", result.content[0].as_text().unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let server = Server::new("releases", "1.0.0").tool(Tool::new("release", release));
        let call = roundtrip::testing::replay(server).tool("release", json!({}));
        let script = call
            .accept("branch", json!({}))
            .accept("sign_in", json!({}))
            .roots("roots", &["file:///a"])
            .say("notes", "all new");
        assert_eq!(script.await.unwrap()["content"][0]["text"], "main of file:///a: all new, in round 3");
    }
}
