//! Tools for every kind of content, and for everything that can occur during a call.

use std::time::Duration;

use roundtrip::wire::{
    AudioContent, ClientCapabilities, ContentBlock, ErrorObject, ImageContent, SamplingCapability,
    TextResourceContents,
};
use roundtrip::{Args, Caller, Catalog, Log, Parts, Progress, Prompt, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{PNG, WAV};

pub(crate) fn offer(server: Server) -> Server {
    server
        .tool(Tool::new("test_simple_text", simple_text).description("Answers with text"))
        .tool(Tool::new("test_image_content", image).description("Answers with a picture"))
        .tool(Tool::new("test_audio_content", audio).description("Answers with sound"))
        .tool(Tool::new("test_embedded_resource", embedded).description("Answers with a resource"))
        .tool(
            Tool::new("test_multiple_content_types", mixed)
                .description("Answers with text, a picture and a resource"),
        )
        .tool(Tool::new("test_error_handling", failing).description("Fails"))
        .tool(Tool::new("test_tool_with_progress", progress).description("Reports progress"))
        .tool(Tool::new("test_logging_tool", logging).description("Sends log messages"))
        .tool(
            Tool::new("test_missing_capability", needs_sampling)
                .description("Needs a client that can sample"),
        )
        .tool(
            Tool::new("test_streaming_elicitation", streaming).description("Answers at once, without asking"),
        )
        .tool(Tool::new("test_trigger_tool_change", change_tools).description("Changes the list of tools"))
        .tool(
            Tool::new("test_trigger_prompt_change", change_prompts)
                .description("Changes the list of prompts"),
        )
        .tool(
            Tool::new("test_custom_header", custom_header)
                .description("Takes an argument that a header mirrors"),
        )
        .tool(
            Tool::new("json_schema_2020_12_tool", schema_2020_12)
                .description("Has an input schema with much of JSON Schema 2020-12")
                .input_schema(schema()),
        )
}

async fn simple_text() -> &'static str {
    "This is a simple text response for testing."
}

async fn image() -> ImageContent {
    ImageContent::new(PNG, "image/png")
}

async fn audio() -> AudioContent {
    AudioContent::new(WAV, "audio/wav")
}

fn note() -> ContentBlock {
    let contents = TextResourceContents {
        uri: "test://embedded-resource".into(),
        mime_type: Some("text/plain".into()),
        text: "This is an embedded resource.".into(),
        ..TextResourceContents::default()
    };
    ContentBlock::resource(contents)
}

async fn embedded() -> ContentBlock {
    note()
}

/// Sends its result in parts, of which clients that do not ask for them see nothing (G1).
async fn mixed(mut out: Parts) -> Parts {
    out.text("Several kinds ").await;
    out.text("of content:").await;
    out.push(ContentBlock::image(PNG, "image/png")).await;
    out.push(note()).await;
    out
}

async fn failing() -> Result<String, ToolError> {
    Err(ToolError::new("This tool always fails, so that errors can be tested."))
}

async fn progress(progress: Progress) -> &'static str {
    for done in [0, 50, 100] {
        progress.report((done, 100));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    "done"
}

async fn logging(log: Log) -> &'static str {
    log.info("starting");
    log.info("working");
    log.info("finished");
    "logged"
}

async fn needs_sampling(caller: Caller) -> Result<&'static str, ErrorObject> {
    let sampling = ClientCapabilities { sampling: Some(SamplingCapability::default()), ..Default::default() };
    caller.require(&sampling)?;
    Ok("this client can sample")
}

async fn streaming() -> &'static str {
    "nothing to ask"
}

async fn change_tools(catalog: Catalog) -> Result<&'static str, ToolError> {
    let name = "test_changing_tool";
    if !catalog.remove::<Tool>(name) {
        catalog.add(Tool::new(name, simple_text).description("Comes and goes"))?;
    }
    Ok("the list of tools has changed")
}

async fn change_prompts(catalog: Catalog) -> Result<&'static str, ToolError> {
    let name = "test_changing_prompt";
    if !catalog.remove::<Prompt>(name) {
        catalog.add(Prompt::new(name, async || "here for now").description("Comes and goes"))?;
    }
    Ok("the list of prompts has changed")
}

#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    /// Mirrored in the Mcp-Param-Value header
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

async fn custom_header(Args(Mirrored { value }): Args<Mirrored>) -> String {
    value
}

async fn schema_2020_12(Args(arguments): Args<Value>) -> String {
    arguments.to_string()
}

/// Returns a schema with every keyword the suite looks for.
fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    })
}
