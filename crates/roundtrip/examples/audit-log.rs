//! An audit log of every call, written by one hook: `cargo run -p roundtrip --example audit-log`.

#![expect(clippy::print_stdout, reason = "it shows the log")]

use std::time::Instant;

use roundtrip::seal::digest_arguments;
use roundtrip::server::{CallInfo, Next, Outcome};
use roundtrip::wire::ServerResult;
use roundtrip::{Args, Ask, Client, Principal, Server, Tool, ToolError};
use serde_json::json;
use serde_json::value::RawValue;

/// Writes a line for each request. The rounds of one call have their flow in common.
async fn audit(call: CallInfo, next: Next, log: impl Fn(String)) -> Outcome {
    let begun = Instant::now();
    let outcome = next.run().await;
    let ended = match &outcome {
        Ok(ServerResult::InputRequired(asks)) => format!("asked {:?}", asks.input_requests.keys()),
        Ok(ServerResult::CallTool(result)) if result.is_error == Some(true) => "failed".to_owned(),
        Ok(_) => "completed".to_owned(),
        Err(error) => format!("refused with {}: {}", error.code, error.message),
    };
    let who = call.principal.as_ref().map_or("anonymous", Principal::as_str);
    let target = call.target.as_deref().unwrap_or("-");
    // Arguments may be secret: their digest tells whether two calls had the same.
    let arguments = digest_arguments(call.arguments().map(RawValue::get));
    let arguments = arguments.map_or_else(|error| error.to_string(), |digest| digest.to_string());
    let (flow, round) = (call.flow().map(|flow| flow.to_string()), call.round());
    let (method, took) = (call.method, begun.elapsed());
    log(format!("{who} {method} {target} {arguments} flow={flow:?} round={round:?} {ended} in {took:?}"));
    outcome
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    order: u32,
}

async fn refund(Args(Refund { order }): Args<Refund>, ask: Ask) -> Result<String, ToolError> {
    if ask.confirm("sure", format!("Refund order {order}?")).await? {
        Ok(format!("order {order} refunded"))
    } else {
        Err(ToolError::new("not refunded"))
    }
}

fn server(log: impl Fn(String) + Clone + Send + Sync + 'static) -> Server {
    Server::new("shop", "1.0.0")
        .tool(Tool::new("refund", refund))
        .around(move |call, next| audit(call, next, log.clone()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::in_process(server(|line| println!("{line}")))?
        .on_form(async |form| form.accept(json!({ "confirm": true })));
    client.call_tool("refund", json!({ "order": 7 })).await?;
    let refused = client.call_tool("no_such_tool", json!({})).await;
    assert!(refused.is_err());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use roundtrip::FormRequest;

    use super::*;

    /// Returns the lines of a refund, confirmed or not, and of a call of an unknown tool.
    async fn logged(sure: bool) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&lines);
        let server = server(move |line| log.lock().unwrap().push(line));
        let client = Client::in_process(server)
            .unwrap()
            .on_form(move |form: FormRequest| async move { form.accept(json!({ "confirm": sure })) });
        client.call_tool("refund", json!({ "order": 7 })).await.unwrap();
        client.call_tool("no_such_tool", json!({})).await.unwrap_err();
        lines.lock().unwrap().clone()
    }

    fn field<'a>(line: &'a str, name: &str) -> &'a str {
        line.split(' ').find_map(|word| word.strip_prefix(name)).unwrap()
    }

    #[tokio::test]
    async fn every_round_leaves_a_line() {
        let lines = logged(true).await;
        let lines: Vec<&str> =
            lines.iter().map(String::as_str).filter(|line| line.contains("tools/call")).collect();
        let [asked, done, unknown] = lines[..] else { panic!("three calls: {lines:?}") };
        assert!(asked.starts_with("anonymous tools/call refund "), "{asked}");
        assert!(asked.contains("asked [\"sure\"] in "), "{asked}");
        assert!(done.contains(" completed in "), "{done}");
        assert_eq!(field(asked, "flow="), field(done, "flow="));
        assert_eq!((field(asked, "round="), field(done, "round=")), ("Some(1)", "Some(2)"));
        assert_eq!(asked.split(' ').nth(3), done.split(' ').nth(3), "the same arguments");
        assert!(unknown.contains("flow=None round=None refused with -32602: unknown tool"), "{unknown}");
    }

    #[tokio::test]
    async fn a_failure_is_a_failure() {
        let lines = logged(false).await;
        assert!(lines.iter().any(|line| line.contains("round=Some(2) failed in ")), "{lines:?}");
    }
}
