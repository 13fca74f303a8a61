//! Prompts: with and without arguments, with a resource and with a picture.

use roundtrip::server::Partial;
use roundtrip::wire::{ContentBlock, PromptMessage, Role, TextResourceContents};
use roundtrip::{Args, Prompt, Server};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::PNG;

pub(crate) fn offer(server: Server) -> Server {
    server
        .prompt(Prompt::new("test_simple_prompt", simple).description("A prompt without arguments"))
        .prompt(
            Prompt::new("test_prompt_with_arguments", with_arguments)
                .description("A prompt with two arguments")
                .complete("arg1", async |partial: Partial| partial.starting(["test", "testing", "trial"])),
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource", with_resource)
                .description("A prompt with a resource"),
        )
        .prompt(Prompt::new("test_prompt_with_image", with_image).description("A prompt with a picture"))
}

async fn simple() -> &'static str {
    "This is a simple prompt for testing."
}

#[derive(Deserialize, JsonSchema)]
struct Two {
    /// The first argument
    arg1: String,
    /// The second argument
    arg2: String,
}

async fn with_arguments(Args(Two { arg1, arg2 }): Args<Two>) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embed {
    /// The URI of the resource to embed
    resource_uri: String,
}

async fn with_resource(Args(Embed { resource_uri }): Args<Embed>) -> Vec<PromptMessage> {
    let contents = TextResourceContents {
        uri: resource_uri,
        mime_type: Some("text/plain".into()),
        text: "Embedded resource content for testing.".into(),
        ..TextResourceContents::default()
    };
    vec![says(ContentBlock::resource(contents)), says("Please process the embedded resource above.".into())]
}

async fn with_image() -> Vec<PromptMessage> {
    vec![says(ContentBlock::image(PNG, "image/png")), says("Please analyse the picture above.".into())]
}

fn says(content: ContentBlock) -> PromptMessage {
    PromptMessage { role: Role::User, content }
}
