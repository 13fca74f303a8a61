//! Tools of the servers under measurement.

use std::borrow::Cow;

use roundtrip::{Args, Ask, Form, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Echo {
    /// Text to say back
    text: String,
}

pub(crate) async fn echo(Args(Echo { text }): Args<Echo>) -> String {
    text
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Deploy {
    service: String,
    env: String,
    #[serde(default = "once")]
    rounds: u32,
}

fn once() -> u32 {
    1
}

#[derive(Form)]
struct Confirm {
    approve: bool,
    reason: String,
}

/// Asks as many questions as its arguments say, one per round.
pub(crate) async fn deploy(
    Args(Deploy { service, env, rounds }): Args<Deploy>,
    ask: Ask,
) -> Result<String, ToolError> {
    let mut last_reason = String::new();
    // The same in every round, as everything before a question should be that a replay comes by again.
    let message = format!("Deploy {service} to {env}?");
    for round in 1..=rounds {
        let key = if round == 1 { Cow::Borrowed("confirm") } else { Cow::Owned(format!("confirm-{round}")) };
        let Confirm { approve, reason } = ask.form(key, message.clone()).await?;
        if !approve {
            return Err(ToolError::new(format!("not deployed: {reason}")));
        }
        last_reason = reason;
    }
    Ok(format!("deployed {service} to {env} after {rounds} answers: {last_reason}"))
}
