//! Client that the official conformance suite runs against its mock servers: the last argument is the server's URL,
//! and the environment names the scenario.

mod auth;

use std::error::Error;

use roundtrip::client::Misfit;
use roundtrip::wire::{
    ClientCapabilities, ElicitationCapability, PrimitiveSchemaDefinition, RootsCapability,
    SamplingCapability, Tool,
};
use roundtrip::{Client, FormAnswer, FormRequest};
use serde::Deserialize;
use serde_json::{Map, Value, json};

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let url = std::env::args().next_back().ok_or("usage: conformance-client URL")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    // Declares every capability, so that every part of a request is present.
    let everything = ClientCapabilities {
        roots: Some(RootsCapability::default()),
        sampling: Some(SamplingCapability::default()),
        elicitation: Some(ElicitationCapability::default()),
        ..ClientCapabilities::default()
    };
    let client =
        Client::http(url)?.info("roundtrip-conformance", env!("CARGO_PKG_VERSION")).capabilities(everything);
    match scenario.as_str() {
        "tools_call" => add_numbers(&client).await,
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => {
            client.list_tools().await?;
            Ok(())
        }
        "http-standard-headers" => one_of_everything(&client).await,
        "http-custom-headers" => mirrored_calls(&client).await,
        "http-invalid-tool-headers" => the_valid_tool(&client).await,
        "json-schema-2020-12-preservation" => echo_the_schema(&client).await,
        "elicitation-sep1034-client-defaults" => defaults(&client.on_form(as_it_stands)).await,
        "sse-retry" => reconnected(&client).await,
        "sep-2322-client-request-state" => asking_tools(&client.on_form(yes_to_everything)).await,
        scenario if scenario.starts_with("auth/") => auth::run(scenario, client).await,
        unknown => Err(format!("no such scenario here: {unknown}").into()),
    }
}

async fn add_numbers(client: &Client) -> Outcome {
    client.list_tools().await?;
    client.call_tool("add_numbers", json!({ "a": 5, "b": 3 })).await?;
    Ok(())
}

/// Calls each of the methods that have headers of their own.
async fn one_of_everything(client: &Client) -> Outcome {
    for tool in client.list_tools().await? {
        client.call_tool(&tool.name, json!({})).await?;
    }
    for resource in client.list_resources().await? {
        client.read_resource(&resource.uri).await?;
    }
    for prompt in client.list_prompts().await? {
        client.get_prompt(&prompt.name).await?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Calls {
    tool_calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    arguments: Value,
}

async fn mirrored_calls(client: &Client) -> Outcome {
    client.list_tools().await?;
    let calls: Calls = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
    for Call { name, arguments } in calls.tool_calls {
        client.call_tool(name, arguments).await?;
    }
    Ok(())
}

async fn the_valid_tool(client: &Client) -> Outcome {
    let tools = client.list_tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    if names != ["valid_tool"] {
        return Err(format!("the invalid tools should have been left out: {names:?}").into());
    }
    client.call_tool("valid_tool", json!({ "region": "us-west1" })).await?;
    Ok(())
}

/// Fills in a form with values of the right types.
async fn yes_to_everything(form: FormRequest) -> Result<FormAnswer, Misfit> {
    let fill = |field: &PrimitiveSchemaDefinition| match field {
        PrimitiveSchemaDefinition::Boolean(_) => json!(true),
        PrimitiveSchemaDefinition::Number(_) | PrimitiveSchemaDefinition::Integer(_) => json!(1),
        _ => json!("yes"),
    };
    let content: Map<String, Value> =
        form.schema.properties.iter().map(|(name, field)| (name.clone(), fill(field))).collect();
    form.accept(content)
}

/// Accepts a form unchanged, so that every field gets its default.
async fn as_it_stands(form: FormRequest) -> Result<FormAnswer, Misfit> {
    form.accept(json!({}))
}

async fn defaults(client: &Client) -> Outcome {
    client.list_tools().await?;
    client.call_tool("test_client_elicitation_defaults", json!({})).await?;
    Ok(())
}

/// Calls a tool whose stream is closed before its answer arrives.
async fn reconnected(client: &Client) -> Outcome {
    client.list_tools().await?;
    client.call_tool("test_reconnection", json!({})).await?;
    Ok(())
}

/// Calls two tools that ask, with and without a state, one that does not, and one of an earlier revision.
async fn asking_tools(client: &Client) -> Outcome {
    client.list_tools().await?;
    for name in
        ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"]
    {
        client.call_tool(name, json!({})).await?;
    }
    Ok(())
}

async fn echo_the_schema(client: &Client) -> Outcome {
    let tools = client.list_tools().await?;
    let echo = |tool: &&Tool| tool.name == "json_schema_echo";
    let tool = tools.iter().find(|tool| !echo(tool)).or(tools.first()).ok_or("no tools")?;
    client.call_tool("json_schema_echo", json!({ "schema": tool.input_schema })).await?;
    Ok(())
}
