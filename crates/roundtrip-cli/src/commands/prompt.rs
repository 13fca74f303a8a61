//! `roundtrip prompt`: the messages of a prompt.

use clap::Args;
use serde_json::Value;

use crate::arguments::ArgumentOptions;
use crate::exit::Failure;
use crate::nearest::nearest;
use crate::output;
use crate::server::Endpoint;
use crate::session::{Session, SessionOptions};

/// Get the messages of a prompt
#[derive(Args)]
#[command(
    override_usage = "roundtrip prompt [OPTIONS] <SERVER> <PROMPT>\n       roundtrip prompt [OPTIONS] <PROMPT> -- <COMMAND>..",
    after_help = "Example:\n  roundtrip prompt http://127.0.0.1:8000/mcp review --arg code='fn main() {}'"
)]
pub(crate) struct Prompt {
    /// The server, unless a command stands behind `--`; then the name of the prompt
    #[arg(value_name = "SERVER PROMPT", num_args = 0..)]
    words: Vec<String>,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    options: SessionOptions,
    #[command(flatten)]
    arguments: ArgumentOptions,
}

impl Prompt {
    pub(crate) fn is_json(&self) -> bool {
        self.options.json
    }

    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let endpoint = Endpoint::take(&mut self.words, &self.command, self.options.connect.config.as_ref())?;
        let [prompt] = self.words.as_slice() else {
            return Err(Failure::usage(format!(
                "give the name of one prompt, not {} words",
                self.words.len()
            )));
        };
        let session = Session::open(endpoint, &self.options).await?;
        session.run(async |session| self.get(session, prompt).await).await
    }

    async fn get(&self, session: &mut Session, name: &str) -> Result<(), Failure> {
        let prompts = session.listed("prompts/list", async |client| client.list_prompts().await).await?;
        let Some(known) = prompts.iter().find(|prompt| prompt.name == name) else {
            let near = nearest(name, prompts.iter().map(|prompt| prompt.name.as_str()));
            return Err(
                Failure::usage(format!("the server has no prompt `{name}`{near}")).with("prompt", name)
            );
        };
        let arguments = self.arguments.for_prompt(&known.arguments).await?;
        let call = arguments.into_iter().fold(session.client.get_prompt(name), |call, (key, value)| {
            let text = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            call.argument(key, text)
        });
        let result = session.drive(call.one_round(), &format!("prompts/get {name}")).await?;
        if session.json {
            output::json(&result);
        } else {
            output::prompt(&result);
        }
        session.concluded(Ok(()))
    }
}
